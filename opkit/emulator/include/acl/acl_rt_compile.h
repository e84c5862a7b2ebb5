/// Compiling kernels while the program runs. "opkit cc" does the work, so `opkit` must be on PATH; what it makes is a
/// kernel library for aclrtBinaryLoadFromData.
#pragma once

#include "acl/acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void* aclrtcProg;

// Source: API documents, RTC error codes.
enum {
  ACL_ERROR_RTC_INVALID_PROG = 176000,
  ACL_ERROR_RTC_INVALID_INPUT = 176001,
  ACL_ERROR_RTC_INVALID_OPTION = 176002,
  ACL_ERROR_RTC_COMPILATION = 176003,
  ACL_ERROR_RTC_LINKING = 176004,
  ACL_ERROR_RTC_NO_NAME_EXPR_AFTER_COMPILATION = 176005,
  ACL_ERROR_RTC_NO_LOWERED_NAMES_BEFORE_COMPILATION = 176006,
  ACL_ERROR_RTC_NAME_EXPR_NOT_VALID = 176007,
  ACL_ERROR_RTC_PROG_CREATION_FAILURE = 276000,
  ACL_ERROR_RTC_OUT_OF_MEMORY = 276001,
  ACL_ERROR_RTC_FAILURE = 576000
};

/// `source` includes `headers[i]` by the name `include_names[i]`. A null `name` stands for "default_program".
OPKIT_API aclError aclrtcCreateProg(aclrtcProg* program, const char* source, const char* name, int header_count,
                                    const char** headers, const char** include_names);
OPKIT_API aclError aclrtcDestroyProg(aclrtcProg* program);
/// Asks for a kernel that only an expression can name, such as `ns::add<float>`; before aclrtcCompileProg.
OPKIT_API aclError aclrtcAddNameExpr(aclrtcProg program, const char* expression);
/// Options are those of `opkit cc`.
OPKIT_API aclError aclrtcCompileProg(aclrtcProg program, int option_count, const char** options);
OPKIT_API aclError aclrtcGetBinDataSize(aclrtcProg program, size_t* size);
OPKIT_API aclError aclrtcGetBinData(aclrtcProg program, char* data);
/// The name for aclrtBinaryGetFunction; it lives as long as the program.
OPKIT_API aclError aclrtcGetLoweredName(aclrtcProg program, const char* expression, const char** name);
/// With the 0 byte at its end.
OPKIT_API aclError aclrtcGetCompileLogSize(aclrtcProg program, size_t* size);
OPKIT_API aclError aclrtcGetCompileLog(aclrtcProg program, char* log);

#ifdef __cplusplus
}
#endif
