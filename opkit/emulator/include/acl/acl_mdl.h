/// Offline models (.om files). They hold kernels for real chips only.
#pragma once

#error "opkit runs no offline models (acl/acl_mdl.h): launch the kernels, or call the operators' aclnn functions"
