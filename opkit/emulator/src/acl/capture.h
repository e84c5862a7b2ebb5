/// Captured tasks: see acl/acl_rt_capture.h.
#pragma once

#include <thread>
#include <vector>

#include "acl/acl_rt_capture.h"
#include "acl/stream.h"

namespace opkit::acl {

/// The order of submission is an order in which the tasks may run: a wait always leads to an older recording.
struct Capture {
  struct Entry {
    Task task;
    size_t stream;  ///< which of `streams`
  };
  std::vector<Entry> entries;
  std::vector<Stream*> streams;  ///< the first began it
  aclmdlRICaptureMode mode = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  bool is_ended = false;
};

/// What aclmdlRICaptureEnd returns.
struct Model {
  std::shared_ptr<Capture> capture;
};

/// Refuses a call that waits for `stream` while the stream is being captured.
aclError refuse_captured(const Stream& stream, const char* function);

}  // namespace opkit::acl
