// The log of host functions: the errors of this thread, kept until the next operator call.
#include <string>

#include "call_error.h"
#include "opkit/host/abi.h"

namespace opkit::host {
namespace {

thread_local std::string errors;

}  // namespace

const std::string& logged_errors() { return errors; }
void clear_log() { errors.clear(); }

}  // namespace opkit::host

void opkit_log(opkit::host::LogLevel level, const char* operator_name, const char* file, uint32_t line,
               const char* message) {
  if (level != opkit::host::LogLevel::Error) return;
  std::string& errors = opkit::host::errors;
  if (!errors.empty()) errors += '\n';
  if (operator_name != nullptr && *operator_name != '\0') errors += std::string("[") + operator_name + "] ";
  errors += message;
  errors += std::string("\n  --> ") + file + ":" + std::to_string(line);
}
