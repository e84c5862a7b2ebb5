/// What every program that calls aclnn functions needs. Source: public documents of the aclnn API, aclnnInit,
/// aclnnFinalize, common interface return codes.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "acl/acl_base.h"
#include "aclnn/acl_meta.h"
#include "opkit/export.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  ACLNN_SUCCESS = 0,
  ACLNN_ERR_PARAM_NULLPTR = 161001,
  ACLNN_ERR_PARAM_INVALID = 161002,
  ACLNN_ERR_RUNTIME_ERROR = 361001,
  ACLNN_ERR_INNER = 561000,
  ACLNN_ERR_INNER_INFERSHAPE_ERROR = 561001,
  ACLNN_ERR_INNER_TILING_ERROR = 561002,
  ACLNN_ERR_INNER_FIND_KERNEL_ERROR = 561003,
  ACLNN_ERR_INNER_CREATE_EXECUTOR = 561101,
  ACLNN_ERR_INNER_NULLPTR = 561103
};

/// `config_path` may be null; a file is accepted and not read: opkit takes its options from `opkit run`.
OPKIT_API aclnnStatus aclnnInit(const char* config_path);
OPKIT_API aclnnStatus aclnnFinalize(void);

/// Lets the second function of an aclnn pair be called with the executor again; it is then destroyed by
/// aclDestroyAclOpExecutor.
OPKIT_API aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor);
OPKIT_API aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor);

#ifdef __cplusplus
}
#endif
