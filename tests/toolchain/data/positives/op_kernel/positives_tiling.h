#pragma once

#include <cstdint>

struct PositivesTiling {
  uint32_t length;
};
