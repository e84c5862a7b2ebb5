// Launches of kernels that were found in a library: their arguments come as bytes.
#include <cstring>

#include "acl/binary.h"
#include "acl/error.h"

namespace opkit::acl {
namespace {

using ull = unsigned long long;

/// A kernel with copies of its arguments, each aligned as its type asks.
struct FunctionCall {
  explicit FunctionCall(const LibraryKernel& called) : kernel(called) {
    for (uint32_t i = 0; i < kernel.entry.argument_count; ++i) {
      const LibraryArgument& argument = kernel.arguments[i];
      pointers.push_back(::operator new(argument.bytes, std::align_val_t(argument.alignment)));
    }
  }
  FunctionCall(const FunctionCall&) = delete;
  FunctionCall& operator=(const FunctionCall&) = delete;
  ~FunctionCall() {
    for (size_t i = 0; i < pointers.size(); ++i) {
      ::operator delete(pointers[i], std::align_val_t(kernel.arguments[i].alignment));
    }
  }

  static void invoke(void* const* arguments) {
    const auto& self = *static_cast<const FunctionCall*>(arguments[0]);
    self.kernel.entry.invoke(self.pointers.data());
  }

  const LibraryKernel& kernel;
  std::vector<void*> pointers;
};

/// Where each argument lies in memory that holds them all, each at a multiple of its alignment.
std::vector<uint64_t> packed_offsets(const LibraryKernel& kernel, uint64_t* total) {
  std::vector<uint64_t> offsets;
  uint64_t end = 0;
  for (uint32_t i = 0; i < kernel.entry.argument_count; ++i) {
    const LibraryArgument& argument = kernel.arguments[i];
    end = (end + argument.alignment - 1) / argument.alignment * argument.alignment;
    offsets.push_back(end);
    end += argument.bytes;
  }
  *total = end;
  return offsets;
}

/// Attributes that only steer a chip's scheduler change no result here; the others would.
aclError check_config(const aclrtLaunchKernelCfg* config, const char* caller) {
  if (config == nullptr) return ACL_SUCCESS;
  if (config->numAttrs != 0 && config->attrs == nullptr) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, caller, "there are %llu attributes, and their pointer is null",
                static_cast<ull>(config->numAttrs));
  }
  for (size_t i = 0; i < config->numAttrs; ++i) {
    switch (config->attrs[i].id) {
      case ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE:
      case ACL_RT_LAUNCH_KERNEL_ATTR_BLOCK_TASK_PREFETCH:
      case ACL_RT_LAUNCH_KERNEL_ATTR_DATA_DUMP:
      case ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT: break;
      default:
        return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, caller, "opkit does not emulate launch attribute %d",
                    static_cast<int>(config->attrs[i].id));
    }
  }
  return ACL_SUCCESS;
}

aclError launch_packed(Runtime& runtime, const Function& function, uint32_t blocks, aclrtStream stream,
                       const void* arguments, size_t size, const char* caller) {
  uint64_t total = 0;
  const std::vector<uint64_t> offsets = packed_offsets(*function.kernel, &total);
  if (size < total || (arguments == nullptr && total != 0)) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, caller, "the arguments of %s take %llu bytes, and there are %llu",
                function.kernel->entry.name, static_cast<ull>(total), static_cast<ull>(arguments ? size : 0));
  }
  std::vector<void*> pointers;
  const auto* bytes = static_cast<const uint8_t*>(arguments);
  for (const uint64_t offset : offsets) pointers.push_back(const_cast<uint8_t*>(bytes) + offset);
  return launch_function(runtime, function, blocks, stream, pointers.data(), caller);
}

aclError launch_from_device(aclrtFuncHandle handle, uint32_t blocks, const void* arguments, size_t size,
                            const aclrtLaunchKernelCfg* config, aclrtStream stream, const char* caller) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  aclError error = ACL_SUCCESS;
  const Function* function = find_function(runtime, handle, caller, &error);
  if (function == nullptr) return error;
  if ((error = check_config(config, caller)) != ACL_SUCCESS) return error;
  const Allocation* allocation = nullptr;
  if (size != 0 && runtime.memory.side_of(arguments, &allocation) != Side::Device) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, caller, "%p is no device memory, where the arguments have to lie",
                arguments);
  }
  const uint64_t begin = reinterpret_cast<uint64_t>(arguments);
  if (size != 0 && allocation != nullptr && begin + size > allocation->begin + allocation->usable_bytes) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, caller, "%llu bytes of arguments reach behind their device memory",
                static_cast<ull>(size));
  }
  return launch_packed(runtime, *function, blocks, stream, arguments, size, caller);
}

ArgumentList* find_list(aclrtArgsHandle handle, const char* caller, aclError* error) {
  if (handle != nullptr) return static_cast<ArgumentList*>(handle);
  *error = fail(ACL_ERROR_RT_PARAM_INVALID, caller, "the list of arguments is null");
  return nullptr;
}

aclError check_value(const ArgumentList& list, size_t index, const void* value, size_t size, const char* caller) {
  const LibraryKernel& kernel = *list.function->kernel;
  if (index >= kernel.entry.argument_count) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, caller, "%s has %u arguments, and this is number %llu", kernel.entry.name,
                kernel.entry.argument_count, static_cast<ull>(index + 1));
  }
  if (value == nullptr || size != kernel.arguments[index].bytes) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, caller, "argument %llu of %s has %u bytes, and %llu are given",
                static_cast<ull>(index + 1), kernel.entry.name, kernel.arguments[index].bytes,
                static_cast<ull>(value ? size : 0));
  }
  return ACL_SUCCESS;
}

}  // namespace

aclError launch_function(Runtime& runtime, const Function& function, uint32_t blocks, aclrtStream stream,
                         void* const* pointers, const char* caller) {
  const LibraryKernel& kernel = *function.kernel;
  aclError error = ACL_SUCCESS;
  Stream* found = find_stream(runtime, stream, caller, &error);
  if (found == nullptr) return error;
  const auto call = std::make_shared<FunctionCall>(kernel);
  for (uint32_t i = 0; i < kernel.entry.argument_count; ++i) {
    if (pointers == nullptr || pointers[i] == nullptr) {
      return fail(ACL_ERROR_RT_PARAM_INVALID, caller, "argument %u of %s is null", i + 1, kernel.entry.name);
    }
    std::memcpy(call->pointers[i], pointers[i], kernel.arguments[i].bytes);
  }
  LaunchConfig config(kernel.entry.name, kernel.entry.mode, blocks, nullptr, stream, Where{caller, 0});
  config.npu_arch = function.binary->table->npu_arch;
  return queue_launch(runtime, *found, config, &FunctionCall::invoke, call);
}

}  // namespace opkit::acl

using namespace opkit::acl;

aclError aclrtKernelArgsInit(aclrtFuncHandle handle, aclrtArgsHandle* arguments) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  aclError error = ACL_SUCCESS;
  const Function* function = find_function(runtime, handle, "aclrtKernelArgsInit", &error);
  if (function == nullptr) return error;
  if (arguments == nullptr) return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtKernelArgsInit", "the pointer is null");
  // There is no call that ends a list, on a chip either: a launch may follow at any time.
  *arguments = new ArgumentList{function, {}, false};
  return ACL_SUCCESS;
}

aclError aclrtKernelArgsAppend(aclrtArgsHandle handle, void* value, size_t size, aclrtParamHandle* parameter) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  aclError error = ACL_SUCCESS;
  ArgumentList* list = find_list(handle, "aclrtKernelArgsAppend", &error);
  if (list == nullptr) return error;
  const size_t index = list->values.size();
  if (list->is_final) return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtKernelArgsAppend", "the list was finalized");
  if ((error = check_value(*list, index, value, size, "aclrtKernelArgsAppend")) != ACL_SUCCESS) return error;
  const auto* bytes = static_cast<const uint8_t*>(value);
  list->values.emplace_back(bytes, bytes + size);
  if (parameter != nullptr) *parameter = reinterpret_cast<aclrtParamHandle>(index + 1);
  return ACL_SUCCESS;
}

aclError aclrtKernelArgsParaUpdate(aclrtArgsHandle handle, aclrtParamHandle parameter, void* value, size_t size) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  aclError error = ACL_SUCCESS;
  ArgumentList* list = find_list(handle, "aclrtKernelArgsParaUpdate", &error);
  if (list == nullptr) return error;
  const size_t index = reinterpret_cast<size_t>(parameter) - 1;
  if (index >= list->values.size()) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtKernelArgsParaUpdate", "the list has no such argument");
  }
  if ((error = check_value(*list, index, value, size, "aclrtKernelArgsParaUpdate")) != ACL_SUCCESS) return error;
  const auto* bytes = static_cast<const uint8_t*>(value);
  list->values[index].assign(bytes, bytes + size);
  return ACL_SUCCESS;
}

aclError aclrtKernelArgsFinalize(aclrtArgsHandle handle) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  aclError error = ACL_SUCCESS;
  ArgumentList* list = find_list(handle, "aclrtKernelArgsFinalize", &error);
  if (list == nullptr) return error;
  list->is_final = true;
  return ACL_SUCCESS;
}

aclError aclrtLaunchKernel(aclrtFuncHandle function, uint32_t blocks, const void* arguments, size_t size,
                           aclrtStream stream) {
  return launch_from_device(function, blocks, arguments, size, nullptr, stream, "aclrtLaunchKernel");
}

aclError aclrtLaunchKernelV2(aclrtFuncHandle function, uint32_t blocks, const void* arguments, size_t size,
                             aclrtLaunchKernelCfg* config, aclrtStream stream) {
  return launch_from_device(function, blocks, arguments, size, config, stream, "aclrtLaunchKernelV2");
}

aclError aclrtLaunchKernelWithConfig(aclrtFuncHandle handle, uint32_t blocks, aclrtStream stream,
                                     aclrtLaunchKernelCfg* config, aclrtArgsHandle arguments, void* reserved) {
  (void)reserved;
  const char* caller = "aclrtLaunchKernelWithConfig";
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  aclError error = ACL_SUCCESS;
  const Function* function = find_function(runtime, handle, caller, &error);
  if (function == nullptr) return error;
  ArgumentList* list = find_list(arguments, caller, &error);
  if (list == nullptr) return error;
  if ((error = check_config(config, caller)) != ACL_SUCCESS) return error;
  const uint32_t wanted = function->kernel->entry.argument_count;
  if (list->function != function || !list->is_final || list->values.size() != wanted) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, caller,
                "the list has %llu arguments and %s; %s wants %u of its own, finalized",
                static_cast<ull>(list->values.size()), list->is_final ? "is finalized" : "is not finalized",
                function->kernel->entry.name, wanted);
  }
  std::vector<void*> pointers;
  for (std::vector<uint8_t>& value : list->values) pointers.push_back(value.data());
  return launch_function(runtime, *function, blocks, stream, pointers.data(), caller);
}

aclError aclrtLaunchKernelWithHostArgs(aclrtFuncHandle handle, uint32_t blocks, aclrtStream stream,
                                       aclrtLaunchKernelCfg* config, void* arguments, size_t size,
                                       aclrtPlaceHolderInfo* placeholders, size_t placeholder_count) {
  const char* caller = "aclrtLaunchKernelWithHostArgs";
  (void)placeholders;
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  aclError error = ACL_SUCCESS;
  const Function* function = find_function(runtime, handle, caller, &error);
  if (function == nullptr) return error;
  if ((error = check_config(config, caller)) != ACL_SUCCESS) return error;
  if (placeholder_count != 0) {
    return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, caller, "opkit has no placeholders, and there are %llu",
                static_cast<ull>(placeholder_count));
  }
  return launch_packed(runtime, *function, blocks, stream, arguments, size, caller);
}

aclError aclrtLaunchKernelWithArgsArray(void* handle, uint32_t blocks, aclrtStream stream, aclrtLaunchKernelCfg* config,
                                        void** arguments) {
  const char* caller = "aclrtLaunchKernelWithArgsArray";
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  aclError error = ACL_SUCCESS;
  const Function* function = find_function(runtime, handle, caller, &error);
  if (function == nullptr) return error;
  if ((error = check_config(config, caller)) != ACL_SUCCESS) return error;
  return launch_function(runtime, *function, blocks, stream, arguments, caller);
}
