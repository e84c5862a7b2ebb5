#pragma once
#include <cstdint>

struct RoundedTiling {
  uint32_t length;
  uint32_t unit;
};
