/// Tensors for the results of operators.
#pragma once

#include "opkit_npu/preparation.h"
