/// The header of Matmul, the high-level API of matrix multiplication.
#pragma once

#include "opkit/matmul/matmul.h"
