/// The same as kernel_operator.h, under a name that sources also include.
#pragma once

#include "kernel_operator.h"
