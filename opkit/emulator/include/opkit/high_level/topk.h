/// TopK: the largest or smallest elements of each row, and where they stood. Source: Ascend C API, high-level API,
/// sorting.
#pragma once

#include "opkit/api/vector_tiling.h"
#include "opkit/high_level/elementwise.h"
#include "opkit/high_level/types.h"

namespace AscendC {

struct TopKInfo {
  int32_t outter = 1;
  int32_t inner{0};
  int32_t n{0};
};

}  // namespace AscendC

namespace opkit::high_level {

/// Sorting sorts downwards, so the smallest are the largest of the negated.
template <typename T>
inline AscendC::LocalTensor<T> to_be_sorted(const AscendC::LocalTensor<T>& src, const AscendC::LocalTensor<T>& space,
                                            uint32_t count, bool is_largest, Where where) {
  if (is_largest) return src;
  AscendC::Muls(space, src, static_cast<T>(-1.0f), static_cast<int32_t>(count), where);
  AscendC::PipeBarrier<PIPE_V>();
  return space;
}

/// The first k elements of `tensor`'s rows, which are data blocks.
template <typename T>
inline void copy_values(const AscendC::LocalTensor<T>& dst, const AscendC::LocalTensor<T>& values, uint32_t count,
                        bool is_largest, Where where) {
  AscendC::Muls(dst, values, static_cast<T>(is_largest ? 1.0f : -1.0f), static_cast<int32_t>(count), where);
}

/// Row by row; rows of results are padded to data blocks, and the padding stays as it was.
template <typename T, bool has_index, bool has_finish>
inline void topk_normal(const AscendC::LocalTensor<T>& dst_value, const AscendC::LocalTensor<int32_t>& dst_index,
                        const AscendC::LocalTensor<T>& src, const AscendC::LocalTensor<int32_t>& src_index,
                        const AscendC::LocalTensor<bool>& finish, const AscendC::LocalTensor<uint8_t>& space,
                        uint32_t k, const AscendC::TopKInfo& info, bool is_largest, Where where) {
  using namespace AscendC;
  const auto inner = static_cast<uint32_t>(info.inner);
  if (space.GetSize() < topk_normal_bytes(inner)) {
    illegal_operand("TopK: its temporary space is smaller than what a row needs", where);
  }
  const uint32_t value_row = round_up(k, kBlockBytes / sizeof(T)), index_row = round_up(k, 8);
  LocalTensor<T> sorted = space.template ReinterpretCast<T>();
  LocalTensor<T> merged = space[inner * 8].template ReinterpretCast<T>();
  const auto values = space[inner * 16].template ReinterpretCast<T>();
  LocalTensor<int32_t> index = space[inner * 20].template ReinterpretCast<int32_t>();
  const auto found_index = merged.template ReinterpretCast<int32_t>();
  if constexpr (has_index) {
    index = src_index;
  } else {
    CreateVecIndex(index, 0, static_cast<int32_t>(inner), where);
    PipeBarrier<PIPE_V>();
  }
  for (int32_t row = 0; row < info.outter; ++row) {
    const LocalTensor<T> data = to_be_sorted(src[row * inner], values, inner, is_largest, where);
    Sort<T, true>(sorted, data, index.template ReinterpretCast<uint32_t>(), merged, static_cast<int32_t>(inner / 32),
                  where);
    PipeBarrier<PIPE_V>();
    Extract(values, found_index.template ReinterpretCast<uint32_t>(), sorted,
            static_cast<int32_t>(round_up(k, 32) / 32), where);
    PipeBarrier<PIPE_V>();
    copy_values(dst_value[row * value_row], values, k, is_largest, where);
    Adds(dst_index[row * index_row], found_index, 0, static_cast<int32_t>(k), where);
    PipeBarrier<PIPE_V>();
    if constexpr (has_finish) {
      synchronize<HardEvent::V_S>(where);
      if (finish.GetValue(row, where)) {
        Duplicate(dst_index[row * index_row], info.n, static_cast<int32_t>(k), where);
        PipeBarrier<PIPE_V>();
      }
    }
  }
}

/// Rows of 32 elements, sorted by one instruction; results are one behind the other, picked by a pattern of bits.
template <typename T, bool has_index>
inline void topk_small(const AscendC::LocalTensor<T>& dst_value, const AscendC::LocalTensor<int32_t>& dst_index,
                       const AscendC::LocalTensor<T>& src, const AscendC::LocalTensor<int32_t>& src_index,
                       const AscendC::LocalTensor<uint8_t>& space, uint32_t k, const AscendC::TopKInfo& info,
                       bool is_largest, Where where) {
  using namespace AscendC;
  constexpr uint32_t kInner = 32, kMostRows = 255;
  const auto rows = static_cast<uint32_t>(info.outter);
  if (rows > kMostRows) illegal_operand("TopK: the small mode takes 255 rows at the most", where);
  if (space.GetSize() < topk_small_bytes(rows)) {
    illegal_operand("TopK: its temporary space is smaller than what the rows need", where);
  }
  const auto pattern = space.template ReinterpretCast<uint32_t>();
  const LocalTensor<T> sorted = space[64].template ReinterpretCast<T>();
  const auto values = space[64 + rows * kInner * 8].template ReinterpretCast<T>();
  LocalTensor<int32_t> index = space[64 + rows * kInner * 12].template ReinterpretCast<int32_t>();
  if constexpr (has_index) {
    index = src_index;
  } else {
    CreateVecIndex(index, 0, static_cast<int32_t>(kInner), where);
    PipeBarrier<PIPE_V>();
    for (uint32_t row = 1; row < rows; ++row) Adds(index[row * kInner], index, 0, static_cast<int32_t>(kInner), where);
    PipeBarrier<PIPE_V>();
  }
  const LocalTensor<T> data = to_be_sorted(src, values, rows * kInner, is_largest, where);
  Sort32(sorted, data, index.template ReinterpretCast<uint32_t>(), static_cast<int32_t>(rows), where);
  PipeBarrier<PIPE_V>();
  // A pair is 8 bytes: of its 4-byte halves the second is the index; a value fills the first, or half of it.
  const auto pick = [&](const auto& dst, const auto& pairs, const auto& bits, uint32_t lanes, uint32_t offset) {
    const uint32_t in_pair = lanes / kInner, word_bits = 8 * sizeof(decltype(bits.GetValue(0)));
    synchronize<HardEvent::V_S>(where);
    for (uint32_t word = 0; word < lanes / word_bits; ++word) {
      uint32_t set = 0;
      for (uint32_t lane = word * word_bits; lane < (word + 1) * word_bits; ++lane) {
        if (lane / in_pair < k && lane % in_pair == offset) set |= 1u << (lane % word_bits);
      }
      bits.SetValue(word, set, where);
    }
    synchronize<HardEvent::S_V>(where);
    uint64_t picked = 0;
    GatherMask(dst, pairs, bits, true, lanes, GatherMaskParams(1, static_cast<uint16_t>(rows), 8, 0), picked, where);
    PipeBarrier<PIPE_V>();
  };
  if constexpr (sizeof(T) == 2) {
    pick(dst_value, sorted, pattern.template ReinterpretCast<uint16_t>(), 128, 0);
  } else {
    pick(dst_value, sorted, pattern, 64, 0);
  }
  pick(dst_index, sorted.template ReinterpretCast<int32_t>(), pattern, 64, 1);
  if (!is_largest) {
    Muls(dst_value, dst_value, static_cast<T>(-1.0f), static_cast<int32_t>(rows * k), where);
    PipeBarrier<PIPE_V>();
  }
}

}  // namespace opkit::high_level

namespace AscendC {

template <typename T, bool isInitIndex = false, bool isHasfinish = false, bool isReuseSrc = false,
          enum TopKMode topkMode = TopKMode::TOPK_NORMAL>
inline void TopK(const LocalTensor<T>& dstValueLocal, const LocalTensor<int32_t>& dstIndexLocal,
                 const LocalTensor<T>& srcLocal, const LocalTensor<int32_t>& srcIndexLocal,
                 const LocalTensor<bool>& finishLocal, const LocalTensor<uint8_t>& tmpLocal, const int32_t k,
                 const TopkTiling& tilling, const TopKInfo& topKInfo, const bool isLargest = true, OPKIT_HERE) {
  using namespace opkit::high_level;
  static_assert(sizeof(T) > 0 && opkit::vec::kSortsPairs, "TopK: not yet built for this chip, as Sort");
  (void)tilling;
  const int32_t inner = topKInfo.inner;
  if (inner <= 0 || inner % 32 != 0 || topKInfo.n > inner || k < 1 || k > topKInfo.n) {
    opkit::illegal_operand("TopK: inner is no multiple of 32, n more than inner, or k not in 1 to n", where);
  }
  if (std::is_same_v<T, half> && !isInitIndex && inner > 2048) {
    opkit::illegal_operand("TopK: inner of half is more than 2048 where the indices are counted up", where);
  }
  if constexpr (topkMode == TopKMode::TOPK_NSMALL) {
    if (isHasfinish) opkit::illegal_operand("TopK: the small mode takes no finished rows", where);
    if (inner != 32) opkit::illegal_operand("TopK: in the small mode inner is 32", where);
    topk_small<T, isInitIndex>(dstValueLocal, dstIndexLocal, srcLocal, srcIndexLocal, tmpLocal,
                               static_cast<uint32_t>(k), topKInfo, isLargest, where);
  } else {
    if (inner > 4096) opkit::illegal_operand("TopK: inner is more than 4096", where);
    topk_normal<T, isInitIndex, isHasfinish>(dstValueLocal, dstIndexLocal, srcLocal, srcIndexLocal, finishLocal,
                                             tmpLocal, static_cast<uint32_t>(k), topKInfo, isLargest, where);
  }
}
template <typename T, bool isInitIndex = false, bool isHasfinish = false, bool isReuseSrc = false,
          enum TopKMode topkMode = TopKMode::TOPK_NORMAL>
inline void TopK(const LocalTensor<T>& dstValueLocal, const LocalTensor<int32_t>& dstIndexLocal,
                 const LocalTensor<T>& srcLocal, const LocalTensor<int32_t>& srcIndexLocal,
                 const LocalTensor<bool>& finishLocal, const int32_t k, const TopkTiling& tilling,
                 const TopKInfo& topKInfo, const bool isLargest = true, OPKIT_HERE) {
  TopK<T, isInitIndex, isHasfinish, isReuseSrc, topkMode>(dstValueLocal, dstIndexLocal, srcLocal, srcIndexLocal,
                                                          finishLocal, opkit::high_level::free_space(), k, tilling,
                                                          topKInfo, isLargest, where);
}

}  // namespace AscendC
