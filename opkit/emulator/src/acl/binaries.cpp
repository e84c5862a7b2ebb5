// Kernel libraries: loading them and finding their kernels.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "acl/binary.h"
#include "acl/error.h"

namespace opkit::acl {
namespace {

/// A file without a name that holds the bytes of a library; negative when the host has no room.
int file_of(const void* data, size_t length) {
  const int file = memfd_create("kernel_library", MFD_CLOEXEC);
  if (file < 0) return file;
  const auto* bytes = static_cast<const char*>(data);
  for (size_t done = 0; done < length;) {
    const ssize_t count = write(file, bytes + done, length - done);
    if (count <= 0) {
      close(file);
      return -1;
    }
    done += static_cast<size_t>(count);
  }
  return file;
}

aclError check_options(const aclrtBinaryLoadOptions* options, const char* function) {
  if (options == nullptr) return ACL_SUCCESS;
  if (options->numOpt != 0 && options->options == nullptr) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, function, "there are %llu options, and their pointer is null",
                static_cast<unsigned long long>(options->numOpt));
  }
  for (size_t i = 0; i < options->numOpt; ++i) {
    if (options->options[i].type == ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE) {
      return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, function, "opkit does not emulate the AI CPU");
    }
  }
  return ACL_SUCCESS;
}

aclError load_data(const void* data, size_t length, aclrtBinHandle* handle, const char* function) {
  if (data == nullptr || length == 0 || handle == nullptr) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, function, "there is no data, or no place for the handle");
  }
  const int file = file_of(data, length);
  if (file < 0) {
    return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, function, "there is no room for %llu bytes",
                static_cast<unsigned long long>(length));
  }
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  aclError error = ACL_SUCCESS;
  Binary* binary = open_binary(runtime, ("/proc/self/fd/" + std::to_string(file)).c_str(), function, &error);
  if (binary == nullptr) {
    close(file);
  } else {
    binary->file = file;
  }
  *handle = binary;
  return error;
}

}  // namespace

Binary* open_binary(Runtime& runtime, const char* path, const char* function, aclError* error) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    *error = fail(ACL_ERROR_RT_PARAM_INVALID, function, "cannot be loaded: %s", dlerror());
    return nullptr;
  }
  using Table = const KernelLibrary* (*)();
  const auto table = reinterpret_cast<Table>(dlsym(library, "opkit_kernel_library"));
  if (table == nullptr) {
    *error =
        fail(ACL_ERROR_RT_PARAM_INVALID, function, "no kernel library: build it with \"opkit cc --kernel-library\"");
    dlclose(library);
    return nullptr;
  }
  auto* binary = new Binary{library, table(), {}, -1};
  if (binary->table->abi_version != kAbiVersion || binary->table->table_fingerprint != table_fingerprint()) {
    *error = fail(ACL_ERROR_RT_PARAM_INVALID, function, "built by another version of opkit: build it again");
    dlclose(library);
    delete binary;
    return nullptr;
  }
  runtime.binaries.insert(binary);
  return binary;
}

void close_binary(Runtime& runtime, Binary* binary) {
  runtime.binaries.erase(binary);
  dlclose(binary->library);
  if (binary->file >= 0) close(binary->file);
  delete binary;
}

const Function* find_function(Runtime& runtime, aclrtFuncHandle handle, const char* function, aclError* error) {
  for (const Binary* binary : runtime.binaries) {
    for (const auto& [kernel, candidate] : binary->functions) {
      if (candidate.get() == handle) return candidate.get();
    }
  }
  *error = fail(ACL_ERROR_RT_PARAM_INVALID, function,
                "%p is no kernel of a loaded library: aclrtBinaryGetFunction gives one; a kernel of the program itself "
                "is launched with <<<>>>",
                handle);
  return nullptr;
}

std::string linker_name(const LibraryKernel& kernel) {
  Dl_info info{};
  if (dladdr(kernel.address, &info) == 0 || info.dli_sname == nullptr) return kernel.entry.name;
  // A kernel that is not exported is found under the name of what lies in front of it.
  return info.dli_saddr == kernel.address ? info.dli_sname : kernel.entry.name;
}

const LibraryKernel* find_kernel(const KernelLibrary& library, const std::string& name) {
  for (const LibraryKernel* kernel = library.kernels; kernel != nullptr; kernel = kernel->next) {
    if (name == kernel->entry.name || name == linker_name(*kernel)) return kernel;
  }
  return nullptr;
}

}  // namespace opkit::acl

using namespace opkit;
using namespace opkit::acl;

aclError aclrtBinaryLoadFromFile(const char* path, aclrtBinaryLoadOptions* options, aclrtBinHandle* handle) {
  if (path == nullptr || handle == nullptr) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtBinaryLoadFromFile", "a pointer is null");
  }
  if (const aclError error = check_options(options, "aclrtBinaryLoadFromFile")) return error;
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  aclError error = ACL_SUCCESS;
  // A name without a slash would be looked for among the system's libraries.
  const std::string place = std::strchr(path, '/') == nullptr ? std::string("./") + path : path;
  *handle = open_binary(runtime, place.c_str(), "aclrtBinaryLoadFromFile", &error);
  return error;
}

aclError aclrtBinaryLoadFromData(const void* data, size_t length, const aclrtBinaryLoadOptions* options,
                                 aclrtBinHandle* handle) {
  if (const aclError error = check_options(options, "aclrtBinaryLoadFromData")) return error;
  return load_data(data, length, handle, "aclrtBinaryLoadFromData");
}

aclError aclrtBinaryUnLoad(aclrtBinHandle handle) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  auto* binary = static_cast<Binary*>(handle);
  if (runtime.binaries.count(binary) == 0) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtBinaryUnLoad", "%p is no loaded library", handle);
  }
  drain_all(runtime);  // its kernels may be queued
  close_binary(runtime, binary);
  return ACL_SUCCESS;
}

aclrtBinary aclrtCreateBinary(const void* data, size_t length) {
  if (data == nullptr || length == 0) {
    fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtCreateBinary", "there is no data");
    return nullptr;
  }
  return new std::string(static_cast<const char*>(data), length);
}

aclError aclrtDestroyBinary(aclrtBinary binary) {
  if (binary == nullptr) return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtDestroyBinary", "the pointer is null");
  delete static_cast<std::string*>(binary);
  return ACL_SUCCESS;
}

aclError aclrtBinaryLoad(const aclrtBinary binary, aclrtBinHandle* handle) {
  if (binary == nullptr) return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtBinaryLoad", "the pointer is null");
  const auto& data = *static_cast<const std::string*>(binary);
  return load_data(data.data(), data.size(), handle, "aclrtBinaryLoad");
}

aclError aclrtBinaryGetFunction(const aclrtBinHandle handle, const char* name, aclrtFuncHandle* function) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  if (name == nullptr || function == nullptr) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtBinaryGetFunction", "a pointer is null");
  }
  auto* binary = static_cast<Binary*>(handle);
  if (runtime.binaries.count(binary) == 0) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtBinaryGetFunction", "%p is no loaded library", handle);
  }
  const LibraryKernel* kernel = find_kernel(*binary->table, name);
  if (kernel == nullptr) {
    std::string known;
    for (const LibraryKernel* one = binary->table->kernels; one != nullptr; one = one->next) {
      known += (known.empty() ? "" : ", ") + std::string(one->entry.name);
    }
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtBinaryGetFunction", "there is no kernel \"%s\"; there is: %s", name,
                known.empty() ? "none" : known.c_str());
  }
  std::unique_ptr<Function>& found = binary->functions[kernel];
  if (found == nullptr) found = std::make_unique<Function>(Function{binary, kernel});
  *function = found.get();
  return ACL_SUCCESS;
}

aclError aclrtGetFunctionName(aclrtFuncHandle handle, uint32_t capacity, char* name) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  aclError error = ACL_SUCCESS;
  const Function* function = find_function(runtime, handle, "aclrtGetFunctionName", &error);
  if (function == nullptr) return error;
  const std::string text = linker_name(*function->kernel);
  if (name == nullptr || capacity <= text.size()) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtGetFunctionName", "\"%s\" needs %llu bytes, and there are %u",
                text.c_str(), static_cast<unsigned long long>(text.size() + 1), capacity);
  }
  std::memcpy(name, text.c_str(), text.size() + 1);
  return ACL_SUCCESS;
}
