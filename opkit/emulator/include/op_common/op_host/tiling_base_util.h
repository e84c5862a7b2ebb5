/// What tiling functions share. The names are those that public operator libraries call.
#pragma once

#include "op_common/log/log.h"
#include "op_common/op_host/util/math_util.h"
#include "op_common/op_host/util/platform_util.h"
#include "op_common/op_host/util/shape_util.h"
#include "register/op_impl_registry.h"
#include "tiling/platform/platform_ascendc.h"
