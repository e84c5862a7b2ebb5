#include "acl/memory_check.h"

#include <cstdarg>
#include <cstdio>
#include <string>
#include <utility>

#include "acl/caller.h"
#include "acl/error.h"
#include "observe/checks.h"

namespace opkit::acl {
namespace {

void report(const char* id, Site site, std::string message, const char* help, const Allocation* allocation) {
  Finding finding;
  finding.id = id;
  finding.message = std::move(message);
  finding.help = help;
  finding.site = std::move(site);
  finding.count = 1;
  if (allocation != nullptr) {
    finding.space = "GM";
    finding.end = allocation->bytes;
  }
  add_finding(std::move(finding));
}

}  // namespace

aclError fail_memory(const char* id, const char* function, const char* help, const char* format, ...) {
  char reason[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(reason, sizeof(reason), format, arguments);
  va_end(arguments);
  const CheckOptions* checks = running_checks();
  if (checks != nullptr && checks->memory) {
    report(id, site_of_call(Caller::current(), function), std::string(function) + ": " + reason, help, nullptr);
  }
  return fail(ACL_ERROR_RT_PARAM_INVALID, function, "%s", reason);
}

void report_leaks(const Memory& memory, const char* when) {
  const CheckOptions* checks = running_checks();
  if (checks == nullptr || !checks->memory) return;
  for (const auto& [begin, allocation] : memory.device()) {
    report_unused(allocation);
    report("LEAK-DEVICE", site_of_call(allocation.caller, "aclrtMalloc"),
           std::to_string(allocation.bytes) + " bytes of device memory are not freed when " + when,
           "call aclrtFree on it once its last task has run", &allocation);
  }
}

void report_unused(const Allocation& allocation) {
  const CheckOptions* checks = running_checks();
  if (checks == nullptr || !checks->unused || allocation.written == nullptr || allocation.written->is_touched()) return;
  report(
      "MEM-UNUSED", site_of_call(allocation.caller, "aclrtMalloc"),
      std::to_string(allocation.bytes) + " bytes of device memory were allocated, and nothing has read or written them",
      "leave the allocation out, or check that the kernel gets this pointer", &allocation);
}

}  // namespace opkit::acl
