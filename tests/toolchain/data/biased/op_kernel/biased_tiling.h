#pragma once

#include <cstdint>

struct BiasedTiling {
  uint32_t length;
  uint32_t terms;
};
