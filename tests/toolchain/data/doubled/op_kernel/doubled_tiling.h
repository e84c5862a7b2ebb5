#pragma once

#include <cstdint>

struct DoubledTiling {
  uint32_t length;
};
