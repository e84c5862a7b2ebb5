/// All vector instructions.
#pragma once

#include "opkit/api/scalar.h"
#include "opkit/api/std.h"
#include "opkit/api/vector_bilinear.h"
#include "opkit/api/vector_cast.h"
#include "opkit/api/vector_compare.h"
#include "opkit/api/vector_elementwise.h"
#include "opkit/api/vector_fill.h"
#include "opkit/api/vector_fused.h"
#include "opkit/api/vector_gather.h"
#include "opkit/api/vector_mask.h"
#include "opkit/api/vector_operators.h"
#include "opkit/api/vector_reduce.h"
#include "opkit/api/vector_registers.h"
#include "opkit/api/vector_sort.h"
#include "opkit/api/vector_transpose.h"
