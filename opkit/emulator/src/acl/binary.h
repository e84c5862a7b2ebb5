/// Loaded kernel libraries, and lists of arguments for their kernels.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "acl/state.h"
#include "opkit/kernel_library.h"

namespace opkit::acl {

/// One kernel of a loaded library; what an aclrtFuncHandle points at.
struct Function {
  Binary* binary = nullptr;
  const LibraryKernel* kernel = nullptr;
};

/// One loaded library; what an aclrtBinHandle points at.
struct Binary {
  void* library = nullptr;  ///< of dlopen
  const KernelLibrary* table = nullptr;
  std::map<const LibraryKernel*, std::unique_ptr<Function>> functions;  ///< those that were asked for
  int file = -1;  ///< holds the bytes of a library that came as data; its number is the library's name while loaded
};

/// Values for a kernel's parameters, in its order.
struct ArgumentList {
  const Function* function = nullptr;
  std::vector<std::vector<uint8_t>> values;
  bool is_final = false;
};

/// Ends a loaded library.
void close_binary(Runtime& runtime, Binary* binary);

/// Opens a kernel library; null after having failed as `function`.
Binary* open_binary(Runtime& runtime, const char* path, const char* function, aclError* error);

/// The kernel behind a handle; null after having failed as `function`.
const Function* find_function(Runtime& runtime, aclrtFuncHandle handle, const char* function, aclError* error);

/// The linker's name of a kernel where the library exports it, else its name in the source.
std::string linker_name(const LibraryKernel& kernel);

/// Finds a kernel of a library by its name in the source, its linker name or its name expression.
const LibraryKernel* find_kernel(const KernelLibrary& library, const std::string& name);

/// Launches with values[i] copied from pointers[i].
aclError launch_function(Runtime& runtime, const Function& function, uint32_t blocks, aclrtStream stream,
                         void* const* pointers, const char* caller);

}  // namespace opkit::acl
