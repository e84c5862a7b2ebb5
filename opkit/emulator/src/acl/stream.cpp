#include "acl/stream.h"

#include "acl/error.h"

namespace opkit::acl {

void drain(Stream& stream, const Ticket* until) {
  while (!stream.tasks.empty()) {
    if (until != nullptr && until->stream == nullptr) return;
    Task& front = stream.tasks.front();
    if (front.wait != nullptr && front.wait->stream != nullptr) {
      // May not run `stream` itself: the recording would stand in this queue, in front of the wait.
      const std::shared_ptr<Ticket> ticket = front.wait;
      drain(*ticket->stream, ticket.get());
    }
    const Task task = std::move(front);
    stream.tasks.pop_front();
    if (task.record != nullptr) task.record->stream = nullptr;
    if (!task.run) continue;
    const aclError error = task.run();
    if (error == ACL_SUCCESS || stream.error != ACL_SUCCESS) continue;
    stream.error = error;
    if (const char* text = aclGetRecentErrMsg()) stream.reason = text;
    if (stream.runs_at_once) at_once_failure().store(true, std::memory_order_release);
  }
}

std::atomic<bool>& at_once_failure() {
  static std::atomic<bool> has_failed{false};
  return has_failed;
}

void drop(Stream& stream) {
  for (Task& task : stream.tasks) {
    if (task.record != nullptr) task.record->stream = nullptr;
  }
  stream.tasks.clear();
}

}  // namespace opkit::acl
