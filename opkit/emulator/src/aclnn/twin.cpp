// Kernels called as functions: memory is the device's, launches run at once.
#include "opkit/twin.h"

#include <cstdio>
#include <mutex>
#include <string>

#include "acl/error.h"
#include "acl/state.h"
#include "host/launch_run.h"

namespace {

thread_local std::string last_error;

const char* refuse(const opkit_twin_launch& launch, const std::string& reason) {
  last_error = std::string(launch.kernel) + ": " + reason;
  return last_error.c_str();
}

}  // namespace

void* opkit_twin_allocate(size_t size_bytes) {
  opkit::acl::Runtime& runtime = opkit::acl::Runtime::get();
  const std::lock_guard<std::recursive_mutex> guard(runtime.lock);
  // Not followed: the host writes it without telling anybody.
  return runtime.memory.allocate_device(size_bytes, uint8_t{0}, false);
}

void opkit_twin_free(void* pointer) {
  if (pointer == nullptr) return;
  opkit::acl::Runtime& runtime = opkit::acl::Runtime::get();
  const std::lock_guard<std::recursive_mutex> guard(runtime.lock);
  if (runtime.memory.free_device(pointer) != ACL_SUCCESS) {
    std::fprintf(stderr, "error: GmFree: %p is no memory of GmAlloc, or was freed before\n", pointer);
  }
}

const char* opkit_run_twin(const opkit_twin_launch* given) {
  using namespace opkit;
  if (given->abi_version != kAbiVersion || given->table_fingerprint != table_fingerprint()) {
    return refuse(*given, "this program was built by another version of opkit: build it again");
  }
  if (given->block_dim < 1 || given->block_dim > 65535) {
    return refuse(*given, std::to_string(given->block_dim) + " blocks: a launch has 1 to 65535");
  }
  acl::Runtime& runtime = acl::Runtime::get();
  const std::lock_guard<std::recursive_mutex> guard(runtime.lock);
  if (Device::get().chip().traits().number != given->npu_arch) {
    return refuse(*given, "compiled for dav-" + std::to_string(given->npu_arch) + ", and the chip is " +
                              Device::get().chip().name + ": choose another, or compile with --npu-arch");
  }
  Launch launch;
  launch.kernel = given->kernel;
  launch.invoke = given->invoke;
  launch.arguments = given->arguments;
  launch.mode = static_cast<KernelMode>(given->mode);
  launch.block_dim = static_cast<uint32_t>(given->block_dim);
  launch.tiling_key = given->tiling_key;
  launch.gm = runtime.memory.device_ranges();
  launch.freed = runtime.memory.freed_ranges();
  launch.host = runtime.memory.host_ranges();
  const LaunchRecord record = Device::get().run(launch);
  std::fflush(stdout);
  if (record.fault.fault == Fault::None) {
    const std::string overrun = runtime.memory.overrun_text();
    return overrun.empty() ? nullptr : refuse(*given, "it has written " + overrun);
  }
  last_error = host::fault_text(record.fault);
  return last_error.c_str();
}
