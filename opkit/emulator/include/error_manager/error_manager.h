/// Reports by error code by another of their paths.
#pragma once

#include "op_common/log/log.h"
