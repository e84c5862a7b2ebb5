/// Operators on NumPy arrays, for the numpy_ext of a project: arrays in, fresh arrays out. The operator library itself
/// checks every argument.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "opkit/extension/call.h"

namespace opkit::extension {

namespace py = pybind11;

static_assert(sizeof(py::ssize_t) == sizeof(int64_t), "NumPy's shapes are read as int64_t");

/// A ge::DataType and what NumPy calls it.
struct DataType {
  int32_t ge;
  char kind;
  py::ssize_t size_bytes;
  const char* numpy;
};

// A test holds them to opkit/dtypes.py.
constexpr DataType kDataTypes[] = {
    {1, 'f', 2, "float16"}, {0, 'f', 4, "float32"}, {2, 'i', 1, "int8"},  {4, 'u', 1, "uint8"},
    {6, 'i', 2, "int16"},   {7, 'u', 2, "uint16"},  {3, 'i', 4, "int32"}, {8, 'u', 4, "uint32"},
    {9, 'i', 8, "int64"},   {10, 'u', 8, "uint64"}, {12, 'b', 1, "bool"}, {11, 'f', 8, "float64"},
};
constexpr int32_t kBfloat16 = 27;
constexpr int32_t kUint16 = 7;

/// Raises the Python exception for a status other than OPKIT_OK.
inline void check(opkit_status status) {
  if (status == OPKIT_OK) return;
  const std::string message = opkit_last_error();
  py::module_::import("opkit.runtime").attr("raise_status")(static_cast<int>(status), message);
  throw std::runtime_error(message);
}

/// The inputs of one call, contiguous and alive until it ends.
class Inputs {
 public:
  void add(const char* name, const py::object& value, bool optional, bool uint16_is_bfloat16) {
    if (value.is_none()) {
      if (!optional) throw py::type_error(std::string(name) + " is None, expected an array");
      views_.add_absent();
      return;
    }
    views_.add(array_view(name, value, uint16_is_bfloat16));
  }
  /// A dynamic input: a sequence of arrays.
  void add_list(const char* name, const py::object& values, bool uint16_is_bfloat16) {
    if (!py::isinstance<py::list>(values) && !py::isinstance<py::tuple>(values)) {
      throw py::type_error(std::string(name) + " is a list of arrays, not one " +
                           py::cast<std::string>(py::type::of(values).attr("__name__")));
    }
    const auto sequence = py::reinterpret_borrow<py::sequence>(values);
    views_.begin_list(py::len(sequence));
    for (const py::handle value : sequence) {
      views_.append(array_view(name, py::reinterpret_borrow<py::object>(value), uint16_is_bfloat16));
    }
  }
  void check_int32(const char* name) const { views_.check_int32(name); }
  const InputViews& views() const { return views_; }

  /// The dtype of the results that hold `ge`.
  py::dtype result_dtype(int32_t ge) const {
    if (ge == kBfloat16) return bfloat16_ ? py::reinterpret_borrow<py::dtype>(bfloat16_) : py::dtype("uint16");
    for (const DataType& row : kDataTypes) {
      if (row.ge == ge) return py::dtype(row.numpy);
    }
    throw std::runtime_error("NumPy has no type for the ge::DataType " + std::to_string(ge));
  }

 private:
  opkit_tensor array_view(const char* name, const py::object& value, bool uint16_is_bfloat16) {
    py::array array = py::array::ensure(value, py::array::c_style);
    if (!array) {
      PyErr_Clear();
      throw py::type_error(std::string(name) + " is not an array of numbers");
    }
    const int32_t ge = ge_type(name, array, uint16_is_bfloat16);
    const opkit_tensor view = {const_cast<void*>(array.data()), reinterpret_cast<const int64_t*>(array.shape()),
                               static_cast<int32_t>(array.ndim()), ge};
    arrays_.push_back(std::move(array));
    return view;
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

  InputViews views_;
  std::vector<py::array> arrays_;
  py::object bfloat16_;
};

/// Runs an operator and returns its outputs, freshly allocated: the only one itself, a tuple of several.
///
/// Args: output_is_list: for each output of the prototype, whether it is a list of arrays.
inline py::object run(const char* op_type, const Inputs& inputs, const Attributes& attributes,
                      std::initializer_list<bool> output_is_list) {
  const opkit_call call = inputs.views().call_with(attributes);
  opkit_plan* prepared = nullptr;
  check(opkit_prepare(open_once(check), op_type, &call, &prepared));
  const std::unique_ptr<opkit_plan, decltype(&opkit_plan_destroy)> plan(prepared, &opkit_plan_destroy);
  size_t count = 0;
  const opkit_shape* shapes = opkit_plan_outputs(plan.get(), &count);
  const size_t list_length = inputs.views().list_length();
  size_t expected = 0;
  for (const bool is_list : output_is_list) expected += is_list ? list_length : 1;
  if (count != expected) throw std::runtime_error(std::string(op_type) + " has another number of outputs");

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
  for (size_t i = 0; i < count; ++i) {
    // Where the kernel wrote the shape, its elements come first.
    const std::vector<py::ssize_t> dims(shapes[i].dims, shapes[i].dims + shapes[i].rank);
    py::array& array = results[i];
    if (std::equal(dims.begin(), dims.end(), array.shape(), array.shape() + array.ndim())) continue;
    array = py::array(array.dtype(), dims, array.data(), array);
  }

  py::list found;
  size_t next = 0;
  for (const bool is_list : output_is_list) {
    if (!is_list) {
      found.append(results[next++]);
      continue;
    }
    py::list arrays;
    for (size_t i = 0; i < list_length; ++i) arrays.append(results[next++]);
    found.append(arrays);
  }
  if (output_is_list.size() == 1) return found[0];
  return py::tuple(found);
}

}  // namespace opkit::extension
