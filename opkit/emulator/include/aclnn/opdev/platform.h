/// The platform of host code that includes it by this name. Source: ops-math coalesce_sparse.
#pragma once

#include "platform/platform_ascendc.h"
