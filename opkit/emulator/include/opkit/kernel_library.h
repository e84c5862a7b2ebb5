/// What a kernel library exports: the shared object that `opkit cc --kernel-library` makes, and that
/// aclrtBinaryLoadFromFile and aclrtBinaryLoadFromData load. The compiler driver adds an entry behind every kernel.
#pragma once

#include <cstdint>
#include <type_traits>

#include "opkit/arch.h"
#include "opkit/kernel_entry.h"

namespace opkit {

/// Size and alignment of a kernel's parameter.
struct LibraryArgument {
  uint32_t bytes;
  uint32_t alignment;
};

/// One kernel of a library; linked into a list when the library is loaded.
struct LibraryKernel {
  KernelEntry entry;  ///< its name is as the source has it: without namespaces, or a name expression
  const LibraryArgument* arguments;
  const void* address;  ///< of the function, for its linker name
  const LibraryKernel* next;
};

/// What the function `opkit_kernel_library` of a kernel library returns.
struct KernelLibrary {
  uint32_t abi_version;
  uint32_t table_fingerprint;
  uint32_t npu_arch;
  const LibraryKernel* kernels;  ///< a list
};

#ifndef OPKIT_BUILDING_EMULATOR
// All hidden but the function at the end: each library has its own list, whatever else is loaded.
namespace detail {

__attribute__((visibility("hidden"))) inline const LibraryKernel* library_kernels = nullptr;

template <typename Function>
struct LibraryArguments;

template <typename... Arguments>
struct LibraryArguments<void (*)(Arguments...)> {
  static_assert((std::is_trivially_copyable_v<Arguments> && ...), "a kernel's arguments are copied byte by byte");
  // Never empty: a kernel without arguments has no use for it.
  static constexpr LibraryArgument kList[] = {
      LibraryArgument{static_cast<uint32_t>(sizeof(Arguments)), static_cast<uint32_t>(alignof(Arguments))}...,
      LibraryArgument{0, 0}};
};

}  // namespace detail

/// Adds a kernel to the library's list.
template <auto kernel>
struct __attribute__((visibility("hidden"))) AddLibraryKernel {
  AddLibraryKernel(const char* name, KernelMode mode) {
    using Function = decltype(kernel);
    using Invoker = detail::Invoker<Function>;
    static const LibraryKernel self = {{name, &Invoker::template invoke<kernel>, Invoker::kCount, mode},
                                       detail::LibraryArguments<Function>::kList,
                                       reinterpret_cast<const void*>(kernel),
                                       detail::library_kernels};
    detail::library_kernels = &self;
  }
};

namespace detail {

__attribute__((visibility("hidden"))) inline const KernelLibrary* this_library() {
  static const KernelLibrary library = {kAbiVersion, table_fingerprint(), __NPU_ARCH__, library_kernels};
  return &library;
}

}  // namespace detail
#endif
}  // namespace opkit

#ifndef OPKIT_BUILDING_EMULATOR
extern "C" __attribute__((visibility("default"), used)) inline const ::opkit::KernelLibrary* opkit_kernel_library() {
  return ::opkit::detail::this_library();
}
#endif
