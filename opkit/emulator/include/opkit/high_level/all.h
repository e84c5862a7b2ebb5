/// The high-level library: functions that are made of ordinary instructions, a header a family.
#pragma once

#include "opkit/high_level/activation.h"
#include "opkit/high_level/broadcast.h"
#include "opkit/high_level/filter.h"
#include "opkit/high_level/functions.h"
#include "opkit/high_level/gelu.h"
#include "opkit/high_level/index.h"
#include "opkit/high_level/norm.h"
#include "opkit/high_level/norm_grad.h"
#include "opkit/high_level/pad.h"
#include "opkit/high_level/power.h"
#include "opkit/high_level/quantize.h"
#include "opkit/high_level/reduce.h"
#include "opkit/high_level/scalar_forms.h"
#include "opkit/high_level/softmax.h"
#include "opkit/high_level/softmax_flash.h"
#include "opkit/high_level/softmax_grad.h"
