/// Logging of host functions. Errors become part of the message of the operator call that fails; the other levels are
/// dropped. The operator is named by text or by a context. The macros' names are those that public operator libraries
/// use.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <string>
#include <type_traits>

#include "graph/ascend_string.h"
#include "graph/ge_error_codes.h"
#include "op_common/op_host/util/shape_util.h"
#include "opkit/host/abi.h"
#include "opkit/host/prelude.h"

namespace opkit::host {

inline const char* log_name(const char* name) { return name == nullptr ? "" : name; }
inline const char* log_name(const std::string& name) { return name.c_str(); }
inline const char* log_name(const ge::AscendString& name) { return name.GetString(); }
template <typename Context>
auto log_name(const Context* context) -> decltype(context->GetNodeName()) {
  return context == nullptr ? "" : context->GetNodeName();
}
template <typename Context>
auto log_name(const Context& context) -> decltype(context.get()->GetNodeName()) {
  return log_name(context.get());
}
inline const char* log_name(std::nullptr_t) { return ""; }

__attribute__((format(printf, 5, 6))) inline void log_line(LogLevel level, const char* name, const char* file,
                                                           uint32_t line, const char* format, ...) {
  char message[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  opkit_log(level, name, file, line, message);
}

/// A message alone, of no operator.
inline void log_line(LogLevel level, const char* message, const char* file, uint32_t line) {
  opkit_log(level, "", file, line, message);
}

inline std::string log_text(const char* text) { return text == nullptr ? "" : text; }
inline std::string log_text(const std::string& text) { return text; }
inline std::string log_text(const ge::AscendString& text) { return text.GetString(); }
template <typename T, std::enable_if_t<std::is_arithmetic<T>::value, int> = 0>
std::string log_text(T value) {
  return std::to_string(value);
}
template <typename T, std::enable_if_t<!std::is_arithmetic<T>::value, int> = 0>
auto log_text(const T& value) -> decltype(Ops::Base::ToString(value)) {
  return Ops::Base::ToString(value);
}

/// "the <what> of <param> is <value>", then what was expected of it or why it is wrong.
inline std::string wrong_text(const char* what, const std::string& param, const std::string& value) {
  return std::string("the ") + what + " of " + param + " is " + value;
}
template <typename Param, typename Value>
void log_wrong(const char* name, const char* file, uint32_t line, const char* what, const char*, const Param& param,
               const Value& value) {
  opkit_log(LogLevel::Error, name, file, line, wrong_text(what, log_text(param), log_text(value)).c_str());
}
template <typename Param, typename Value, typename Rest, typename... More>
void log_wrong(const char* name, const char* file, uint32_t line, const char* what, const char* link,
               const Param& param, const Value& value, const Rest& rest, const More&... more) {
  std::string text = wrong_text(what, log_text(param), log_text(value)) + link + log_text(rest);
  ((text += ", " + log_text(more)), ...);
  opkit_log(LogLevel::Error, name, file, line, text.c_str());
}

}  // namespace opkit::host

namespace Ops {
namespace Base {

/// What names an operator in messages.
template <typename Operator>
std::string GetOpInfo(const Operator& named) {
  return ::opkit::host::log_name(named);
}
inline const char* GetSafeStr(const char* text) { return text == nullptr ? "" : text; }
inline const char* GetSafeStr(const std::string& text) { return text.c_str(); }

}  // namespace Base
}  // namespace Ops

#ifndef likely
#define likely(x) __builtin_expect(!!(x), 1)
#endif
#ifndef unlikely
#define unlikely(x) __builtin_expect(!!(x), 0)
#endif

#define OPKIT_HOST_LOG(level, name, ...)                                                           \
  ::opkit::host::log_line(::opkit::host::LogLevel::level, ::opkit::host::log_name(name), __FILE__, \
                          static_cast<uint32_t>(__LINE__), ##__VA_ARGS__)

#define OP_LOGD(name, ...) OPKIT_HOST_LOG(Debug, name, ##__VA_ARGS__)
#define OP_LOGI(name, ...) OPKIT_HOST_LOG(Info, name, ##__VA_ARGS__)
#define OP_LOGW(name, ...) OPKIT_HOST_LOG(Warning, name, ##__VA_ARGS__)
#define OP_LOGE(name, ...) OPKIT_HOST_LOG(Error, name, ##__VA_ARGS__)
#define OP_EVENT(name, ...) OPKIT_HOST_LOG(Info, name, ##__VA_ARGS__)
#define OP_LOGE_WITHOUT_REPORT(name, ...) OPKIT_HOST_LOG(Error, name, ##__VA_ARGS__)
#define D_OP_LOGD(name, ...) OPKIT_HOST_LOG(Debug, name, ##__VA_ARGS__)
#define D_OP_LOGI(name, ...) OPKIT_HOST_LOG(Info, name, ##__VA_ARGS__)
#define D_OP_LOGW(name, ...) OPKIT_HOST_LOG(Warning, name, ##__VA_ARGS__)
#define D_OP_LOGE(name, ...) OPKIT_HOST_LOG(Error, name, ##__VA_ARGS__)

// Reports by error code. The log beside them says the same, so the code alone adds nothing here.
#define REPORT_INNER_ERR_MSG(code, ...) OPKIT_HOST_LOG(Info, code, ##__VA_ARGS__)
#define REPORT_INNER_ERROR(code, ...) OPKIT_HOST_LOG(Info, code, ##__VA_ARGS__)
#define REPORT_CALL_ERROR(code, ...) OPKIT_HOST_LOG(Info, code, ##__VA_ARGS__)

/// When `condition` holds: logs, then leaves with a value.
#define OP_LOGE_IF(condition, value, name, ...) \
  do {                                          \
    if (condition) {                            \
      OP_LOGE(name, __VA_ARGS__);               \
      return value;                             \
    }                                           \
  } while (false)
#define OP_LOGI_IF_RETURN(condition, value, name, ...) \
  do {                                                 \
    if (condition) {                                   \
      OP_LOGI(name, __VA_ARGS__);                      \
      return value;                                    \
    }                                                  \
  } while (false)
#define OP_LOGW_IF(condition, name, ...)       \
  do {                                         \
    if (condition) OP_LOGW(name, __VA_ARGS__); \
  } while (false)

/// What is wrong with a parameter: (operator, parameter, value, what is expected or why it is wrong).
#define OPKIT_LOG_WRONG(what, link, name, ...)                                                                   \
  ::opkit::host::log_wrong(::opkit::host::log_name(name), __FILE__, static_cast<uint32_t>(__LINE__), what, link, \
                           __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_VALUE(name, ...) OPKIT_LOG_WRONG("value", ", expected ", name, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_VALUE_WITH_REASON(name, ...) OPKIT_LOG_WRONG("value", ": ", name, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_VALUES_WITH_REASON(name, ...) OPKIT_LOG_WRONG("values", ": ", name, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_DTYPE(name, ...) OPKIT_LOG_WRONG("data type", ", expected ", name, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_DTYPE_WITH_REASON(name, ...) OPKIT_LOG_WRONG("data type", ": ", name, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_DTYPES_WITH_REASON(name, ...) OPKIT_LOG_WRONG("data types", ": ", name, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_FORMAT(name, ...) OPKIT_LOG_WRONG("format", ", expected ", name, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_FORMAT_WITH_REASON(name, ...) OPKIT_LOG_WRONG("format", ": ", name, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_FORMATS_WITH_REASON(name, ...) OPKIT_LOG_WRONG("formats", ": ", name, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPE(name, ...) OPKIT_LOG_WRONG("shape", ", expected ", name, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPE_WITH_REASON(name, ...) OPKIT_LOG_WRONG("shape", ": ", name, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPES_WITH_REASON(name, ...) OPKIT_LOG_WRONG("shapes", ": ", name, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPEDIM(name, ...) OPKIT_LOG_WRONG("rank", ", expected ", name, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPEDIM_WITH_REASON(name, ...) OPKIT_LOG_WRONG("rank", ": ", name, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPEDIMS_WITH_REASON(name, ...) OPKIT_LOG_WRONG("ranks", ": ", name, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPESIZE(name, ...) OPKIT_LOG_WRONG("number of elements", ", expected ", name, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPESIZE_WITH_REASON(name, ...) \
  OPKIT_LOG_WRONG("number of elements", ": ", name, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPESIZES_WITH_REASON(name, ...) \
  OPKIT_LOG_WRONG("numbers of elements", ": ", name, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_LISTSIZE(name, ...) OPKIT_LOG_WRONG("length", ", expected ", name, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_LISTSIZE_WITH_REASON(name, ...) OPKIT_LOG_WRONG("length", ": ", name, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_TENSORNUM(name, ...) OPKIT_LOG_WRONG("number of tensors", ", expected ", name, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_TENSORNUMS_WITH_REASON(name, ...) \
  OPKIT_LOG_WRONG("numbers of tensors", ": ", name, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_STRIDE(name, ...) OPKIT_LOG_WRONG("stride", ", expected ", name, __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_CONFIG_WITH_REASON(name, ...) OPKIT_LOG_WRONG("setting", ": ", name, __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_ATTR(name, ...) OPKIT_LOG_WRONG("value", ", expected ", name, __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_ATTR_SIZE(name, ...) OPKIT_LOG_WRONG("length", ", expected ", name, __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_INPUT_DTYPE(name, ...) OPKIT_LOG_WRONG("data type", ", expected ", name, __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_INPUT_FORMAT(name, ...) OPKIT_LOG_WRONG("format", ", expected ", name, __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_INPUT_SHAPE(name, ...) OPKIT_LOG_WRONG("shape", ", expected ", name, __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_INPUT_SHAPESIZE(name, ...) \
  OPKIT_LOG_WRONG("number of elements", ", expected ", name, __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_INPUT(name, parameter) \
  OP_LOGE(name, "the input %s is wrong", ::opkit::host::log_text(parameter).c_str())

/// When `condition` holds: logs, then leaves.
#define OP_CHECK_IF(condition, log_statement, leave_statement) \
  do {                                                         \
    if (condition) {                                           \
      log_statement;                                           \
      leave_statement;                                         \
    }                                                          \
  } while (false)

#define OPKIT_CHECK_POINTER(context, pointer, value) \
  do {                                               \
    if ((pointer) == nullptr) {                      \
      OP_LOGE(context, #pointer " is null");         \
      return value;                                  \
    }                                                \
  } while (false)
#define OP_CHECK_NULL_WITH_CONTEXT(context, pointer) OPKIT_CHECK_POINTER(context, pointer, ge::GRAPH_FAILED)
#define OP_CHECK_NULL_WITH_CONTEXT_RET(context, pointer, value) OPKIT_CHECK_POINTER(context, pointer, value)

// Sources that include the log ask it for levels too.
#include "toolchain/slog.h"
