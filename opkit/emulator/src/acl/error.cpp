#include "acl/error.h"

#include <cstdarg>
#include <cstdio>
#include <string>

#include "core/log.h"

namespace opkit::acl {
namespace {

thread_local std::string recent_message;    // not fetched yet
thread_local std::string returned_message;  // what aclGetRecentErrMsg gave out
thread_local aclError recent_error = ACL_SUCCESS;

}  // namespace

aclError fail(aclError code, const char* function, const char* format, ...) {
  char reason[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(reason, sizeof(reason), format, arguments);
  va_end(arguments);
  const std::string text = std::string(function) + ": " + reason;
  std::fprintf(stderr, "error: %s [%d]\n", text.c_str(), code);
  opkit_write_log(OPKIT_LOG_ERROR, "ACL", "", (text + " [" + std::to_string(code) + "]").c_str());
  return fail_again(code, text.c_str());
}

aclError fail_again(aclError code, const char* text) {
  recent_message = text;
  recent_error = code;
  return code;
}

aclError last_error() { return recent_error; }
void clear_last_error() { recent_error = ACL_SUCCESS; }

}  // namespace opkit::acl

const char* aclGetRecentErrMsg(void) {
  using namespace opkit::acl;
  if (recent_message.empty()) return nullptr;
  returned_message.swap(recent_message);
  recent_message.clear();
  return returned_message.c_str();
}
