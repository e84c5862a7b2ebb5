/// Operators called by their names through offline models. They hold kernels for real chips only.
#pragma once

#error "opkit has no aclop calls (acl/acl_op.h): call the operator's aclnn functions instead"
