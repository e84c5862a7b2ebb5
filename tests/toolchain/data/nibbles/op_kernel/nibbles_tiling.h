#pragma once
#include <cstdint>

struct NibblesTiling {
  uint32_t length;
};
