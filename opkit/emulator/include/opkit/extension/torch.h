/// Operators on torch tensors, for the torch_ext of a project: on LibTorch's stable ABI, so that one build serves every
/// torch from 2.10 on and links none.
#pragma once

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "opkit/extension/call.h"

namespace opkit::extension {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

/// A ge::DataType and torch's name for it.
struct DataType {
  int32_t ge;
  ScalarType torch;
};

// A test holds them to opkit/dtypes.py.
constexpr DataType kDataTypes[] = {
    {1, ScalarType::Half},  {0, ScalarType::Float},   {27, ScalarType::BFloat16}, {2, ScalarType::Char},
    {4, ScalarType::Byte},  {6, ScalarType::Short},   {3, ScalarType::Int},       {9, ScalarType::Long},
    {12, ScalarType::Bool}, {11, ScalarType::Double},
};

inline void check(opkit_status status) {
  if (status != OPKIT_OK) throw std::runtime_error(opkit_last_error());
}

/// The inputs of one call, contiguous and alive until it ends.
class Inputs {
 public:
  void add(const char* name, const Tensor& value) { views_.add(tensor_view(name, value)); }
  void add(const char* name, const std::optional<Tensor>& value) {
    if (value.has_value()) return add(name, *value);
    views_.add_absent();
  }
  /// A dynamic input.
  void add(const char* name, const std::vector<Tensor>& values) {
    views_.begin_list(values.size());
    for (const Tensor& value : values) views_.append(tensor_view(name, value));
  }
  void check_int32(const char* name) const { views_.check_int32(name); }
  const InputViews& views() const { return views_; }

 private:
  opkit_tensor tensor_view(const char* name, const Tensor& value) {
    Tensor tensor = value.is_contiguous() ? value : torch::stable::contiguous(value);
    const auto sizes = tensor.sizes();
    const ScalarType type = tensor.scalar_type();
    for (const DataType& row : kDataTypes) {
      if (row.torch != type) continue;
      // The sizes lie in the tensor.
      const opkit_tensor view = {const_cast<void*>(tensor.const_data_ptr()), sizes.data(),
                                 static_cast<int32_t>(sizes.size()), row.ge};
      held_.push_back(std::move(tensor));
      return view;
    }
    throw std::runtime_error(std::string(name) + " has a dtype that no operator takes");
  }

  InputViews views_;
  std::vector<Tensor> held_;
};

/// The outputs of one call, taken in the prototype's order.
class Results {
 public:
  Results(std::vector<Tensor> tensors, size_t list_length) : tensors_(std::move(tensors)), list_length_(list_length) {}
  Tensor one() { return tensors_[next_++]; }
  std::vector<Tensor> list() {
    std::vector<Tensor> taken;
    for (size_t i = 0; i < list_length_; ++i) taken.push_back(one());
    return taken;
  }

 private:
  std::vector<Tensor> tensors_;
  size_t list_length_;
  size_t next_ = 0;
};

inline Tensor allocate(const opkit_shape& shape) {
  for (const DataType& row : kDataTypes) {
    if (row.ge != shape.dtype) continue;
    return torch::stable::empty({shape.dims, static_cast<size_t>(shape.rank)}, row.torch);
  }
  throw std::runtime_error("torch has no dtype for the ge::DataType " + std::to_string(shape.dtype));
}

/// An output as the kernel wrote its shape: the tensor itself unless that is another one than was inferred.
inline Tensor of_written_shape(const Tensor& tensor, const opkit_shape& shape) {
  bool is_same = tensor.dim() == shape.rank;
  int64_t elements = 1;
  for (int32_t axis = 0; axis < shape.rank; ++axis) {
    is_same = is_same && tensor.size(axis) == shape.dims[axis];
    elements *= shape.dims[axis];
  }
  if (is_same) return tensor;
  const int64_t all = -1;
  Tensor flat = torch::stable::view(tensor, {&all, 1});
  flat = torch::stable::narrow(flat, 0, 0, elements);
  return torch::stable::view(flat, {shape.dims, static_cast<size_t>(shape.rank)});
}

/// Runs an operator and returns its outputs, freshly allocated.
///
/// Args: single_outputs, list_outputs: how many outputs of the prototype are one tensor, and how many a list.
inline Results run(const char* op_type, const Inputs& inputs, const Attributes& attributes, size_t single_outputs,
                   size_t list_outputs) {
  const opkit_call call = inputs.views().call_with(attributes);
  opkit_plan* prepared = nullptr;
  check(opkit_prepare(open_once(check), op_type, &call, &prepared));
  const std::unique_ptr<opkit_plan, decltype(&opkit_plan_destroy)> plan(prepared, &opkit_plan_destroy);
  size_t count = 0;
  const opkit_shape* shapes = opkit_plan_outputs(plan.get(), &count);
  const size_t list_length = inputs.views().list_length();
  if (count != single_outputs + list_outputs * list_length) {
    throw std::runtime_error(std::string(op_type) + " has another number of outputs");
  }
  std::vector<Tensor> results;
  std::vector<opkit_tensor> outputs;
  results.reserve(count);
  outputs.reserve(count);
  for (const opkit_shape* shape = shapes; shape != shapes + count; ++shape) {
    results.push_back(allocate(*shape));
    outputs.push_back({results.back().mutable_data_ptr(), shape->dims, shape->rank, shape->dtype});
  }
  check(opkit_plan_run(plan.get(), outputs.data(), count, nullptr));
  for (size_t i = 0; i < count; ++i) results[i] = of_written_shape(results[i], shapes[i]);
  return Results(std::move(results), list_length);
}

}  // namespace opkit::extension
