// Included by its name alone: what DEPENDENCIES names is on the include path.
#pragma once

#include <cstddef>

constexpr size_t kMostDims = 4;
