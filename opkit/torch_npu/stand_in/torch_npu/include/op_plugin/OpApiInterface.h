/// What extensions include to call aclnn operators.
#pragma once

#include "opkit_npu/exec.h"
#include "opkit_npu/names.h"
#include "opkit_npu/preparation.h"
