/// How a runtime call fails: a code for the program, a reason for its author.
#pragma once

#include "acl/acl_base.h"

namespace opkit::acl {

/// Remembers the reason for aclGetRecentErrMsg, prints it to stderr and returns `code`. Printed, because few programs
/// look at what their calls return.
aclError fail(aclError code, const char* function, const char* format, ...) __attribute__((format(printf, 3, 4)));

/// As fail, for a reason that has been printed already.
aclError fail_again(aclError code, const char* text);

/// The last code that fail returned on this thread.
aclError last_error();
void clear_last_error();

}  // namespace opkit::acl
