#pragma once
// No <cstdint>: kernels include such headers first.

constexpr int kPlain = 0;
enum Sign { kNegated = kPlain + 1 };

struct ScaledTiling {
  uint32_t count;
};

// Of float: its count lies elsewhere.
struct ScaledFloatTiling {
  uint64_t reserved;
  uint32_t count;
};
