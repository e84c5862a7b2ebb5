/// The architectures that opkit emulates, and what differs between them: named rows of isa/arch_<number>.inc. What is
/// no data type of an instruction is a trait here, so that no code compares names.
#pragma once

#include <cstddef>
#include <cstdint>

#ifndef __NPU_ARCH__
#define __NPU_ARCH__ 2201
#endif

namespace opkit {

/// What an architecture's file does not say has these values.
struct ArchTraits {
  uint32_t number = 0;          ///< __NPU_ARCH__; chips/*.json says dav-<number>
  uint32_t cce_aicore = 0;      ///< __CCE_AICORE__
  uint32_t ub_bytes = 0;        ///< as in chips/*.json; kernels need them when they are compiled
  uint32_t l1_bytes = 0;        ///< "
  uint32_t l0c_bytes = 0;       ///< "
  uint32_t reserved_bytes = 0;  ///< of UB and of L1, which the framework keeps; as in chips/*.json
  bool is_coupled = false;      ///< cube and vector unit share a core and UB; no bias table (C2 is L0C), no unit flags
  bool sorts_pairs = false;     ///< 8-byte pairs; else region proposals of eight elements
  bool reduces_to_one = false;  ///< WholeReduceMax and -Min also give the value alone or the index alone
  bool tells_extreme_index = false;    ///< GetReduceRepeatMaxMinSpr gives the index too
  bool adds_count_in_order = false;    ///< ReduceSum's count form adds repeats one after the other; else as a tree
  bool gathers_by_repeat = false;      ///< GatherMask's counter mode handles `mask` elements a repeat; else altogether
  uint32_t last_pattern = 0;           ///< of GatherMask
  bool has_transpose_work = false;     ///< Transpose between NCHW and NHWC needs a work tensor
  bool has_saturation_bit = false;     ///< bit 48 of the control register
  bool dequantizes_s32 = false;        ///< CastDequant takes S32
  bool broadcasts_wide_types = false;  ///< Broadcast takes BF16, S16 and S32
  bool compares_past_masks = false;    ///< Compare with repeat times looks at no mask, in counter mode neither
};

template <uint32_t number>
constexpr ArchTraits traits_of();
#define ARCH_BEGIN(number_)                   \
  template <>                                 \
  constexpr ArchTraits traits_of<number_>() { \
    ArchTraits arch;                          \
    arch.number = number_;
#define ARCH_TRAIT(name, value) arch.name = value;
#define ARCH_END() \
  return arch;     \
  }
#include "opkit/isa/archs.inc"

constexpr ArchTraits kArchs[] = {
#define ARCH_BEGIN(number) traits_of<number>(),
#include "opkit/isa/archs.inc"
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
