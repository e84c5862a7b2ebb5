#pragma once
#include <cstdint>

struct DifferenceTiling {
  uint32_t length;
};
