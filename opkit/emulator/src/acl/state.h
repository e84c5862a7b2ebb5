/// What the runtime knows: contexts, streams, events, memory, and whether the device still works.
#pragma once

#include <mutex>
#include <set>
#include <set>
#include <string>

#include "acl/memory.h"
#include "acl/stream.h"
#include "opkit/launch_entry.h"

namespace opkit::acl {

struct Binary;
struct Model;

struct Context {
  Stream default_stream;  ///< for a null aclrtStream
};

/// One for the process. Hold `lock` around every use; tasks run under it, so hosts' threads take turns.
struct Runtime {
  static Runtime& get();

  std::recursive_mutex lock;
  bool is_initialized = false;
  bool is_chip_chosen = false;  ///< by the user of the program; a launch may not change it then
  uint32_t device_users = 0;    ///< aclrtSetDevice calls without an aclrtResetDevice
  Context* default_context = nullptr;
  std::set<Context*> contexts;
  std::set<Stream*> streams;  ///< without the contexts' own
  std::set<Event*> events;
  std::set<Binary*> binaries;  ///< loaded kernel libraries
  std::set<Model*> models;     ///< captured tasks
  Memory memory;

  aclError device_error = ACL_SUCCESS;  ///< what a faulted kernel left; until the device is reset
  std::string device_reason;
  std::set<std::string> empty_kernels;  ///< that the user has been warned of
};

/// Holds `Runtime::lock`.
using Guard = std::lock_guard<std::recursive_mutex>;

/// The context of the calling thread; null before aclrtSetDevice or aclrtCreateContext, and after it was destroyed.
Context* current_context();
void set_current_context(Context* context);

/// The stream behind a handle, in a context that lives; null after having failed as `function`.
Stream* find_stream(Runtime& runtime, aclrtStream handle, const char* function, aclError* error);

/// Queues a launch whose invoker gets `call` as its first argument, or returns why it is refused.
aclError queue_launch(Runtime& runtime, Stream& stream, const LaunchConfig& config, void (*invoke)(void* const*),
                      std::shared_ptr<void> call);

/// Puts the device into the error state that a faulted kernel leaves: prints the report and returns the code.
aclError fail_device(Runtime& runtime, const FaultReport& report);

/// Refuses a call that runs at once where a capture keeps this thread from it.
aclError refuse_while_capturing(const Runtime& runtime, const char* function);

/// Runs everything in every stream.
void drain_all(Runtime& runtime);

/// Runs one stream to its end and returns its outcome, which is then forgotten.
aclError synchronize(Runtime& runtime, Stream& stream, const char* function);

}  // namespace opkit::acl
