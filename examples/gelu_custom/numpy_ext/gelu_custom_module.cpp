// gelu_custom for NumPy: arrays in, arrays out. Every argument is checked by the operator library itself.
#include <dlfcn.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "opkit/op_call.h"

namespace py = pybind11;

namespace {

static_assert(sizeof(py::ssize_t) == sizeof(int64_t), "NumPy's shapes are read as int64_t");

/// A ge::DataType and what NumPy calls it.
struct DataType {
  int32_t ge;
  char kind;
  py::ssize_t size_bytes;
  const char* numpy;
};

constexpr DataType kDataTypes[] = {
    {1, 'f', 2, "float16"},
    {0, 'f', 4, "float32"},
    {2, 'i', 1, "int8"},
    {4, 'u', 1, "uint8"},
    {6, 'i', 2, "int16"},
    {7, 'u', 2, "uint16"},
    {3, 'i', 4, "int32"},
    {8, 'u', 4, "uint32"},
    {9, 'i', 8, "int64"},
    {10, 'u', 8, "uint64"},
    {12, 'b', 1, "bool"},
    {11, 'f', 8, "float64"},
};

constexpr int32_t kBfloat16 = 27;
constexpr int32_t kUint16 = 7;

/// The attributes of one call. Strings and lists stay where the caller has them.
class Attributes {
 public:
  void add(const char* name, int64_t value) { entry(name, OPKIT_ATTR_INT).int_value = value; }
  void add(const char* name, double value) { entry(name, OPKIT_ATTR_FLOAT).float_value = value; }
  void add(const char* name, bool value) { entry(name, OPKIT_ATTR_BOOL).int_value = value; }
  void add(const char* name, const std::string& value) {
    entry(name, OPKIT_ATTR_STRING).string_value = value.c_str();
  }
  void add(const char* name, const std::vector<int64_t>& values) {
    opkit_attr& attr = entry(name, OPKIT_ATTR_LIST_INT);
    attr.int_list = values.data();
    attr.list_length = values.size();
  }
  void add(const char* name, const std::vector<double>& values) {
    opkit_attr& attr = entry(name, OPKIT_ATTR_LIST_FLOAT);
    attr.float_list = values.data();
    attr.list_length = values.size();
  }
  void add(const char* name, const std::vector<bool>& values) {
    // The C interface carries booleans as integers.
    copies_.emplace_back(values.begin(), values.end());
    opkit_attr& attr = entry(name, OPKIT_ATTR_LIST_BOOL);
    attr.int_list = copies_.back().data();
    attr.list_length = values.size();
  }
  void add(const char* name, const std::vector<std::vector<int64_t>>& lists) {
    // The C interface carries the values of all lists in a row.
    std::vector<int64_t>& values = copies_.emplace_back();
    std::vector<size_t>& lengths = lengths_.emplace_back();
    for (const std::vector<int64_t>& list : lists) {
      values.insert(values.end(), list.begin(), list.end());
      lengths.push_back(list.size());
    }
    opkit_attr& attr = entry(name, OPKIT_ATTR_LIST_LIST_INT);
    attr.int_list = values.data();
    attr.list_length = lists.size();
    attr.list_lengths = lengths.data();
  }
  const opkit_attr* data() const { return attrs_.data(); }
  size_t size() const { return attrs_.size(); }

 private:
  opkit_attr& entry(const char* name, opkit_attr_kind kind) {
    opkit_attr attr = {};
    attr.name = name;
    attr.kind = kind;
    return attrs_.emplace_back(attr);
  }

  std::vector<opkit_attr> attrs_;
  std::deque<std::vector<int64_t>> copies_;
  std::deque<std::vector<size_t>> lengths_;
};

/// The folder that this library lies in: the artifact folder that `opkit build` wrote.
std::string artifact_folder() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&artifact_folder), &info) == 0 || info.dli_fname == nullptr) return ".";
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

/// Raises the Python exception for a status other than OPKIT_OK.
void check(opkit_status status) {
  if (status == OPKIT_OK) return;
  const std::string message = opkit_last_error();
  py::module_::import("opkit.runtime").attr("raise_status")(static_cast<int>(status), message);
  throw std::runtime_error(message);
}

opkit_library* library() {
  // A failure throws, and the next call tries again.
  static opkit_library* opened = [] {
    opkit_library* result = nullptr;
    check(opkit_library_open(artifact_folder().c_str(), &result));
    return result;
  }();
  return opened;
}

/// The inputs of one call, contiguous and alive until it ends.
class Inputs {
 public:
  void add(const char* name, const py::object& value, bool optional, bool uint16_is_bfloat16) {
    lengths_.push_back(1);
    if (value.is_none()) {
      if (!optional) throw py::type_error(std::string(name) + " is None, expected an array");
      tensors_.push_back({nullptr, nullptr, -1, 0});
      return;
    }
    add_array(name, value, uint16_is_bfloat16);
  }
  /// A dynamic input: a sequence of arrays.
  void add_list(const char* name, const py::object& values, bool uint16_is_bfloat16) {
    if (!py::isinstance<py::list>(values) && !py::isinstance<py::tuple>(values)) {
      throw py::type_error(std::string(name) + " is a list of arrays, not one " +
                           py::cast<std::string>(py::type::of(values).attr("__name__")));
    }
    const auto sequence = py::reinterpret_borrow<py::sequence>(values);
    lengths_.push_back(py::len(sequence));
    for (const py::handle value : sequence) {
      add_array(name, py::reinterpret_borrow<py::object>(value), uint16_is_bfloat16);
    }
  }
  opkit_call call_with(const Attributes& attributes) const {
    opkit_call call = {};
    call.inputs = tensors_.data();
    call.input_count = tensors_.size();
    call.attrs = attributes.data();
    call.attr_count = attributes.size();
    call.input_lengths = lengths_.data();
    call.input_length_count = lengths_.size();
    return call;
  }

  /// The dtype of the results that hold `ge`.
  py::dtype result_dtype(int32_t ge) const {
    if (ge == kBfloat16) return bfloat16_ ? py::reinterpret_borrow<py::dtype>(bfloat16_) : py::dtype("uint16");
    for (const DataType& row : kDataTypes) {
      if (row.ge == ge) return py::dtype(row.numpy);
    }
    throw std::runtime_error("NumPy has no type for the ge::DataType " + std::to_string(ge));
  }

 private:
  void add_array(const char* name, const py::object& value, bool uint16_is_bfloat16) {
    py::array array = py::array::ensure(value, py::array::c_style);
    if (!array) {
      PyErr_Clear();
      throw py::type_error(std::string(name) + " is not an array of numbers");
    }
    const int32_t ge = ge_type(name, array, uint16_is_bfloat16);
    tensors_.push_back({const_cast<void*>(array.data()), reinterpret_cast<const int64_t*>(array.shape()),
                        static_cast<int32_t>(array.ndim()), ge});
    arrays_.push_back(std::move(array));
  }
  int32_t ge_type(const char* name, const py::array& array, bool uint16_is_bfloat16) {
    const py::dtype dtype = array.dtype();
    const char order = dtype.byteorder();
    if (order == '=' || order == '|') {
      for (const DataType& row : kDataTypes) {
        if (row.kind != dtype.kind() || row.size_bytes != dtype.itemsize()) continue;
        return row.ge == kUint16 && uint16_is_bfloat16 ? kBfloat16 : row.ge;
      }
      // The type that the ml_dtypes package adds to NumPy; results then have it too.
      if (dtype.itemsize() == 2 && py::cast<std::string>(dtype.attr("name")) == "bfloat16") {
        bfloat16_ = dtype;
        return kBfloat16;
      }
    }
    throw py::type_error(std::string(name) + " has dtype " + py::cast<std::string>(py::str(dtype)) +
                         ", which no operator takes");
  }

  std::vector<opkit_tensor> tensors_;
  std::vector<size_t> lengths_;  // tensors of each input
  std::vector<py::array> arrays_;
  py::object bfloat16_;
};

/// Runs an operator and returns its outputs, freshly allocated. The last array of `results` is the last output's.
std::vector<py::array> run(const char* op_type, const Inputs& inputs, const Attributes& attributes,
                           size_t output_count) {
  const opkit_call call = inputs.call_with(attributes);
  opkit_plan* prepared = nullptr;
  check(opkit_prepare(library(), op_type, &call, &prepared));
  const std::unique_ptr<opkit_plan, decltype(&opkit_plan_destroy)> plan(prepared, &opkit_plan_destroy);
  size_t count = 0;
  const opkit_shape* shapes = opkit_plan_outputs(plan.get(), &count);
  if (count != output_count) throw std::runtime_error(std::string(op_type) + " has another number of outputs");

  std::vector<py::array> results;
  std::vector<opkit_tensor> outputs;
  for (const opkit_shape* shape = shapes; shape != shapes + count; ++shape) {
    const std::vector<py::ssize_t> dims(shape->dims, shape->dims + shape->rank);
    py::array& array = results.emplace_back(inputs.result_dtype(shape->dtype), dims);
    outputs.push_back({array.mutable_data(), shape->dims, shape->rank, shape->dtype});
  }
  opkit_status status = OPKIT_OK;
  {
    py::gil_scoped_release unlocked;
    status = opkit_plan_run(plan.get(), outputs.data(), count, nullptr);
  }
  check(status);
  return results;
}

py::object call_gelu_custom(const py::object& x) {
  Inputs call_inputs;
  call_inputs.add("x", x, false, false);
  Attributes call_attributes;
  const std::vector<py::array> results = ::run("GELUCustom", call_inputs, call_attributes, 1);
  return results[0];
}

py::object call_gelu_custom_grad(const py::object& grad_y, const py::object& x) {
  Inputs call_inputs;
  call_inputs.add("grad_y", grad_y, false, false);
  call_inputs.add("x", x, false, false);
  Attributes call_attributes;
  const std::vector<py::array> results = ::run("GELUCustomGrad", call_inputs, call_attributes, 1);
  return results[0];
}

}  // namespace

PYBIND11_MODULE(_numpy, module) {
  module.doc() = "Operators of gelu_custom on NumPy arrays.";
  module.def("gelu_custom", &call_gelu_custom, py::arg("x"));
  module.def("gelu_custom_grad", &call_gelu_custom_grad, py::arg("grad_y"), py::arg("x"));
}
