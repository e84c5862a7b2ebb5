#include "runtime/widen.h"

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace opkit::npu {
namespace {

constexpr c10::DispatchKeySet kCpu(c10::DispatchKey::CPU);

/// Operators, with their overload, that were found to lack a type.
class Lacking {
 public:
  static Lacking& get() {
    static auto* lacking = new Lacking();
    return *lacking;
  }
  bool has(const c10::OperatorName& name, at::ScalarType type) {
    const std::lock_guard<std::mutex> guard(lock_);
    return found_.count({name.name, name.overload_name, type}) != 0;
  }
  void add(const c10::OperatorName& name, at::ScalarType type) {
    const std::lock_guard<std::mutex> guard(lock_);
    found_.insert({name.name, name.overload_name, type});
  }

 private:
  std::mutex lock_;
  std::set<std::tuple<std::string, std::string, at::ScalarType>> found_;
};

template <typename Visit>
void visit_tensors(const c10::IValue& value, const Visit& visit) {
  if (value.isTensor()) {
    visit(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) visit(tensor);
  } else if (value.isOptionalTensorList()) {
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      if (tensor.has_value()) visit(*tensor);
    }
  }
}

/// The half type that all floating tensors among the arguments have.
std::optional<at::ScalarType> half_type_of(const c10::Stack& stack, size_t first) {
  std::optional<at::ScalarType> found;
  bool is_mixed = false;
  for (size_t i = first; i < stack.size(); ++i) {
    visit_tensors(stack[i], [&](const at::Tensor& tensor) {
      if (!tensor.defined() || !(tensor.is_floating_point() || tensor.is_complex())) return;
      is_mixed = is_mixed || (found.has_value() && *found != tensor.scalar_type());
      found = tensor.scalar_type();
    });
  }
  const bool is_half = found == at::kHalf || found == at::kBFloat16;
  return is_half && !is_mixed ? found : std::nullopt;
}

/// Where a call on the CPU goes: nested tensors have kernels of their own.
c10::DispatchKeySet cpu_keys(const c10::Stack& stack, size_t first) {
  bool is_nested = false;
  for (size_t i = first; i < stack.size(); ++i) {
    visit_tensors(stack[i], [&](const at::Tensor& tensor) { is_nested = is_nested || tensor.is_nested(); });
  }
  return is_nested ? c10::DispatchKeySet(c10::DispatchKey::NestedTensorCPU) : kCpu;
}

/// An argument of the half type, and what stands for it.
struct Widened {
  at::Tensor narrow;
  at::Tensor wide;
};

class WideCall {
 public:
  explicit WideCall(at::ScalarType type) : type_(type) {}

  c10::IValue widen(const c10::IValue& value, bool is_written) {
    const auto one = [&](const at::Tensor& tensor) { return widen_tensor(tensor, is_written); };
    if (value.isTensor()) return one(value.toTensor());
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(one(tensor));
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
        list.push_back(tensor.has_value() ? std::optional<at::Tensor>(one(*tensor)) : std::nullopt);
      }
      return list;
    }
    return value;
  }

  void write_back() {
    for (const Widened& pair : written_) {
      if (pair.narrow.sizes() != pair.wide.sizes()) pair.narrow.resize_(pair.wide.sizes());
      pair.narrow.copy_(pair.wide);
    }
  }

  c10::IValue narrow(const c10::IValue& value) const {
    if (value.isTensor()) return narrow_tensor(value.toTensor());
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(narrow_tensor(tensor));
      return list;
    }
    return value;
  }

 private:
  at::Tensor widen_tensor(const at::Tensor& tensor, bool is_written) {
    if (!tensor.defined() || tensor.scalar_type() != type_) return tensor;
    at::Tensor wide = tensor.to(at::kFloat);
    if (is_written) written_.push_back({tensor, wide});
    return wide;
  }

  at::Tensor narrow_tensor(const at::Tensor& result) const {
    for (const Widened& pair : written_) {
      if (result.is_same(pair.wide)) return pair.narrow;
    }
    return result.defined() && result.scalar_type() == at::kFloat ? result.to(type_) : result;
  }

  at::ScalarType type_;
  std::vector<Widened> written_;
};

void compute_wide(const c10::OperatorHandle& op, c10::Stack* stack, size_t first, at::ScalarType type) {
  const auto& arguments = op.schema().arguments();
  WideCall call(type);
  for (size_t i = first; i < stack->size(); ++i) {
    const c10::AliasInfo* alias = arguments[i - first].alias_info();
    (*stack)[i] = call.widen((*stack)[i], alias != nullptr && alias->isWrite());
  }
  op.redispatchBoxed(cpu_keys(*stack, first), stack);
  call.write_back();
  for (size_t i = stack->size() - op.schema().returns().size(); i < stack->size(); ++i) {
    (*stack)[i] = call.narrow((*stack)[i]);
  }
}

bool is_histogram_of_whole(const c10::OperatorHandle& op, const c10::IValue& value) {
  return op.schema().name() == "aten::histc" && op.schema().overload_name().empty() && value.isTensor() &&
         at::isIntegralType(value.toTensor().scalar_type(), false);
}

}  // namespace

const char* call_on_cpu(const c10::OperatorHandle& op, c10::Stack* stack) {
  const size_t first = stack->size() - op.schema().arguments().size();
  const std::optional<at::ScalarType> type = half_type_of(*stack, first);
  if (!type.has_value() && is_histogram_of_whole(op, (*stack)[first])) {
    // The CPU counts floats only; float64 tells whole numbers up to 2^53 apart.
    const at::ScalarType own = (*stack)[first].toTensor().scalar_type();
    (*stack)[first] = (*stack)[first].toTensor().to(at::kDouble);
    op.redispatchBoxed(cpu_keys(*stack, first), stack);
    stack->back() = stack->back().toTensor().to(own);
    return "whole numbers";
  }
  if (!type.has_value()) {
    op.redispatchBoxed(cpu_keys(*stack, first), stack);
    return nullptr;
  }
  if (!Lacking::get().has(op.operator_name(), *type)) {
    const std::vector<c10::IValue> given(stack->begin() + static_cast<ptrdiff_t>(first), stack->end());
    try {
      op.redispatchBoxed(cpu_keys(*stack, first), stack);
      return nullptr;
    } catch (const c10::NotImplementedError& error) {
      const std::string lack = c10::str("not implemented for '", c10::toString(*type), "'");
      if (error.msg().find(lack) == std::string::npos) throw;
    }
    Lacking::get().add(op.operator_name(), *type);
    stack->resize(first);
    stack->insert(stack->end(), given.begin(), given.end());
  }
  compute_wide(op, stack, first, *type);
  return *type == at::kHalf ? "float16" : "bfloat16";
}

}  // namespace opkit::npu
