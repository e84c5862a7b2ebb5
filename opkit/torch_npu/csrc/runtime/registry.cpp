#include "runtime/registry.h"

#include <torch/library.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "runtime/fallback.h"
#include "runtime/foreign.h"
#include "runtime/launch.h"
#include "runtime/layouts.h"
#include "opkit/operator_registry.h"
#include "runtime/outputs.h"

namespace opkit::npu {
namespace {

constexpr size_t kMostKernels = 32;

std::optional<c10::ScalarType> type_of(const c10::OperatorHandle& op, const c10::Stack& stack) {
  const size_t count = op.schema().arguments().size();
  for (size_t i = stack.size() - count; i < stack.size(); ++i) {
    if (stack[i].isTensor() && stack[i].toTensor().defined()) return stack[i].toTensor().scalar_type();
  }
  return std::nullopt;
}

int32_t number_of(std::optional<c10::ScalarType> type) { return type.has_value() ? ge_type(*type) : -1; }

bool has_complex_number(const c10::OperatorHandle& op, const c10::Stack& stack) {
  const size_t count = op.schema().arguments().size();
  return std::any_of(stack.end() - static_cast<std::ptrdiff_t>(count), stack.end(),
                     [](const c10::IValue& value) { return value.isComplexDouble(); });
}

/// What the dispatcher calls: the registry's choice, else the CPU.
class Dispatch final : public c10::OperatorKernel {
 public:
  explicit Dispatch(const std::string& op)
      : id_(opkit_registry_id(op.c_str())), check_(output_check(op)), row_(layout_row(op)) {}
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, c10::Stack* stack) {
    if (check_ != nullptr && prepare_outputs(check_, op, *stack)) return give_outputs(op, stack);
    // A factor of a product, say: kernels take it for a number of the type that they compute in.
    if (has_complex_number(op, *stack)) return run_on_cpu(op, stack, "a complex number");
    const opkit_operator* rows[kMostKernels];
    const size_t count = opkit_registry_candidates(id_, number_of(type_of(op, *stack)), nullptr, rows, kMostKernels);
    const bool are_compiled = has_kernels();
    const char* reason = "the device's kernels are still being compiled";
    const Layout layout(row_, op, *stack);
    for (size_t i = 0; i < count && i < kMostKernels; ++i) {
      if (rows[i]->kind == OPKIT_OPERATOR_TORCH) {
        if (!are_compiled) continue;
        reason = static_cast<const Kernel*>(rows[i]->self)->serve(op, stack);
      } else {
        reason = serve_foreign(*rows[i], op, stack);
      }
      if (reason == nullptr) count_native(op);
      if (reason == nullptr || reason == kDecomposed) return layout.give(op, *stack);
    }
    run_on_cpu(op, stack, reason);
  }

 private:
  /// The tensors of `out=` as they are.
  static void give_outputs(const c10::OperatorHandle& op, c10::Stack* stack) {
    const auto& arguments = op.schema().arguments();
    const c10::Stack given(stack->end() - static_cast<std::ptrdiff_t>(arguments.size()), stack->end());
    torch::jit::drop(*stack, arguments.size());
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].is_out()) stack->push_back(given[i]);
    }
    count_native(op);
  }

  const uint32_t id_;
  const OutputCheck check_;
  const LayoutRow* const row_;
};

std::vector<std::string>& native_ops() {
  static auto* ops = new std::vector<std::string>();
  return *ops;
}

}  // namespace

const std::vector<std::string>& native_operators() { return native_ops(); }

void add_kernel(Kernel kernel) {
  // Never destroyed: the registry's rows live as long as the process.
  const auto* kept = new Kernel(std::move(kernel));
  opkit_operator row{};
  row.op = kept->op.c_str();
  row.name = kept->name.c_str();
  row.priority = kept->priority;
  row.device = kept->device.empty() ? nullptr : kept->device.c_str();
  row.dtype = number_of(kept->dtype);
  row.kind = OPKIT_OPERATOR_TORCH;
  row.self = const_cast<Kernel*>(kept);
  TORCH_CHECK(opkit_registry_add(&row) == OPKIT_OK, opkit_last_error());
}

void add_native(const std::string& op, const char* kernel, Serve serve) {
  add_kernel({"aten::" + op, kernel, 0, "", std::nullopt, std::move(serve)});
  native_ops().push_back(op);
}

void register_natives() {
  static auto* library =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  for (const std::string& op : native_ops()) {
    library->impl(op.c_str(), torch::CppFunction::makeFromBoxedKernel(c10::BoxedKernel::makeFromFunctor<Dispatch>(
                                  std::make_unique<Dispatch>("aten::" + op))));
  }
}

}  // namespace opkit::npu

/// The kernels that are registered for an operator, as JSON; `name` is aten::add.out or the like.
extern "C" __attribute__((visibility("default"))) const char* opkit_npu_which(const char* name, int dtype) {
  static thread_local std::string text;
  text = "[";
  const auto type = dtype < 0 ? std::nullopt : std::optional<c10::ScalarType>(static_cast<c10::ScalarType>(dtype));
  const opkit_operator* rows[opkit::npu::kMostKernels];
  const size_t count = opkit_registry_candidates(opkit_registry_id(name), opkit::npu::number_of(type), nullptr, rows,
                                                 opkit::npu::kMostKernels);
  for (size_t i = 0; i < count && i < opkit::npu::kMostKernels; ++i) {
    if (text.size() > 1) text += ',';
    text += "{\"kernel\":\"" + std::string(rows[i]->name) + "\",\"priority\":" + std::to_string(rows[i]->priority) +
            ",\"table\":\"" +
            (rows[i]->dtype >= 0          ? "type"
             : rows[i]->device == nullptr ? "global"
                                          : "device") +
            "\"}";
  }
  text += "]";
  return text.c_str();
}
