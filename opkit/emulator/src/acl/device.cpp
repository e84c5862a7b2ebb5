// Initialisation, devices, contexts, errors.
#include <atomic>
#include <cctype>
#include <string>

#include "acl/error.h"
#include "acl/memory_check.h"
#include "acl/state.h"
#include "core/chip.h"
#include "opkit/run_options.h"
#include "sched/time_limit.h"

namespace opkit::acl {
namespace {

constexpr int32_t kDeviceCount = 1;

thread_local Context* thread_context = nullptr;

Context* create_context(Runtime& runtime) {
  auto* context = new Context();
  runtime.contexts.insert(context);
  return context;
}

void destroy_context(Runtime& runtime, Context* context) {
  drain(context->default_stream);
  for (Stream* stream : runtime.streams) {
    if (stream->context != context) continue;
    drain(*stream);
    stream->context = nullptr;
  }
  runtime.contexts.erase(context);
  if (runtime.default_context == context) runtime.default_context = nullptr;
  if (thread_context == context) thread_context = nullptr;
  delete context;
}

aclError check_device(int32_t device, const char* function) {
  if (device >= 0 && device < kDeviceCount) return ACL_SUCCESS;
  return fail(ACL_ERROR_RT_INVALID_DEVICEID, function, "there is no device %d: opkit emulates one, number 0", device);
}

}  // namespace

// Never destroyed: destructors of the program's own statics may still free memory.
Runtime& Runtime::get() {
  static auto* runtime = new Runtime();
  return *runtime;
}

Context* current_context() {
  Runtime& runtime = Runtime::get();
  // Another thread may have destroyed it.
  if (runtime.contexts.count(thread_context) == 0) thread_context = nullptr;
  return thread_context;
}

void set_current_context(Context* context) { thread_context = context; }

Stream* find_stream(Runtime& runtime, aclrtStream handle, const char* function, aclError* error) {
  if (handle == nullptr) {
    if (Context* context = current_context()) return &context->default_stream;
    *error = fail(ACL_ERROR_RT_CONTEXT_NULL, function, "there is no device yet: call aclrtSetDevice on this thread");
    return nullptr;
  }
  auto* stream = static_cast<Stream*>(handle);
  if (runtime.streams.count(stream) != 0) {
    // Source: error codes of the runtime API, 107003.
    Context* context = current_context();
    if (stream->context != nullptr && (context == nullptr || stream->context == context)) return stream;
    *error = fail(ACL_ERROR_RT_STREAM_CONTEXT, function, "the stream %p belongs to a context that %s", handle,
                  stream->context == nullptr ? "was destroyed" : "is not this thread's: call aclrtSetCurrentContext");
    return nullptr;
  }
  *error = fail(ACL_ERROR_RT_PARAM_INVALID, function, "%p is no stream, or was destroyed", handle);
  return nullptr;
}

void drain_all(Runtime& runtime) {
  for (Context* context : runtime.contexts) drain(context->default_stream);
  for (Stream* stream : runtime.streams) drain(*stream);
}

aclError synchronize(Runtime& runtime, Stream& stream, const char* function) {
  drain(stream);
  const aclError error = stream.error;
  const std::string reason = std::move(stream.reason);
  stream.error = ACL_SUCCESS;
  stream.reason.clear();
  // The reasons have been printed when they arose.
  if (error != ACL_SUCCESS) return fail_again(error, reason.c_str());
  if (runtime.device_error != ACL_SUCCESS) return fail_again(runtime.device_error, runtime.device_reason.c_str());
  if (const std::string place = runtime.memory.overrun_text(); !place.empty()) {
    runtime.device_error = ACL_ERROR_RT_AICORE_EXCEPTION;
    fail(runtime.device_error, function, "a kernel wrote through a raw pointer %s", place.c_str());
    const char* text = aclGetRecentErrMsg();
    runtime.device_reason = text == nullptr ? "" : text;
    return fail_again(runtime.device_error, runtime.device_reason.c_str());
  }
  return ACL_SUCCESS;
}

}  // namespace opkit::acl

using namespace opkit::acl;
aclError aclInit(const char* config_path) {
  (void)config_path;
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  if (runtime.is_initialized) return fail(ACL_ERROR_REPEAT_INITIALIZE, "aclInit", "called before");
  runtime.is_initialized = true;
  return ACL_SUCCESS;
}

aclError aclFinalize(void) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  drain_all(runtime);
  // Harmless and common: programs need no aclInit. So it is returned, but not printed.
  if (!runtime.is_initialized) return fail_again(ACL_ERROR_UNINITIALIZE, "aclFinalize: aclInit was not called");
  runtime.is_initialized = false;
  return ACL_SUCCESS;
}

aclError aclrtSetDevice(int32_t device) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  if (const aclError error = check_device(device, "aclrtSetDevice")) return error;
  if (runtime.default_context == nullptr) runtime.default_context = create_context(runtime);
  ++runtime.device_users;
  set_current_context(runtime.default_context);
  return ACL_SUCCESS;
}

aclError aclrtResetDevice(int32_t device) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  if (const aclError error = check_device(device, "aclrtResetDevice")) return error;
  drain_all(runtime);
  if (runtime.device_users > 1) {
    --runtime.device_users;
    return ACL_SUCCESS;
  }
  runtime.device_users = 0;
  while (!runtime.contexts.empty()) destroy_context(runtime, *runtime.contexts.begin());
  for (Stream* stream : runtime.streams) delete stream;
  runtime.streams.clear();
  for (Event* event : runtime.events) delete event;
  runtime.events.clear();
  report_leaks(runtime.memory, "aclrtResetDevice takes the device's memory back");
  runtime.memory.free_all_device();
  runtime.device_error = ACL_SUCCESS;
  runtime.device_reason.clear();
  return ACL_SUCCESS;
}

aclError aclrtGetDevice(int32_t* device) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  if (device == nullptr) return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtGetDevice", "the pointer is null");
  if (current_context() == nullptr) {
    return fail(ACL_ERROR_RT_CONTEXT_NULL, "aclrtGetDevice", "aclrtSetDevice was not called on this thread");
  }
  *device = 0;
  return ACL_SUCCESS;
}

aclError aclrtGetDeviceCount(uint32_t* count) {
  if (count == nullptr) return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtGetDeviceCount", "the pointer is null");
  *count = kDeviceCount;
  return ACL_SUCCESS;
}

aclError aclrtGetDeviceInfo(uint32_t device, aclrtDevAttr attribute, int64_t* value) {
  const char* function = "aclrtGetDeviceInfo";
  if (value == nullptr) return fail(ACL_ERROR_RT_PARAM_INVALID, function, "the pointer is null");
  if (device >= static_cast<uint32_t>(kDeviceCount))
    return fail(ACL_ERROR_RT_PARAM_INVALID, function, "there is no device %u", device);
  const opkit::Chip& chip = opkit::Device::get().chip();
  switch (attribute) {
    case ACL_DEV_ATTR_AICORE_CORE_NUM: *value = chip.aic_count; return ACL_SUCCESS;
    case ACL_DEV_ATTR_VECTOR_CORE_NUM: *value = chip.aiv_count; return ACL_SUCCESS;
    default:
      return fail(ACL_ERROR_RT_PARAM_INVALID, function, "attribute %d is not known of this chip",
                  static_cast<int>(attribute));
  }
}

aclError aclrtGetHardwareSyncAddr(void** addr) {
  if (addr == nullptr) return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtGetHardwareSyncAddr", "the pointer is null");
  static uint64_t flags;  // programs tell an address from none
  *addr = &flags;
  return ACL_SUCCESS;
}

const char* aclrtGetSocName(void) { return opkit::Device::get().chip().name.c_str(); }

aclError aclsysGetVersionNum(char* package, int32_t* version) {
  if (package == nullptr || version == nullptr) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclsysGetVersionNum", "a pointer is null");
  }
  return fail(ACL_ERROR_API_NOT_SUPPORT, "aclsysGetVersionNum",
              "opkit is none of the packages of CANN, so it has no version of %s", package);
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel level) {
  (void)level;
  return last_error();
}

aclError aclrtGetLastError(aclrtLastErrLevel level) {
  const aclError error = aclrtPeekAtLastError(level);
  clear_last_error();
  return error;
}

aclError aclrtCreateContext(aclrtContext* context, int32_t device) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  if (context == nullptr) return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtCreateContext", "the pointer is null");
  if (const aclError error = check_device(device, "aclrtCreateContext")) return error;
  Context* created = create_context(runtime);
  set_current_context(created);
  *context = created;
  return ACL_SUCCESS;
}

aclError aclrtDestroyContext(aclrtContext context) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  auto* known = static_cast<Context*>(context);
  if (runtime.contexts.count(known) == 0) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtDestroyContext", "%p is no context, or was destroyed", context);
  }
  if (known == runtime.default_context) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtDestroyContext",
                "this context is aclrtSetDevice's; aclrtResetDevice destroys it");
  }
  destroy_context(runtime, known);
  return ACL_SUCCESS;
}

aclError aclrtSetCurrentContext(aclrtContext context) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  if (runtime.contexts.count(static_cast<Context*>(context)) == 0) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtSetCurrentContext", "%p is no context, or was destroyed", context);
  }
  set_current_context(static_cast<Context*>(context));
  return ACL_SUCCESS;
}

aclError aclrtGetCurrentContext(aclrtContext* context) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  if (context == nullptr) return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtGetCurrentContext", "the pointer is null");
  if (current_context() == nullptr) {
    return fail(ACL_ERROR_RT_CONTEXT_NULL, "aclrtGetCurrentContext", "this thread has none: call aclrtSetDevice");
  }
  *context = current_context();
  return ACL_SUCCESS;
}

int32_t opkit_is_first_start() {
  static std::atomic<bool> is_started{false};
  return is_started.exchange(true) ? 0 : 1;
}

const char* opkit_configure_run(const opkit_run_options* options) {
  static thread_local std::string error;
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  opkit::DeviceConfig config = opkit::Device::get().config();
  if (options->chip != nullptr) {
    config.chip = opkit::find_chip(options->chip);
    if (config.chip == nullptr) {
      error = std::string("\"") + options->chip + "\" is not a chip that opkit emulates";
      return error.c_str();
    }
    runtime.is_chip_chosen = true;
  }
  config.threads = options->threads;
  config.poison = options->poison != 0;
  config.seed = options->seed;
  config.chip_bounds = options->chip_bounds != 0;
  config.allows_raw_writes = options->finds_raw_writes == 0;
  opkit::Device::get().configure(config);
  // To the end of the process: there may be launches behind the last destructor.
  static opkit::TimeLimit* limit = nullptr;
  delete limit;
  limit = options->timeout_ms > 0 ? new opkit::TimeLimit(static_cast<double>(options->timeout_ms) / 1000) : nullptr;
  return nullptr;
}
