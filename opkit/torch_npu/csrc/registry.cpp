#include "registry.h"

#include <torch/library.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "fallback.h"
#include "launch.h"
#include "opkit/direct_launch.h"

namespace opkit::npu {
namespace {

std::mutex registry_lock;

void add_to(std::map<std::string, std::vector<Kernel>>& rows, Kernel kernel) {
  std::vector<Kernel>& there = rows[kernel.op];
  for (const Kernel& other : there) {
    TORCH_CHECK(other.priority != kernel.priority, "the operator ", kernel.op, " has a kernel of priority ",
                kernel.priority, " already: \"", other.name, "\"; \"", kernel.name, "\" needs another priority");
  }
  there.push_back(std::move(kernel));
  std::sort(there.begin(), there.end(), [](const Kernel& a, const Kernel& b) { return a.priority > b.priority; });
}

std::optional<c10::ScalarType> type_of(const c10::OperatorHandle& op, const c10::Stack& stack) {
  const size_t count = op.schema().arguments().size();
  for (size_t i = stack.size() - count; i < stack.size(); ++i) {
    if (stack[i].isTensor() && stack[i].toTensor().defined()) return stack[i].toTensor().scalar_type();
  }
  return std::nullopt;
}

/// What the dispatcher calls: the registry's choice, else the CPU.
class Dispatch final : public c10::OperatorKernel {
 public:
  explicit Dispatch(std::string op) : op_(std::move(op)) {}
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, c10::Stack* stack) {
    const char* reason = "the device's kernels are still being compiled";
    if (has_kernels()) {
      for (const Kernel* kernel : Registry::get().candidates(op_, type_of(op, *stack))) {
        reason = kernel->serve(op, stack);
        if (reason == nullptr) {
          count_native(op);
          return;
        }
      }
    }
    run_on_cpu(op, stack, reason);
  }

 private:
  const std::string op_;
};

}  // namespace

Registry& Registry::get() {
  static auto* registry = new Registry();
  return *registry;
}

void Registry::add(Kernel kernel) {
  const std::lock_guard<std::mutex> guard(registry_lock);
  if (kernel.dtype.has_value()) {
    add_to(by_type_[*kernel.dtype], std::move(kernel));
  } else if (!kernel.device.empty()) {
    add_to(by_device_[kernel.device], std::move(kernel));
  } else {
    add_to(global_, std::move(kernel));
  }
}

std::vector<const Kernel*> Registry::candidates(const std::string& op, std::optional<c10::ScalarType> dtype) const {
  std::vector<const Kernel*> found;
  const auto collect = [&](const Rows& rows) {
    const auto row = rows.find(op);
    if (row == rows.end()) return;
    for (const Kernel& kernel : row->second) found.push_back(&kernel);
  };
  if (dtype.has_value() && !by_type_.empty()) {
    const auto rows = by_type_.find(*dtype);
    if (rows != by_type_.end()) collect(rows->second);
  }
  if (!by_device_.empty()) {
    const auto rows = by_device_.find(opkit_chip_name());
    if (rows != by_device_.end()) collect(rows->second);
  }
  collect(global_);
  return found;
}

namespace {
std::vector<std::string>& native_ops() {
  static auto* ops = new std::vector<std::string>();
  return *ops;
}
}  // namespace

void add_native(const std::string& op, const char* kernel, Serve serve) {
  Registry::get().add({"aten::" + op, kernel, 0, "", std::nullopt, std::move(serve)});
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
  for (const opkit::npu::Kernel* kernel : opkit::npu::Registry::get().candidates(name, type)) {
    if (text.size() > 1) text += ',';
    text += "{\"kernel\":\"" + kernel->name + "\",\"priority\":" + std::to_string(kernel->priority) + ",\"table\":\"" +
            (kernel->dtype            ? "type"
             : kernel->device.empty() ? "global"
                                      : "device") +
            "\"}";
  }
  text += "]";
  return text.c_str();
}
