/// The helpers of host code by another of their paths.
#pragma once

#include "op_common/op_host/util/const_util.h"
