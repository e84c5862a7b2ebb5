/// From and to 8 and 4 bits: AscendQuant, AscendDequant, AscendAntiQuant.
#pragma once

#include "opkit/high_level/anti_quantize.h"
#include "opkit/high_level/dequantize.h"
#include "opkit/high_level/quantize_to_int8.h"
