// The log of host functions: the errors of this thread, kept until the next operator call.
#include <string>

#include "call_error.h"
#include "opkit/host/abi.h"
#include "opkit/process_report.h"

namespace opkit::host {
namespace {

thread_local std::string errors;

}  // namespace

const std::string& logged_errors() { return errors; }
void clear_log() { errors.clear(); }

}  // namespace opkit::host

namespace {

int32_t level_number(opkit::host::LogLevel level) {
  using opkit::host::LogLevel;
  switch (level) {
    case LogLevel::Debug: return OPKIT_LOG_DEBUG;
    case LogLevel::Info: return OPKIT_LOG_INFO;
    case LogLevel::Warning: return OPKIT_LOG_WARNING;
    default: return OPKIT_LOG_ERROR;
  }
}

}  // namespace

void opkit_log(opkit::host::LogLevel level, const char* operator_name, const char* file, uint32_t line,
               const char* message) {
  const int32_t number = level_number(level);
  if (opkit_logs(number) != 0) {
    const std::string text = operator_name != nullptr && *operator_name != '\0'
                                 ? std::string("[") + operator_name + "] " + message
                                 : message;
    opkit_write_log(number, "OP", (std::string(file) + ":" + std::to_string(line)).c_str(), text.c_str());
  }
  if (level != opkit::host::LogLevel::Error) return;
  std::string& errors = opkit::host::errors;
  if (!errors.empty()) errors += '\n';
  if (operator_name != nullptr && *operator_name != '\0') errors += std::string("[") + operator_name + "] ";
  errors += message;
  errors += std::string("\n  --> ") + file + ":" + std::to_string(line);
}
