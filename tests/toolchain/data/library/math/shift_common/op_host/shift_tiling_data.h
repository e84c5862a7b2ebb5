#pragma once

#include <cstdint>

struct ShiftTilingData {
  int64_t count;
  int64_t per_core;
  int64_t by;
};
