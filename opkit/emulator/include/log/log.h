/// Logging of host functions by another of its paths.
#pragma once

#include "op_common/log/log.h"
