/// What checks report of a program's use of device memory.
#pragma once

#include "acl/acl_base.h"
#include "acl/memory.h"

namespace opkit::acl {

/// As fail, with ACL_ERROR_RT_PARAM_INVALID; under checks also a finding of class `id` at the program's call.
aclError fail_memory(const char* id, const char* function, const char* help, const char* format, ...)
    __attribute__((format(printf, 4, 5)));

/// Reports the device memory that is there still although nobody will free it, and what nothing ever touched.
void report_leaks(const Memory& memory, const char* when);

/// Reports an allocation that is about to go and that nothing has touched, where that was asked for.
void report_unused(const Allocation& allocation);

}  // namespace opkit::acl
