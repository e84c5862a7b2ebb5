/// The chip's numbers for tiling functions, by the path that operator libraries use.
#pragma once

#include "tiling/platform/platform_ascendc.h"
