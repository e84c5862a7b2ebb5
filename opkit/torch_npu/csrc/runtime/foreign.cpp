#include "runtime/foreign.h"

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "runtime/device.h"
#include "runtime/fallback.h"
#include "runtime/faults.h"

namespace opkit::npu {
namespace {

/// Tensors and attributes of one call in the C form.
struct ForeignCall {
  std::vector<opkit_tensor> inputs, outputs;
  std::vector<opkit_attr> attrs;
  std::vector<at::Tensor> results;
};

opkit_tensor described(const at::Tensor& tensor) {
  return {tensor.data_ptr(), tensor.sizes().data(), static_cast<int32_t>(tensor.dim()), ge_type(tensor.scalar_type())};
}

/// A number of the call; nothing where the value is of another kind.
void add_attribute(const std::string& name, const c10::IValue& value, std::vector<opkit_attr>& attrs) {
  opkit_attr attr{};
  attr.name = name.c_str();
  if (value.isBool()) {
    attr.kind = OPKIT_ATTR_BOOL;
    attr.int_value = value.toBool() ? 1 : 0;
  } else if (value.isInt()) {
    attr.kind = OPKIT_ATTR_INT;
    attr.int_value = value.toInt();
  } else if (value.isDouble()) {
    attr.kind = OPKIT_ATTR_FLOAT;
    attr.float_value = value.toDouble();
  } else {
    return;
  }
  attrs.push_back(attr);
}

const char* collect(const c10::OperatorHandle& op, const c10::Stack& stack, ForeignCall& call) {
  const auto& arguments = op.schema().arguments();
  const size_t base = stack.size() - arguments.size();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& value = stack[base + i];
    if (!value.isTensor()) {
      if (!value.isNone()) add_attribute(arguments[i].name(), value, call.attrs);
      continue;
    }
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined()) continue;
    if (tensor.device().type() != kDevice) return "a tensor of the host is among the arguments";
    if (!tensor.is_contiguous()) return "an argument is not contiguous";
    if (ge_type(tensor.scalar_type()) < 0) return "the chip has no such data type";
    if (arguments[i].is_out()) {
      call.outputs.push_back(described(tensor));
      call.results.push_back(tensor);
    } else {
      call.inputs.push_back(described(tensor));
    }
  }
  if (call.outputs.empty()) return "the operator has no out argument";
  const bool has_input = !call.inputs.empty() && call.inputs[0].data != nullptr;
  return has_input && call.results[0].numel() == 0 ? "out has to be resized first" : nullptr;
}

}  // namespace

int32_t ge_type(c10::ScalarType type) {
  switch (type) {
    case at::kFloat: return 0;
    case at::kHalf: return 1;
    case at::kChar: return 2;
    case at::kInt: return 3;
    case at::kByte: return 4;
    case at::kShort: return 6;
    case at::kLong: return 9;
    case at::kDouble: return 11;
    case at::kBool: return 12;
    case at::kBFloat16: return 27;
    default: return -1;
  }
}

const char* serve_foreign(const opkit_operator& row, const c10::OperatorHandle& op, c10::Stack* stack) {
  ForeignCall call;
  if (const char* reason = collect(op, *stack, call)) return reason;
  if (row.refuse != nullptr) {
    if (const char* reason = row.refuse(row.self, call.inputs.data(), call.inputs.size())) return reason;
  }
  tell_listener(CallKind::Launch, row.name, 0);
  const opkit_status status = row.run(row.self, call.inputs.data(), call.inputs.size(), call.outputs.data(),
                                      call.outputs.size(), call.attrs.data(), call.attrs.size());
  if (status != OPKIT_OK) {
    report_fault(call.results[0].device().index(), c10::str(row.name, " on npu: ", opkit_last_error()));
  }
  torch::jit::drop(*stack, op.schema().arguments().size());
  for (at::Tensor& result : call.results) torch::jit::push(*stack, std::move(result));
  return nullptr;
}

}  // namespace opkit::npu
