/// Logging of host functions. Errors become part of the message of the operator call that fails; the other levels are
/// dropped. The operator is named by text or by a context.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <string>

#include "graph/ascend_string.h"
#include "graph/ge_error_codes.h"
#include "opkit/host/abi.h"

namespace opkit::host {

inline const char* log_name(const char* name) { return name == nullptr ? "" : name; }
inline const char* log_name(const std::string& name) { return name.c_str(); }
inline const char* log_name(const ge::AscendString& name) { return name.GetString(); }
template <typename Context>
auto log_name(const Context* context) -> decltype(context->GetNodeName()) {
  return context == nullptr ? "" : context->GetNodeName();
}

__attribute__((format(printf, 5, 6))) inline void log_line(LogLevel level, const char* name, const char* file,
                                                           uint32_t line, const char* format, ...) {
  char message[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  opkit_log(level, name, file, line, message);
}

}  // namespace opkit::host

#define OPKIT_HOST_LOG(level, name, ...)                                                           \
  ::opkit::host::log_line(::opkit::host::LogLevel::level, ::opkit::host::log_name(name), __FILE__, \
                          static_cast<uint32_t>(__LINE__), __VA_ARGS__)

#define OP_LOGD(name, ...) OPKIT_HOST_LOG(Debug, name, __VA_ARGS__)
#define OP_LOGI(name, ...) OPKIT_HOST_LOG(Info, name, __VA_ARGS__)
#define OP_LOGW(name, ...) OPKIT_HOST_LOG(Warning, name, __VA_ARGS__)
#define OP_LOGE(name, ...) OPKIT_HOST_LOG(Error, name, __VA_ARGS__)

/// When `condition` holds: logs, then leaves.
#define OP_CHECK_IF(condition, log_statement, leave_statement) \
  do {                                                         \
    if (condition) {                                           \
      log_statement;                                           \
      leave_statement;                                         \
    }                                                          \
  } while (false)

#define OP_CHECK_NULL_WITH_CONTEXT(context, pointer)          \
  do {                                                        \
    if ((pointer) == nullptr) {                               \
      OP_LOGE((context)->GetNodeName(), #pointer " is null"); \
      return ge::GRAPH_FAILED;                                \
    }                                                         \
  } while (false)
