/// The runtime that host programs use: devices, streams, memory. One emulated device, in the host's own memory.
#pragma once

#include "acl/acl_base.h"
#include "acl/acl_rt.h"
