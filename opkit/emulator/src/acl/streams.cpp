// Streams and events, as programs call them.
#include "acl/caller.h"
#include "acl/capture.h"
#include "acl/error.h"
#include "acl/state.h"
#include "opkit/stream_order.h"

using namespace opkit::acl;
namespace {

Event* find_event(Runtime& runtime, aclrtEvent handle, const char* function, aclError* error) {
  auto* event = static_cast<Event*>(handle);
  if (runtime.events.count(event) != 0) return event;
  *error = fail(ACL_ERROR_RT_PARAM_INVALID, function, "%p is no event, or was destroyed", handle);
  return nullptr;
}

void tell(opkit_stream_action action, const void* stream, const void* event, const void* caller) {
  const opkit_stream_note note{action, reinterpret_cast<uint64_t>(stream), reinterpret_cast<uint64_t>(event), "acl",
                               caller};
  opkit_tell_streams(&note);
}

aclError create_event(aclrtEvent* event, bool is_done_at_first, const char* function) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  if (event == nullptr) return fail(ACL_ERROR_RT_PARAM_INVALID, function, "the pointer is null");
  if (current_context() == nullptr) {
    return fail(ACL_ERROR_RT_CONTEXT_NULL, function, "there is no device yet: call aclrtSetDevice on this thread");
  }
  auto* created = new Event();
  created->is_done_at_first = is_done_at_first;
  runtime.events.insert(created);
  *event = created;
  return ACL_SUCCESS;
}

aclError destroy_stream(aclrtStream handle, bool is_forced, const char* function) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  auto* stream = static_cast<Stream*>(handle);
  if (runtime.streams.count(stream) == 0) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, function, "%p is no stream, or was destroyed before", handle);
  }
  if (const aclError error = refuse_captured(*stream, function)) return error;
  if (is_forced) {
    drop(*stream);
  } else {
    drain(*stream);
  }
  runtime.streams.erase(stream);
  tell(OPKIT_STREAM_ENDED, stream, nullptr, nullptr);
  delete stream;
  return ACL_SUCCESS;
}

}  // namespace

aclError aclrtCreateStream(aclrtStream* stream) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  if (stream == nullptr) return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtCreateStream", "the pointer is null");
  if (current_context() == nullptr) {
    return fail(ACL_ERROR_RT_CONTEXT_NULL, "aclrtCreateStream",
                "there is no device yet: call aclrtSetDevice on this thread");
  }
  auto* created = new Stream();
  created->context = current_context();
  runtime.streams.insert(created);
  *stream = created;
  return ACL_SUCCESS;
}

// Priorities and flags steer hardware queues; the order of one stream is the same with any.
aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority, uint32_t flag) {
  (void)priority, (void)flag;
  return aclrtCreateStream(stream);
}

aclError aclrtDestroyStream(aclrtStream stream) { return destroy_stream(stream, false, "aclrtDestroyStream"); }

aclError aclrtDestroyStreamForce(aclrtStream stream) { return destroy_stream(stream, true, "aclrtDestroyStreamForce"); }

aclError aclrtSynchronizeStream(aclrtStream handle) {
  const Caller caller(__builtin_return_address(0));
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  aclError error = ACL_SUCCESS;
  Stream* stream = find_stream(runtime, handle, "aclrtSynchronizeStream", &error);
  if (stream == nullptr) return error;
  if (const aclError captured = refuse_captured(*stream, "aclrtSynchronizeStream")) return captured;
  tell(OPKIT_STREAM_SYNCHRONISED, stream, nullptr, __builtin_return_address(0));
  return synchronize(runtime, *stream, "aclrtSynchronizeStream");
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout_ms) {
  (void)timeout_ms;
  return aclrtSynchronizeStream(stream);
}

aclError aclrtStreamQuery(aclrtStream handle, aclrtStreamStatus* status) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  if (status == nullptr) return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtStreamQuery", "the pointer is null");
  aclError error = ACL_SUCCESS;
  Stream* stream = find_stream(runtime, handle, "aclrtStreamQuery", &error);
  if (stream == nullptr) return error;
  if (const aclError captured = refuse_captured(*stream, "aclrtStreamQuery")) return captured;
  drain(*stream);
  *status = ACL_STREAM_STATUS_COMPLETE;
  return ACL_SUCCESS;
}

aclError aclrtSynchronizeDevice(void) {
  const Caller caller(__builtin_return_address(0));
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  if (current_context() == nullptr) {
    return fail(ACL_ERROR_RT_CONTEXT_NULL, "aclrtSynchronizeDevice",
                "there is no device yet: call aclrtSetDevice on this thread");
  }
  aclError first = ACL_SUCCESS;
  const auto synchronize_one = [&](Stream& stream) {
    const aclError error = synchronize(runtime, stream, "aclrtSynchronizeDevice");
    if (first == ACL_SUCCESS) first = error;
  };
  for (Context* context : runtime.contexts) synchronize_one(context->default_stream);
  for (Stream* stream : runtime.streams) synchronize_one(*stream);
  return first;
}

aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout_ms) {
  (void)timeout_ms;
  return aclrtSynchronizeDevice();
}

aclError aclrtCreateEvent(aclrtEvent* event) { return create_event(event, false, "aclrtCreateEvent"); }

aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) {
  (void)flag;
  return create_event(event, false, "aclrtCreateEventWithFlag");
}

aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag) {
  (void)flag;
  return create_event(event, true, "aclrtCreateEventExWithFlag");
}

aclError aclrtDestroyEvent(aclrtEvent handle) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  aclError error = ACL_SUCCESS;
  Event* event = find_event(runtime, handle, "aclrtDestroyEvent", &error);
  if (event == nullptr) return error;
  tell(OPKIT_EVENT_ENDED, nullptr, event, nullptr);
  runtime.events.erase(event);  // tasks that record it or wait for it keep the ticket
  delete event;
  return ACL_SUCCESS;
}

aclError aclrtRecordEvent(aclrtEvent handle, aclrtStream stream_handle) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  aclError error = ACL_SUCCESS;
  Event* event = find_event(runtime, handle, "aclrtRecordEvent", &error);
  if (event == nullptr) return error;
  Stream* stream = find_stream(runtime, stream_handle, "aclrtRecordEvent", &error);
  if (stream == nullptr) return error;
  tell(OPKIT_STREAM_RECORDS, stream, event, __builtin_return_address(0));
  event->recorded = std::make_shared<Ticket>();
  event->recorded->capture = stream->capture;
  // In a capture the order of its tasks is that of their runs: nobody waits for the place.
  if (stream->capture == nullptr) event->recorded->stream = stream;
  submit(*stream, {nullptr, event->recorded, nullptr, "aclrtRecordEvent"});
  return ACL_SUCCESS;
}

aclError aclrtResetEvent(aclrtEvent handle, aclrtStream stream_handle) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  aclError error = ACL_SUCCESS;
  Event* event = find_event(runtime, handle, "aclrtResetEvent", &error);
  if (event == nullptr) return error;
  if (find_stream(runtime, stream_handle, "aclrtResetEvent", &error) == nullptr) return error;
  tell(OPKIT_EVENT_ENDED, nullptr, event, nullptr);
  event->recorded = nullptr;  // waits that are queued already keep theirs
  return ACL_SUCCESS;
}

aclError aclrtStreamWaitEvent(aclrtStream stream_handle, aclrtEvent handle) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  aclError error = ACL_SUCCESS;
  Stream* stream = find_stream(runtime, stream_handle, "aclrtStreamWaitEvent", &error);
  if (stream == nullptr) return error;
  Event* event = find_event(runtime, handle, "aclrtStreamWaitEvent", &error);
  if (event == nullptr) return error;
  tell(OPKIT_STREAM_WAITS, stream, event, __builtin_return_address(0));
  // An event that was never recorded holds nobody up.
  if (event->recorded == nullptr) return ACL_SUCCESS;
  const std::shared_ptr<Capture> capture = event->recorded->capture;
  if (capture != nullptr && !capture->is_ended && stream->capture == nullptr) {
    stream->capture = capture;
    capture->streams.push_back(stream);
  }
  const bool is_inside = stream->capture != nullptr && stream->capture == capture;
  if (stream->capture != nullptr && !is_inside && event->recorded->stream != nullptr) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtStreamWaitEvent",
                "the stream is being captured, and the event was recorded outside the capture");
  }
  submit(*stream, {nullptr, nullptr, event->recorded, "aclrtStreamWaitEvent"});
  return ACL_SUCCESS;
}

aclError aclrtSynchronizeEvent(aclrtEvent handle) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  aclError error = ACL_SUCCESS;
  Event* event = find_event(runtime, handle, "aclrtSynchronizeEvent", &error);
  if (event == nullptr) return error;
  const std::shared_ptr<Ticket> ticket = event->recorded;
  if (ticket != nullptr && ticket->capture != nullptr && !ticket->capture->is_ended) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtSynchronizeEvent", "the event was recorded in a capture");
  }
  if (ticket != nullptr && ticket->stream != nullptr) drain(*ticket->stream, ticket.get());
  if (runtime.device_error != ACL_SUCCESS) return fail_again(runtime.device_error, runtime.device_reason.c_str());
  return ACL_SUCCESS;
}

aclError aclrtQueryEventStatus(aclrtEvent handle, aclrtEventRecordedStatus* status) {
  Runtime& runtime = Runtime::get();
  const Guard guard(runtime.lock);
  if (status == nullptr) return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtQueryEventStatus", "the pointer is null");
  aclError error = ACL_SUCCESS;
  Event* event = find_event(runtime, handle, "aclrtQueryEventStatus", &error);
  if (event == nullptr) return error;
  // A program that polls must see progress.
  const std::shared_ptr<Ticket> ticket = event->recorded;
  if (ticket != nullptr && ticket->stream != nullptr) drain(*ticket->stream, ticket.get());
  // Source: runtime API, aclrtQueryEventStatus and aclrtRecordEvent, an event that no stream has recorded.
  const bool is_done = ticket != nullptr || event->is_done_at_first;
  *status = is_done ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
  return ACL_SUCCESS;
}
