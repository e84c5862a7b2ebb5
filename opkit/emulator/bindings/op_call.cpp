// Operator libraries for Python: NumPy arrays in, NumPy arrays out, statuses as exceptions of opkit.errors.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings.h"
#include "host/dtypes.h"
#include "host/launch_run.h"
#include "opkit/op_call.h"

namespace py = pybind11;

namespace opkit {
namespace {

[[noreturn]] void raise_named(const char* name, const std::string& message) {
  const py::object type = py::module_::import("opkit.errors").attr(name);
  PyErr_SetObject(type.ptr(), type(message).ptr());
  throw py::error_already_set();
}

/// The exception of a status that this thread's last call returned.
void raise_status(int status, const std::string& message) {
  switch (status) {
    case OPKIT_OK: return;
    case OPKIT_USAGE: raise_named(host::last_call_was_refused() ? "HostRefusal" : "UsageError", message);
    case OPKIT_MISSING: raise_named("SetupError", message);
    case OPKIT_FAULT: raise_kernel_fault(host::last_fault());
    default: raise_named("OpkitError", message);
  }
}

/// Tensors in the C form; keeps the arrays and shapes that they point at.
class Tensors {
 public:
  void add(const py::object& value, int32_t dtype) {
    if (value.is_none()) {
      tensors_.push_back({nullptr, nullptr, -1, dtype});
      return;
    }
    const py::array array = value.cast<py::array>();
    if ((array.flags() & py::array::c_style) == 0) raise_named("UsageError", "arrays must be C-contiguous");
    const host::DtypeRow* row = host::find_dtype(dtype);
    if (row == nullptr || array.itemsize() != static_cast<py::ssize_t>(row->size_bytes)) {
      raise_named("UsageError", "an array with elements of " + std::to_string(array.itemsize()) +
                                    " bytes cannot carry " + host::dtype_name(dtype));
    }
    arrays_.push_back(array);
    std::vector<int64_t>& shape = shapes_.emplace_back(array.shape(), array.shape() + array.ndim());
    if (dtype == ge::DT_INT4) {
      if (shape.empty()) raise_named("UsageError", "int4 is carried two a byte along the last axis: there is none");
      shape.back() *= 2;
    }
    tensors_.push_back({const_cast<void*>(array.data()), shape.data(), static_cast<int32_t>(shape.size()), dtype});
  }

  /// A list among `values` is a dynamic param; `dtypes` has one entry for each array, also for those in lists.
  static Tensors of(const py::sequence& values, const std::vector<int32_t>& dtypes) {
    Tensors tensors;
    size_t next = 0;
    const auto take = [&](const py::object& value) {
      if (next == dtypes.size()) raise_named("UsageError", "there must be one dtype for each array");
      tensors.add(value, dtypes[next++]);
    };
    for (const py::handle value : values) {
      const size_t before = next;
      if (py::isinstance<py::list>(value)) {
        tensors.has_lists_ = true;
        for (const py::handle item : value) take(py::reinterpret_borrow<py::object>(item));
      } else {
        take(py::reinterpret_borrow<py::object>(value));
      }
      tensors.lengths_.push_back(next - before);
    }
    if (next != dtypes.size()) raise_named("UsageError", "there must be one dtype for each array");
    return tensors;
  }

  /// The arguments of a call with these inputs.
  template <typename Attributes>
  opkit_call call_with(const Attributes& attrs) const {
    opkit_call call = {};
    call.inputs = data();
    call.input_count = size();
    call.attrs = attrs.data();
    call.attr_count = attrs.size();
    if (has_lists_) {
      call.input_lengths = lengths_.data();
      call.input_length_count = lengths_.size();
    }
    return call;
  }

  const opkit_tensor* data() const { return tensors_.data(); }
  size_t size() const { return tensors_.size(); }

 private:
  std::vector<opkit_tensor> tensors_;
  std::vector<size_t> lengths_;  ///< tensors of each value
  bool has_lists_ = false;
  std::vector<py::array> arrays_;
  std::deque<std::vector<int64_t>> shapes_;
};

/// Attributes in the C form; keeps what they point at.
class Attrs {
 public:
  explicit Attrs(const py::dict& values) {
    for (const auto& [key, value] : values) add(key.cast<std::string>(), value);
  }

  const opkit_attr* data() const { return attrs_.data(); }
  size_t size() const { return attrs_.size(); }

 private:
  void add(const std::string& name, py::handle value) {
    opkit_attr attr = {};
    attr.name = strings_.emplace_back(name).c_str();
    if (py::isinstance<py::bool_>(value)) {
      attr.kind = OPKIT_ATTR_BOOL;
      attr.int_value = value.cast<bool>() ? 1 : 0;
    } else if (py::isinstance<py::int_>(value)) {
      attr.kind = OPKIT_ATTR_INT;
      attr.int_value = value.cast<int64_t>();
    } else if (py::isinstance<py::float_>(value)) {
      attr.kind = OPKIT_ATTR_FLOAT;
      attr.float_value = value.cast<double>();
    } else if (py::isinstance<py::str>(value)) {
      attr.kind = OPKIT_ATTR_STRING;
      attr.string_value = strings_.emplace_back(value.cast<std::string>()).c_str();
    } else if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value)) {
      add_list(attr, value.cast<py::sequence>());
    } else {
      raise_named(
          "UsageError",
          "attribute \"" + name + "\" has the type " + py::type::of(value).attr("__name__").cast<std::string>() +
              "; attributes are int, float, bool, str, or a list of int, float or bool, or a list of lists of int");
    }
    attrs_.push_back(attr);
  }

  void add_lists(opkit_attr& attr, const py::sequence& lists) {
    std::vector<int64_t>& values = int_lists_.emplace_back();
    std::vector<size_t>& lengths = lengths_.emplace_back();
    for (const py::handle list : lists) {
      if (!py::isinstance<py::list>(list) && !py::isinstance<py::tuple>(list)) {
        raise_named("UsageError", std::string("attribute \"") + attr.name + "\" mixes lists and numbers");
      }
      const auto items = list.cast<std::vector<int64_t>>();
      values.insert(values.end(), items.begin(), items.end());
      lengths.push_back(items.size());
    }
    attr.kind = OPKIT_ATTR_LIST_LIST_INT;
    attr.int_list = values.data();
    attr.list_length = lengths.size();
    attr.list_lengths = lengths.data();
  }

  void add_list(opkit_attr& attr, const py::sequence& values) {
    if (py::len(values) != 0 && (py::isinstance<py::list>(values[0]) || py::isinstance<py::tuple>(values[0]))) {
      add_lists(attr, values);
      return;
    }
    bool all_bool = py::len(values) != 0;
    bool has_float = false;
    for (const py::handle item : values) {
      const bool is_number = py::isinstance<py::int_>(item) || py::isinstance<py::float_>(item);
      if (!is_number) {
        raise_named("UsageError",
                    std::string("attribute \"") + attr.name + "\" holds a list of something else than numbers");
      }
      all_bool = all_bool && py::isinstance<py::bool_>(item);
      has_float = has_float || py::isinstance<py::float_>(item);
    }
    attr.list_length = py::len(values);
    if (has_float) {
      attr.kind = OPKIT_ATTR_LIST_FLOAT;
      attr.float_list = float_lists_.emplace_back(values.cast<std::vector<double>>()).data();
      return;
    }
    attr.kind = all_bool ? OPKIT_ATTR_LIST_BOOL : OPKIT_ATTR_LIST_INT;
    attr.int_list = int_lists_.emplace_back(values.cast<std::vector<int64_t>>()).data();
  }

  std::vector<opkit_attr> attrs_;
  std::deque<std::string> strings_;
  std::deque<std::vector<int64_t>> int_lists_;
  std::deque<std::vector<double>> float_lists_;
  std::deque<std::vector<size_t>> lengths_;
};

/// Bytes that carry the last axis of an int4 tensor.
int64_t carried_in_last_axis(int64_t elements) {
  if (elements % 2 != 0) raise_named("UsageError", "an int4 output with an odd last axis: two elements share a byte");
  return elements / 2;
}

/// The outputs, those whose shape the kernel wrote as views of that shape. `inferred`: (shape, dtype number) of each
/// before the run; a list among the outputs has several.
py::list with_written_shapes(const py::list& outputs, const py::list& inferred, const opkit_plan* plan) {
  size_t count = 0;
  const opkit_shape* shapes = opkit_plan_outputs(plan, &count);
  py::list result;
  size_t next = 0;
  const auto shaped = [&](const py::handle& array) -> py::object {
    const opkit_shape& shape = shapes[next];
    std::vector<int64_t> dims(shape.dims, shape.dims + shape.rank);
    const bool is_same = inferred[next++].cast<py::tuple>()[0].cast<std::vector<int64_t>>() == dims;
    if (is_same) return py::reinterpret_borrow<py::object>(array);
    if (shape.dtype == ge::DT_INT4) dims.back() = carried_in_last_axis(dims.back());
    int64_t elements = 1;
    for (const int64_t dim : dims) elements *= dim;
    return array.attr("reshape")(-1)[py::slice(0, elements, 1)].attr("reshape")(py::tuple(py::cast(dims)));
  };
  for (const py::handle output : outputs) {
    if (!py::isinstance<py::list>(output)) {
      result.append(shaped(output));
      continue;
    }
    py::list list;
    for (const py::handle item : output) list.append(shaped(item));
    result.append(list);
  }
  return result;
}

/// What the caller says of each output: a shape or none, a dtype number or -1.
using Expected = std::vector<std::pair<std::optional<std::vector<int64_t>>, int32_t>>;

/// The same as the C interface takes it; it points into `expected`.
std::vector<opkit_tensor> views_of(const Expected& expected) {
  std::vector<opkit_tensor> views;
  for (const auto& [shape, dtype] : expected) {
    views.push_back(
        {nullptr, shape ? shape->data() : nullptr, shape ? static_cast<int32_t>(shape->size()) : -1, dtype});
  }
  return views;
}

class Library {
 public:
  explicit Library(const std::string& folder) {
    opkit_status status;
    {
      const py::gil_scoped_release release;
      status = opkit_library_open(folder.c_str(), &library_);
    }
    check_status(status);
  }

  /// (shape, dtype number) of each output.
  std::vector<std::pair<py::tuple, int32_t>> infer(const std::string& op_type, const py::sequence& inputs,
                                                   const std::vector<int32_t>& dtypes, const py::dict& attributes,
                                                   const Expected& expected) {
    const Tensors tensors = Tensors::of(inputs, dtypes);
    const Attrs attrs(attributes);
    opkit_call call = tensors.call_with(attrs);
    const std::vector<opkit_tensor> outputs = views_of(expected);
    call.outputs = outputs.empty() ? nullptr : outputs.data();
    call.output_count = outputs.size();
    std::vector<opkit_shape> shapes(kOutputRoom);
    size_t count = shapes.size();
    opkit_status status;
    {
      const py::gil_scoped_release release;
      status = opkit_infer(library_, op_type.c_str(), &call, shapes.data(), &count);
      if (status == OPKIT_USAGE && count > shapes.size()) {
        shapes.resize(count);
        status = opkit_infer(library_, op_type.c_str(), &call, shapes.data(), &count);
      }
    }
    check_status(status);
    std::vector<std::pair<py::tuple, int32_t>> result;
    for (size_t i = 0; i < count; ++i) {
      const std::vector<int64_t> dims(shapes[i].dims, shapes[i].dims + shapes[i].rank);
      result.emplace_back(py::tuple(py::cast(dims)), shapes[i].dtype);
    }
    return result;
  }

  /// The key, the blocks and the data that the tiling function sets for a call.
  py::tuple tiling(const std::string& op_type, const py::sequence& inputs, const std::vector<int32_t>& dtypes,
                   const py::dict& attributes) {
    const Tensors tensors = Tensors::of(inputs, dtypes);
    const Attrs attrs(attributes);
    const opkit_call call = tensors.call_with(attrs);
    opkit_tiling found{};
    std::string data;
    opkit_plan* prepared = nullptr;
    opkit_status status;
    {
      const py::gil_scoped_release release;
      status = opkit_prepare(library_, op_type.c_str(), &call, &prepared);
      const std::unique_ptr<opkit_plan, decltype(&opkit_plan_destroy)> plan(prepared, &opkit_plan_destroy);
      if (status == OPKIT_OK) status = opkit_plan_tiling(plan.get(), &found);
      if (status == OPKIT_OK) data.assign(reinterpret_cast<const char*>(found.data), found.size_bytes);
    }
    check_status(status);
    return py::make_tuple(found.key, found.blocks, py::bytes(data));
  }

  /// Infers the outputs once, lets `allocate` make them of their (shape, dtype number) pairs, and runs the operator.
  py::list run(const std::string& op_type, const py::sequence& inputs, const std::vector<int32_t>& dtypes,
               const py::dict& attributes, const Expected& expected, const py::function& allocate) {
    const Tensors tensors = Tensors::of(inputs, dtypes);
    const Attrs attrs(attributes);
    const std::vector<opkit_tensor> told = views_of(expected);
    opkit_call call = tensors.call_with(attrs);
    call.outputs = told.empty() ? nullptr : told.data();
    call.output_count = told.size();
    opkit_plan* prepared = nullptr;
    opkit_status status;
    {
      const py::gil_scoped_release release;
      status = opkit_prepare(library_, op_type.c_str(), &call, &prepared);
    }
    check_status(status);
    const std::unique_ptr<opkit_plan, decltype(&opkit_plan_destroy)> plan(prepared, &opkit_plan_destroy);
    size_t count = 0;
    const opkit_shape* shapes = opkit_plan_outputs(plan.get(), &count);
    py::list inferred;
    std::vector<int32_t> numbers;
    for (const opkit_shape* shape = shapes; shape != shapes + count; ++shape) {
      const std::vector<int64_t> dims(shape->dims, shape->dims + shape->rank);
      inferred.append(py::make_tuple(py::tuple(py::cast(dims)), shape->dtype));
      numbers.push_back(shape->dtype);
    }
    const py::list outputs = allocate(inferred);
    const Tensors results = Tensors::of(outputs, numbers);
    {
      const py::gil_scoped_release release;
      status = opkit_plan_run(plan.get(), results.data(), results.size(), nullptr);
    }
    check_status(status);
    return with_written_shapes(outputs, inferred, plan.get());
  }

 private:
  static constexpr size_t kOutputRoom = 16;
  opkit_library* library_ = nullptr;
};

}  // namespace

void check_status(int status) {
  if (status != OPKIT_OK) raise_status(status, opkit_last_error());
}

void bind_op_call(py::module_& module) {
  py::class_<Library>(module, "Library", "An artifact folder, open.")
      .def(py::init<const std::string&>(), py::arg("folder"))
      .def("infer", &Library::infer, py::arg("op_type"), py::arg("inputs"), py::arg("dtypes"), py::arg("attrs"),
           py::arg("expected") = Expected(),
           "Return (shape, ge::DataType number) of each output; absent optional inputs are None, dynamic ones lists.")
      .def("tiling", &Library::tiling, py::arg("op_type"), py::arg("inputs"), py::arg("dtypes"), py::arg("attrs"),
           "Return the key, the blocks and the data that the operator's tiling function sets for a call.")
      .def("run", &Library::run, py::arg("op_type"), py::arg("inputs"), py::arg("dtypes"), py::arg("attrs"),
           py::arg("expected"), py::arg("allocate"),
           "Run an operator and return what `allocate` made of its (shape, dtype number) pairs.");
  module.def("raise_status", &raise_status, py::arg("status"), py::arg("message"),
             "Raise the exception for an opkit_status that this thread's last operator call returned.");
  module.def("last_changed_inputs", &host::last_changed_inputs,
             "Return the inputs that this thread's last operator call has written to, where launches are poisoned.");
}

}  // namespace opkit
