/// Enumerations that kernels and host functions of the high-level library both name. Source: Ascend C API, high-level
/// API, reduction, sorting,
/// tensor transformation.
#pragma once

#include <cstdint>

#include "opkit/api/shape_info.h"

namespace AscendC {

/// The axes of a tensor, a letter each: R is reduced. Functions take AR and RA; their spaces are also asked for R.
enum class ReducePattern : uint32_t {
  AR = 0,
  RA = 1,
  R,
  ARA,
  ARAR,
  ARARA,
  ARARAR,
  ARARARA,
  ARARARAR,
  ARARARARA,
  RAR,
  RARA,
  RARAR,
  RARARA,
  RARARAR,
  RARARARA,
};

enum class TopKMode {
  TOPK_NORMAL,
  TOPK_NSMALL,
};

enum class SortType {
  RADIX_SORT,
  MERGE_SORT,
};
struct SortConfig {
  SortType type = SortType::RADIX_SORT;
  bool isDescend = false;
};

/// What TransData converts from and to.
struct TransDataConfig {
  DataFormat srcFormat;
  DataFormat dstFormat;
};

}  // namespace AscendC
