// gelu_custom for PyTorch, on LibTorch's stable ABI: one build serves every torch from 2.10 on, and links none.
// Fake tensors and gradients are registered in Python: gelu_custom/_torch.py.
#include <dlfcn.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "opkit/op_call.h"

namespace {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

/// A ge::DataType and torch's name for it.
struct DataType {
  int32_t ge;
  ScalarType torch;
};

constexpr DataType kDataTypes[] = {
    {1, ScalarType::Half},
    {0, ScalarType::Float},
    {27, ScalarType::BFloat16},
    {2, ScalarType::Char},
    {4, ScalarType::Byte},
    {6, ScalarType::Short},
    {3, ScalarType::Int},
    {9, ScalarType::Long},
    {12, ScalarType::Bool},
    {11, ScalarType::Double},
};

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

void check(opkit_status status) {
  if (status != OPKIT_OK) throw std::runtime_error(opkit_last_error());
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
  void add(const char* name, const Tensor& value) {
    lengths_.push_back(1);
    add_tensor(name, value);
  }
  void add(const char* name, const std::optional<Tensor>& value) {
    if (value.has_value()) return add(name, *value);
    lengths_.push_back(1);
    tensors_.push_back({nullptr, nullptr, -1, 0});
  }
  /// A dynamic input.
  void add(const char* name, const std::vector<Tensor>& values) {
    lengths_.push_back(values.size());
    for (const Tensor& value : values) add_tensor(name, value);
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

 private:
  void add_tensor(const char* name, const Tensor& value) {
    Tensor tensor = value.is_contiguous() ? value : torch::stable::contiguous(value);
    const auto sizes = tensor.sizes();
    const ScalarType type = tensor.scalar_type();
    for (const DataType& row : kDataTypes) {
      if (row.torch != type) continue;
      const std::vector<int64_t>& shape = shapes_.emplace_back(sizes.begin(), sizes.end());
      tensors_.push_back({const_cast<void*>(tensor.const_data_ptr()), shape.data(),
                          static_cast<int32_t>(shape.size()), row.ge});
      held_.push_back(std::move(tensor));
      return;
    }
    throw std::runtime_error(std::string(name) + " has a dtype that no operator takes");
  }

  std::vector<opkit_tensor> tensors_;
  std::vector<size_t> lengths_;  // tensors of each input
  std::deque<std::vector<int64_t>> shapes_;
  std::vector<Tensor> held_;
};

Tensor allocate(const opkit_shape& shape) {
  for (const DataType& row : kDataTypes) {
    if (row.ge != shape.dtype) continue;
    return torch::stable::empty({shape.dims, static_cast<size_t>(shape.rank)}, row.torch);
  }
  throw std::runtime_error("torch has no dtype for the ge::DataType " + std::to_string(shape.dtype));
}

/// Runs an operator and returns its outputs, freshly allocated.
std::vector<Tensor> run(const char* op_type, const Inputs& inputs, const Attributes& attributes, size_t output_count) {
  const opkit_call call = inputs.call_with(attributes);
  opkit_plan* prepared = nullptr;
  check(opkit_prepare(library(), op_type, &call, &prepared));
  const std::unique_ptr<opkit_plan, decltype(&opkit_plan_destroy)> plan(prepared, &opkit_plan_destroy);
  size_t count = 0;
  const opkit_shape* shapes = opkit_plan_outputs(plan.get(), &count);
  if (count != output_count) throw std::runtime_error(std::string(op_type) + " has another number of outputs");

  std::vector<Tensor> results;
  std::vector<opkit_tensor> outputs;
  results.reserve(count);
  outputs.reserve(count);
  for (const opkit_shape* shape = shapes; shape != shapes + count; ++shape) {
    results.push_back(allocate(*shape));
    outputs.push_back({results.back().mutable_data_ptr(), shape->dims, shape->rank, shape->dtype});
  }
  check(opkit_plan_run(plan.get(), outputs.data(), count, nullptr));
  return results;
}

Tensor call_gelu_custom(Tensor x) {
  Inputs call_inputs;
  call_inputs.add("x", x);
  Attributes call_attributes;
  std::vector<Tensor> results = ::run("GELUCustom", call_inputs, call_attributes, 1);
  return results[0];
}

Tensor call_gelu_custom_grad(Tensor grad_y, Tensor x) {
  Inputs call_inputs;
  call_inputs.add("grad_y", grad_y);
  call_inputs.add("x", x);
  Attributes call_attributes;
  std::vector<Tensor> results = ::run("GELUCustomGrad", call_inputs, call_attributes, 1);
  return results[0];
}

}  // namespace

STABLE_TORCH_LIBRARY(gelu_custom, library) {
  library.def("gelu_custom(Tensor x) -> Tensor");
  library.def("gelu_custom_grad(Tensor grad_y, Tensor x) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(gelu_custom, CPU, library) {
  library.impl("gelu_custom", TORCH_BOX(&call_gelu_custom));
  library.impl("gelu_custom_grad", TORCH_BOX(&call_gelu_custom_grad));
}
