/// How the parts of the operator call fail among themselves; the C functions turn it into a status and a message.
#pragma once

#include <string>
#include <utility>

#include "opkit/fault.h"
#include "opkit/op_call.h"

namespace opkit::host {

struct CallError {
  opkit_status status;
  std::string message;
  bool is_refusal = false;  ///< the operator's own host code takes no such call, or has no core for it
};

[[noreturn]] inline void fail(opkit_status status, std::string message) { throw CallError{status, std::move(message)}; }

[[noreturn]] inline void fail_refused(std::string message) { throw CallError{OPKIT_USAGE, std::move(message), true}; }

/// What host functions have logged as errors on this thread since clear_log().
const std::string& logged_errors();
void clear_log();

}  // namespace opkit::host
