// Streams of which every task runs when it is submitted.
#include "opkit/device_stream.h"

#include <atomic>
#include <cstdio>
#include <map>

#include "acl/state.h"
#include "acl/stream.h"

using namespace opkit::acl;
namespace {

/// Under the runtime's lock.
std::map<int64_t, Stream*>& streams_by_number() {
  static auto* streams = new std::map<int64_t, Stream*>();
  return *streams;
}

}  // namespace

void* opkit_device_stream(int64_t number) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  if (current_context() == nullptr && aclrtSetDevice(0) != ACL_SUCCESS) return nullptr;
  Stream*& known = streams_by_number()[number];
  // A reset of the device takes all streams away.
  if (known != nullptr && runtime.streams.count(known) != 0) return known;
  aclrtStream made = nullptr;
  if (aclrtCreateStream(&made) != ACL_SUCCESS) return nullptr;
  known = static_cast<Stream*>(made);
  known->runs_at_once = true;
  return known;
}

bool opkit_take_device_fault(char* text, size_t size) {
  // The host waits for its device often.
  static std::atomic<bool>& has_failed = at_once_failure();
  if (!has_failed.load(std::memory_order_acquire)) return false;
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  has_failed.store(false, std::memory_order_release);
  bool is_found = false;
  for (const auto& [number, stream] : streams_by_number()) {
    if (runtime.streams.count(stream) == 0 || stream->error == ACL_SUCCESS) continue;
    if (!is_found) std::snprintf(text, size, "%s", stream->reason.c_str());
    is_found = true;
    stream->error = ACL_SUCCESS;
    stream->reason.clear();
  }
  if (is_found) {
    runtime.device_error = ACL_SUCCESS;
    runtime.device_reason.clear();
  }
  return is_found;
}
