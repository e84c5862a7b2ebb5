/// Streams and events: queues of tasks that run when somebody waits for them.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "acl/acl_rt.h"

namespace opkit::acl {

struct Stream;
struct Capture;

/// One recording of an event: a place in a stream.
struct Ticket {
  Stream* stream = nullptr;          ///< where it still stands in the queue; null when passed
  std::shared_ptr<Capture> capture;  ///< what it was recorded in; null for a stream that was not captured
};

/// One thing to do. Exactly one of its first three parts is set.
struct Task {
  std::function<aclError()> run;
  std::shared_ptr<Ticket> record;
  std::shared_ptr<Ticket> wait;
  std::string name;  ///< the kernel's, or that of the function that submitted it
};

struct Context;

struct Stream {
  Context* context = nullptr;  ///< whose it is; null when that was destroyed, and in a context's own stream
  std::deque<Task> tasks;
  aclError error = ACL_SUCCESS;  ///< the first failure since the last synchronisation
  std::string reason;
  std::shared_ptr<Capture> capture;  ///< what its tasks go to; null while it is not captured
  bool runs_at_once = false;         ///< tasks run when they are submitted
};

struct Event {
  bool is_done_at_first = false;     ///< what a query says before the first recording
  std::shared_ptr<Ticket> recorded;  ///< the last recording; null before
};

/// Puts a task at the end of a stream, or of what captures the stream.
void submit(Stream& stream, Task task);

/// Runs a stream's tasks until its queue is empty, or `until` has been passed. What it waits for in other streams runs
/// first. A wait always leads to an older recording, so this ends.
void drain(Stream& stream, const Ticket* until = nullptr);

/// Whether a task of a stream that runs them at once has failed since this was cleared.
std::atomic<bool>& at_once_failure();

/// Drops a stream's tasks; recordings in it count as passed.
void drop(Stream& stream);

}  // namespace opkit::acl
