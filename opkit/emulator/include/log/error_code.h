/// The codes of error reports by another of their paths.
#pragma once

#include "op_common/log/error_code.h"
