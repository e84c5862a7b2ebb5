/// The architectures that opkit emulates, and what differs between them. The tables of include/opkit/isa have a value
/// for each, in this order; what is no size or data type is a trait here, so that no code compares names.
#pragma once

#include <cstddef>
#include <cstdint>

#ifndef __NPU_ARCH__
#define __NPU_ARCH__ 2201
#endif

namespace opkit {

struct ArchTraits {
  uint32_t number;             ///< __NPU_ARCH__; chips/*.json says dav-<number>
  uint32_t ub_bytes;           ///< as in chips/*.json; kernels need them when they are compiled
  uint32_t l1_bytes;           ///< "
  uint32_t l0c_bytes;          ///< "
  bool is_coupled;             ///< cube and vector unit share a core and UB; no bias table (C2 is L0C), no unit flags
  bool sorts_pairs;            ///< 8-byte pairs; else region proposals of eight elements
  bool reduces_to_one;         ///< WholeReduceMax and -Min also give the value alone or the index alone
  bool tells_extreme_index;    ///< GetReduceRepeatMaxMinSpr gives the index too
  bool adds_count_in_order;    ///< ReduceSum's count form adds repeats one after the other; else as a tree
  bool gathers_by_repeat;      ///< GatherMask's counter mode handles `mask` elements a repeat; else altogether
  uint32_t last_pattern;       ///< of GatherMask
  bool has_transpose_work;     ///< Transpose between NCHW and NHWC needs a work tensor
  bool has_saturation_bit;     ///< bit 48 of the control register
  bool dequantizes_s32;        ///< CastDequant takes S32
  bool broadcasts_wide_types;  ///< Broadcast takes BF16, S16 and S32
  bool compares_past_masks;    ///< Compare with repeat times looks at no mask, in counter mode neither
};

/// Sources: the pages of the functions that the traits name; sizes: chips/*.json.
constexpr ArchTraits kArchs[] = {
    // A2 and A3
    {2201, 192 * 1024, 512 * 1024, 128 * 1024, false, true, true, true, true, true, 7, true, true, true, true, true},
    // 310P
    {2002, 256 * 1024, 1024 * 1024, 256 * 1024, true, false, false, false, false, false, 6, false, false, false, false,
     false},
};
constexpr size_t kArchCount = sizeof(kArchs) / sizeof(kArchs[0]);

/// The index of an architecture in kArchs; kArchCount where opkit lacks it.
constexpr size_t arch_index(uint32_t number) {
  size_t index = 0;
  while (index < kArchCount && kArchs[index].number != number) ++index;
  return index;
}

/// The architecture that this kernel is compiled for.
constexpr size_t kArch = arch_index(__NPU_ARCH__);
static_assert(kArch < kArchCount, "opkit does not emulate this __NPU_ARCH__; `opkit targets` lists the chips");
constexpr ArchTraits kArchTraits = kArchs[kArch];

}  // namespace opkit
