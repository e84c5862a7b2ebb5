/// Launching opkit's own kernels from C++ programs: those that are shipped beside the emulator's library.
#pragma once

#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "opkit/direct_launch.h"
#include "opkit/kernel_call.h"
#include "opkit/stream_order.h"

namespace td {

/// Memory that a kernel works on; null data is a null address.
struct KernelMemory {
  const void* data = nullptr;
  size_t bytes = 0;
};

template <typename T>
KernelMemory memory_of(const std::vector<T>& values) {
  return {values.data(), values.size() * sizeof(T)};
}

/// Runs a shipped kernel to its end. Throws std::runtime_error with what the device says.
inline void launch_kernel(const std::string& name, const std::vector<KernelMemory>& arguments, uint32_t block_dim) {
  static auto* opened = new std::map<std::string, opkit_kernel*>();
  static std::mutex lock;
  opkit_kernel* kernel = nullptr;
  {
    const std::lock_guard<std::mutex> guard(lock);
    opkit_kernel*& known = (*opened)[name];
    if (known == nullptr && opkit_kernel_open(opkit_shipped_kernels(), name.c_str(), &known) != OPKIT_OK) {
      throw std::runtime_error("[" + name + "] " + opkit_last_error());
    }
    kernel = known;
  }
  std::vector<opkit_kernel_argument> given;
  for (const KernelMemory& memory : arguments) {
    given.push_back({memory.bytes == 0 ? nullptr : const_cast<void*>(memory.data), memory.bytes, 0});
  }
  if (opkit_kernel_launch(kernel, given.data(), given.size(), block_dim, 0) != OPKIT_OK) {
    throw std::runtime_error("[" + name + "] " + opkit_last_error());
  }
}

/// Cores that kernels of the vector or the cube kind can have on the emulated chip.
inline int vector_cores() { return static_cast<int>(opkit_core_count(1)); }
inline int cube_cores() { return static_cast<int>(opkit_core_count(0)); }

}  // namespace td
