// Allocation, copies and fills, as programs call them.
#include <unistd.h>

#include <cstring>

#include "acl/caller.h"
#include "acl/error.h"
#include "acl/memory_check.h"
#include "acl/state.h"
#include "observe/checks.h"

using namespace opkit::acl;
using ull = unsigned long long;

namespace {

aclError check_new(void** pointer, size_t size, const char* function) {
  if (pointer == nullptr) return fail(ACL_ERROR_RT_PARAM_INVALID, function, "the pointer is null");
  if (size == 0) return fail(ACL_ERROR_RT_PARAM_INVALID, function, "the size is 0");
  if (current_context() == nullptr) {
    return fail(ACL_ERROR_RT_CONTEXT_NULL, function, "there is no device yet: call aclrtSetDevice on this thread");
  }
  return ACL_SUCCESS;
}

aclError allocate_device(void** pointer, size_t size, aclrtMemMallocPolicy policy, const char* function) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  if (const aclError error = check_new(pointer, size, function)) return error;
  if (policy < ACL_MEM_MALLOC_HUGE_FIRST || policy > ACL_MEM_MALLOC_NORMAL_ONLY_P2P) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, function, "%d is no allocation policy", static_cast<int>(policy));
  }
  const opkit::CheckOptions* checks = opkit::running_checks();
  const bool is_followed = checks != nullptr && (checks->init || checks->unused);
  *pointer = runtime.memory.allocate_device(size, opkit::Device::get().config().fill(), is_followed);
  if (*pointer != nullptr) return ACL_SUCCESS;
  return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, function, "there is no room for %llu bytes", static_cast<ull>(size));
}

const char* role_word(bool is_destination) { return is_destination ? "destination" : "source"; }

/// Whether one end of a transfer lies where the transfer's kind says, with all of its bytes.
aclError check_end(const Runtime& runtime, const void* pointer, size_t count, bool is_destination, Side wanted,
                   const char* function) {
  const char* role = role_word(is_destination);
  if (pointer == nullptr) return fail(ACL_ERROR_RT_PARAM_INVALID, function, "the %s is null", role);
  const Allocation* allocation = nullptr;
  const Side side = runtime.memory.side_of(pointer, &allocation);
  if (side == Side::Freed) {
    return fail_memory("MEM-FREED", function, "free device memory once its last task has run",
                       "the %s %p is device memory that was freed (use after free)", role, pointer);
  }
  if (wanted == Side::Device && side != Side::Device) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, function,
                "the %s %p is host memory, and the kind of this call wants device memory", role, pointer);
  }
  if (wanted == Side::Host && side == Side::Device) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, function,
                "the %s %p is device memory, and the kind of this call wants host memory", role, pointer);
  }
  if (allocation == nullptr) return ACL_SUCCESS;
  const uint64_t offset = reinterpret_cast<uint64_t>(pointer) - allocation->begin;
  if (offset + count <= allocation->usable_bytes) return ACL_SUCCESS;
  return fail_memory("MEM-BOUNDS", function, "allocate as many bytes as are moved",
                     "the %s has %llu bytes from here on in an allocation of %llu, fewer than the %llu to transfer",
                     role, static_cast<ull>(offset < allocation->bytes ? allocation->bytes - offset : 0),
                     static_cast<ull>(allocation->bytes), static_cast<ull>(count));
}

aclError check_copy(const Runtime& runtime, void* destination, size_t destination_bytes, const void* source,
                    size_t count, aclrtMemcpyKind kind, const char* function) {
  Side from = Side::Unknown;
  Side to = Side::Unknown;
  switch (kind) {
    case ACL_MEMCPY_HOST_TO_HOST: from = to = Side::Host; break;
    case ACL_MEMCPY_HOST_TO_DEVICE: from = Side::Host, to = Side::Device; break;
    case ACL_MEMCPY_DEVICE_TO_HOST: from = Side::Device, to = Side::Host; break;
    case ACL_MEMCPY_DEVICE_TO_DEVICE: from = to = Side::Device; break;
    case ACL_MEMCPY_DEFAULT: break;  // the addresses decide
    default: return fail(ACL_ERROR_RT_PARAM_INVALID, function, "%d is no kind of copy", static_cast<int>(kind));
  }
  if (count > destination_bytes) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, function, "%llu bytes do not fit into a destination of %llu",
                static_cast<ull>(count), static_cast<ull>(destination_bytes));
  }
  if (count == 0) return fail(ACL_ERROR_RT_PARAM_INVALID, function, "there are 0 bytes to copy");
  if (const aclError error = check_end(runtime, source, count, false, from, function)) return error;
  return check_end(runtime, destination, count, true, to, function);
}

aclError check_fill(const Runtime& runtime, void* destination, size_t destination_bytes, size_t count,
                    const char* function) {
  if (count > destination_bytes) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, function, "%llu bytes do not fit into a destination of %llu",
                static_cast<ull>(count), static_cast<ull>(destination_bytes));
  }
  return check_end(runtime, destination, count, true, Side::Unknown, function);
}

aclError broken_device(const Runtime& runtime) {
  return runtime.device_error == ACL_SUCCESS ? ACL_SUCCESS
                                             : fail_again(runtime.device_error, runtime.device_reason.c_str());
}

}  // namespace

aclError aclrtMalloc(void** pointer, size_t size, aclrtMemMallocPolicy policy) {
  const Caller caller(__builtin_return_address(0));
  return allocate_device(pointer, size, policy, "aclrtMalloc");
}

aclError aclrtMallocAlign32(void** pointer, size_t size, aclrtMemMallocPolicy policy) {
  const Caller caller(__builtin_return_address(0));
  return allocate_device(pointer, size, policy, "aclrtMallocAlign32");
}

aclError aclrtMallocCached(void** pointer, size_t size, aclrtMemMallocPolicy policy) {
  const Caller caller(__builtin_return_address(0));
  return allocate_device(pointer, size, policy, "aclrtMallocCached");
}

aclError aclrtFree(void* pointer) {
  const Caller caller(__builtin_return_address(0));
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  if (pointer == nullptr) return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtFree", "the pointer is null");
  // Public programs free what a queued kernel still uses, and get right results on the chip. A program under check is
  // told instead: nothing in the documents says that the call waits.
  if (opkit::running_checks() == nullptr) drain_all(runtime);
  return runtime.memory.free_device(pointer);
}

aclError aclrtMallocHost(void** pointer, size_t size) {
  const Caller caller(__builtin_return_address(0));
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  if (const aclError error = check_new(pointer, size, "aclrtMallocHost")) return error;
  *pointer = runtime.memory.allocate_host(size);
  if (*pointer != nullptr) return ACL_SUCCESS;
  return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "aclrtMallocHost", "there is no room for %llu bytes",
              static_cast<ull>(size));
}

aclError aclrtFreeHost(void* pointer) {
  const Caller caller(__builtin_return_address(0));
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  if (pointer == nullptr) return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtFreeHost", "the pointer is null");
  return runtime.memory.free_host(pointer);
}

aclError aclrtMemcpy(void* destination, size_t destination_bytes, const void* source, size_t count,
                     aclrtMemcpyKind kind) {
  const Caller caller(__builtin_return_address(0));
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  if (const aclError error = refuse_while_capturing(runtime, "aclrtMemcpy")) return error;
  if (const aclError error = check_copy(runtime, destination, destination_bytes, source, count, kind, "aclrtMemcpy")) {
    return error;
  }
  if (const aclError error = broken_device(runtime)) return error;
  runtime.memory.note_copy(destination, source, count);
  std::memmove(destination, source, count);
  return ACL_SUCCESS;
}

aclError aclrtMemcpyAsync(void* destination, size_t destination_bytes, const void* source, size_t count,
                          aclrtMemcpyKind kind, aclrtStream handle) {
  const Caller caller(__builtin_return_address(0));
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  aclError error = ACL_SUCCESS;
  Stream* stream = find_stream(runtime, handle, "aclrtMemcpyAsync", &error);
  if (stream == nullptr) return error;
  error = check_copy(runtime, destination, destination_bytes, source, count, kind, "aclrtMemcpyAsync");
  if (error != ACL_SUCCESS) return error;
  // Checked again when it runs: the program may have freed an end by then.
  submit(*stream, {[&runtime, destination, destination_bytes, source, count, kind]() -> aclError {
                     if (const aclError late = check_copy(runtime, destination, destination_bytes, source, count, kind,
                                                          "aclrtMemcpyAsync")) {
                       return late;
                     }
                     if (const aclError broken = broken_device(runtime)) return broken;
                     runtime.memory.note_copy(destination, source, count);
                     std::memmove(destination, source, count);
                     return ACL_SUCCESS;
                   },
                   nullptr, nullptr, "aclrtMemcpyAsync"});
  return ACL_SUCCESS;
}

aclError aclrtMemset(void* destination, size_t destination_bytes, int32_t value, size_t count) {
  const Caller caller(__builtin_return_address(0));
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  if (const aclError error = refuse_while_capturing(runtime, "aclrtMemset")) return error;
  if (const aclError error = check_fill(runtime, destination, destination_bytes, count, "aclrtMemset")) return error;
  if (const aclError error = broken_device(runtime)) return error;
  runtime.memory.note_write(destination, count);
  std::memset(destination, value, count);
  return ACL_SUCCESS;
}

aclError aclrtMemsetAsync(void* destination, size_t destination_bytes, int32_t value, size_t count,
                          aclrtStream handle) {
  const Caller caller(__builtin_return_address(0));
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  aclError error = ACL_SUCCESS;
  Stream* stream = find_stream(runtime, handle, "aclrtMemsetAsync", &error);
  if (stream == nullptr) return error;
  error = check_fill(runtime, destination, destination_bytes, count, "aclrtMemsetAsync");
  if (error != ACL_SUCCESS) return error;
  submit(*stream,
         {[&runtime, destination, destination_bytes, value, count]() -> aclError {
            if (const aclError late = check_fill(runtime, destination, destination_bytes, count, "aclrtMemsetAsync")) {
              return late;
            }
            if (const aclError broken = broken_device(runtime)) return broken;
            runtime.memory.note_write(destination, count);
            std::memset(destination, value, count);
            return ACL_SUCCESS;
          },
          nullptr, nullptr, "aclrtMemsetAsync"});
  return ACL_SUCCESS;
}

aclError aclrtPointerGetAttributes(const void* pointer, aclrtPtrAttributes* attributes) {
  const char* function = "aclrtPointerGetAttributes";
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  if (pointer == nullptr || attributes == nullptr) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, function, "the pointer is null");
  }
  const Side side = runtime.memory.side_of(pointer);
  if (side == Side::Freed) {
    return fail_memory("MEM-FREED", function, "free device memory once its last task has run",
                       "the address %p is device memory that was freed (use after free)", pointer);
  }
  *attributes = {};
  attributes->location.type = side == Side::Device ? ACL_MEM_LOCATION_TYPE_DEVICE
                              : side == Side::Host ? ACL_MEM_LOCATION_TYPE_HOST
                                                   : ACL_MEM_LOCATION_TYPE_UNREGISTERED;
  attributes->pageSize = static_cast<uint32_t>(sysconf(_SC_PAGESIZE));
  return ACL_SUCCESS;
}
