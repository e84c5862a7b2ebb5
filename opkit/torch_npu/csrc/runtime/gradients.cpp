// PyTorch's threads of gradients, one for each device: that they are there, and at rest in the end.
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include "runtime/device.h"
#include "opkit/device_memory.h"

namespace opkit::npu {
namespace {

using torch::autograd::Engine;

/// What the engine keeps to itself and those that derive from it.
struct EngineParts : Engine {
  static constexpr auto kPool = &EngineParts::thread_pool_shared_;
  static constexpr auto kQueues = &EngineParts::device_ready_queues_;
  static constexpr auto kStart = &EngineParts::start_device_threads;
};

/// Has the device's thread of gradients walk a graph without a node of Python: it takes its tasks one by one, so it
/// has dropped every earlier one by then, and drops this one without the interpreter's lock.
void settle(c10::DeviceIndex device) {
  const at::AutoGradMode with_gradient(true);
  const auto options = at::TensorOptions().device(c10::Device(kDevice, device));
  const at::Tensor leaf = at::empty({0}, options).requires_grad_();
  const torch::autograd::edge_list root = {torch::autograd::impl::gradient_edge(leaf.view({0}))};
  const torch::autograd::edge_list ends = {torch::autograd::impl::gradient_edge(leaf)};
  Engine::get_default_engine().execute(root, {at::empty({0}, options)}, false, false, false, ends);
}

}  // namespace

void start_gradient_threads() {
  Engine& engine = Engine::get_default_engine();
  const bool has_begun = engine.*EngineParts::kPool != nullptr;
  if (has_begun && (engine.*EngineParts::kQueues).empty()) (engine.*EngineParts::kStart)();
}

/// What opkit/torch_npu/native.py calls when the process ends, without the interpreter's lock. `backward()` returns
/// before the device's thread has dropped the graph's objects of Python; a thread that asks the interpreter for its
/// lock while it shuts down is ended in the middle of a destructor, and the process with it (torch 2.13, any device
/// with threads of its own).
extern "C" __attribute__((visibility("default"))) void opkit_npu_settle() {
  for (c10::DeviceIndex device = 0; device < opkit_memory_devices(); ++device) {
    try {
      settle(device);
    } catch (const std::exception&) {
      // After a fork the engine has no threads and refuses: there is nothing to wait for.
    }
  }
}

}  // namespace opkit::npu
