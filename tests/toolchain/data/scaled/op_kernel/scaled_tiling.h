#pragma once

#include <cstdint>

struct ScaledTiling {
  uint32_t count;
};
