/// The log by module and level, as host sources ask it which levels are on. Of host functions' logs opkit keeps errors
/// (op_common/log/log.h), so that level alone is on. Source: the documents of the log's functions, AlogCheckDebugLevel;
/// that CheckLogLevel answers the same numbers is from public sources that compare its answer with 1.
#pragma once

#include <cstdint>

#include "op_common/log/log.h"

#define DLOG_DEBUG 0
#define DLOG_INFO 1
#define DLOG_WARN 2
#define DLOG_ERROR 3
#define DLOG_NULL 4

/// The module that operators log as. Its number is compared with nothing here.
enum { OP };

inline int32_t CheckLogLevel(int32_t, int32_t level) { return level == DLOG_ERROR ? 1 : 0; }
inline int32_t AlogCheckDebugLevel(uint32_t, int32_t level) { return level == DLOG_ERROR ? 1 : 0; }

namespace opkit::host {

constexpr LogLevel log_level(int level) {
  return level <= DLOG_DEBUG  ? LogLevel::Debug
         : level == DLOG_INFO ? LogLevel::Info
         : level == DLOG_WARN ? LogLevel::Warning
                              : LogLevel::Error;
}

}  // namespace opkit::host

// The module adds nothing to a message: the operator's call is named there.
#define OpLogSub(module, level, name, ...)                                                          \
  ::opkit::host::log_line(::opkit::host::log_level(level), ::opkit::host::log_name(name), __FILE__, \
                          static_cast<uint32_t>(__LINE__), ##__VA_ARGS__)
#define dlog_debug(module, ...) OPKIT_HOST_LOG(Debug, "", __VA_ARGS__)
#define dlog_info(module, ...) OPKIT_HOST_LOG(Info, "", __VA_ARGS__)
#define dlog_warn(module, ...) OPKIT_HOST_LOG(Warning, "", __VA_ARGS__)
#define dlog_error(module, ...) OPKIT_HOST_LOG(Error, "", __VA_ARGS__)
