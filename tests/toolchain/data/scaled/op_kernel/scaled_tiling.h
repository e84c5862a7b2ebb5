#pragma once

#include <cstdint>

struct ScaledTiling {
  uint32_t count;
};

// Of float: its count lies elsewhere.
struct ScaledFloatTiling {
  uint64_t reserved;
  uint32_t count;
};
