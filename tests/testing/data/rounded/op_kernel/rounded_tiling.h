#pragma once
#include <cstdint>

struct RoundedTiling {
  uint32_t length;
  uint32_t unit;
  uint32_t buffer;
  uint32_t front;
};
