/// Sorting: Sort32, MrgSort, Sort, Concat, Extract; on the inference series RpSort16, MrgSort4, ProposalConcat and
/// ProposalExtract. Source: Ascend C API, sorting, basic and high-level.
#pragma once

#include "opkit/api/data_copy.h"
#include "opkit/api/sync.h"
#include "opkit/api/vector_gather.h"

namespace AscendC {

template <typename T>
struct MrgSortSrcList {
  MrgSortSrcList() = default;
  MrgSortSrcList(const LocalTensor<T>& first, const LocalTensor<T>& second, const LocalTensor<T>& third,
                 const LocalTensor<T>& fourth)
      : src1(first), src2(second), src3(third), src4(fourth) {}

  LocalTensor<T> src1;
  LocalTensor<T> src2;
  LocalTensor<T> src3;
  LocalTensor<T> src4;
};

struct MrgSort4Info {
  MrgSort4Info() = default;
  MrgSort4Info(const uint16_t lengths[4], bool stops, uint16_t valid, uint16_t repeat)
      : elementLengths{lengths[0], lengths[1], lengths[2], lengths[3]},
        ifExhaustedSuspension(stops),
        validBit(valid),
        repeatTimes(static_cast<uint8_t>(repeat)) {}

  uint16_t elementLengths[4] = {0, 0, 0, 0};
  bool ifExhaustedSuspension = false;
  uint16_t validBit = 0;
  uint8_t repeatTimes = 1;
};

}  // namespace AscendC

namespace opkit::vec {

constexpr bool kSortsPairs = kArchTraits.sorts_pairs;

template <typename T>
inline void merge(Op op, const AscendC::LocalTensor<T>& dst, const AscendC::MrgSortSrcList<T>& src,
                  const AscendC::MrgSort4Info& params, Where where) {
  const Operand list[4] = {src.src1.operand(), src.src2.operand(), src.src3.operand(), src.src4.operand()};
  Instr instr = unary(op, dst.operand(), list[0], where);
  instr.list = list;
  instr.list_count = 4;
  uint32_t total = 0;
  for (uint32_t queue = 0; queue < 4; ++queue) {
    if ((params.validBit >> queue & 1) == 0) continue;
    instr.scalar_bits[0] |= static_cast<uint64_t>(params.elementLengths[queue]) << 16 * queue;
    total += params.elementLengths[queue];
  }
  // A validBit that is too wide stays a wrong one.
  const uint16_t valid = params.validBit > 15 ? 0 : params.validBit;
  instr.mode = static_cast<uint8_t>(valid | (params.ifExhaustedSuspension ? 16 : 0));
  instr.repeat = params.repeatTimes;
  instr.count = total * params.repeatTimes;  // for the timing model: pairs
  issue(instr);
}

template <typename T>
inline Instr sort_repeats(Op op, const AscendC::LocalTensor<T>& dst, const AscendC::LocalTensor<T>& src, int32_t repeat,
                          uint32_t per_repeat, Where where) {
  Instr instr = unary(op, dst.operand(), src.operand(), where);
  instr.repeat = repeat < 0 ? ~0u : static_cast<uint32_t>(repeat);
  instr.count = instr.repeat * per_repeat;
  return instr;
}

}  // namespace opkit::vec

namespace AscendC {

/// Pairs of a score and an index, 32 sorted a repeat, largest score first.
template <typename T>
inline void Sort32(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<uint32_t>& src1,
                   const int32_t repeatTime, OPKIT_HERE) {
  OPKIT_ASSERT_TYPE(Sort32, T);
  opkit::Instr instr = opkit::vec::sort_repeats(opkit::Op::Sort32, dst, src0, repeatTime, 32, where);
  instr.src[1] = src1.operand();
  instr.source_count = 2;
  opkit::issue(instr);
}

/// Merges two to four sorted queues.
template <typename T>
inline void MrgSort(const LocalTensor<T>& dst, const MrgSortSrcList<T>& src, const MrgSort4Info& params, OPKIT_HERE) {
  OPKIT_ASSERT_TYPE(MrgSort, T);
  opkit::vec::merge(opkit::Op::MrgSort, dst, src, params, where);
}

/// The same on region proposals.
template <typename T>
inline void MrgSort4(const LocalTensor<T>& dst, const MrgSortSrcList<T>& src, const MrgSort4Info& params, OPKIT_HERE) {
  OPKIT_ASSERT_TYPE(MrgSort4, T);
  opkit::vec::merge(opkit::Op::MrgSort4, dst, src, params, where);
}

/// How many elements of each queue the last merge took, when a queue that ran out ended it.
inline void GetMrgSortResult(uint16_t& mrgSortList1, uint16_t& mrgSortList2, uint16_t& mrgSortList3,
                             uint16_t& mrgSortList4, OPKIT_HERE) {
  uint16_t counts[4];
  opkit::merged_counts(counts, where);
  mrgSortList1 = counts[0];
  mrgSortList2 = counts[1];
  mrgSortList3 = counts[2];
  mrgSortList4 = counts[3];
}

#define OPKIT_PROPOSALS(name)                                                                                  \
  template <typename T>                                                                                        \
  inline void name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t repeatTime,             \
                   const int32_t modeNumber, OPKIT_HERE) {                                                     \
    OPKIT_ASSERT_TYPE(name, T);                                                                                \
    ::opkit::Instr instr = ::opkit::vec::sort_repeats(::opkit::Op::name, dst, src, repeatTime, 16 * 8, where); \
    instr.mode = static_cast<uint8_t>(modeNumber < 0 || modeNumber > 255 ? 255 : modeNumber);                  \
    ::opkit::issue(instr);                                                                                     \
  }
OPKIT_PROPOSALS(ProposalConcat)
OPKIT_PROPOSALS(ProposalExtract)
#undef OPKIT_PROPOSALS

/// Sixteen region proposals a repeat, largest score first.
template <typename T>
inline void RpSort16(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t repeatTime, OPKIT_HERE) {
  OPKIT_ASSERT_TYPE(RpSort16, T);
  opkit::Instr instr = opkit::vec::sort_repeats(opkit::Op::RpSort16, dst, src, repeatTime, 16, where);
  opkit::issue(instr);
}

/// The length of `elemCount` sorted elements, and where an element lies in them, counted in T: a pair of score and
/// index has 8 bytes, a proposal 8 numbers. The pages say bytes; public kernels multiply by sizeof(T) and index with
/// it.
template <typename T>
inline uint32_t GetSortLen(const uint32_t elemCount) {
  return elemCount * (opkit::vec::kSortsPairs ? 8 / sizeof(T) : 8);
}
template <typename T>
inline uint32_t GetSortOffset(const uint32_t elemOffset) {
  return GetSortLen<T>(elemOffset);
}

/// Makes ready what Sort sorts. Where scores are sorted as they are, `concat` becomes `src` itself: callers leave it
/// without memory of its own.
template <typename T>
inline void Concat(LocalTensor<T>& concat, const LocalTensor<T>& src, const LocalTensor<T>& tmp,
                   const int32_t repeatTime) {
  static_assert(sizeof(T) > 0 && opkit::vec::kSortsPairs,
                "Concat: not yet built for this chip; see `opkit isa Concat`");
  (void)tmp;
  (void)repeatTime;
  concat = src;
}

/// Merges sorted queues; `sortedNum` is written when a queue that runs out ends the merge.
template <typename T, bool isExhaustedSuspension = false>
inline void MrgSort(const LocalTensor<T>& dst, const MrgSortSrcList<T>& sortList, const uint16_t elementCountList[4],
                    uint32_t sortedNum[4], uint16_t validBit, const int32_t repeatTime, OPKIT_HERE) {
  const MrgSort4Info params(elementCountList, isExhaustedSuspension, validBit, static_cast<uint16_t>(repeatTime));
  if constexpr (opkit::vec::kSortsPairs) {
    MrgSort<T>(dst, sortList, params, where);
  } else {
    MrgSort4<T>(dst, sortList, params, where);
  }
  if (!isExhaustedSuspension) return;
  uint16_t counts[4];
  opkit::merged_counts(counts, where);
  for (uint32_t queue = 0; queue < 4; ++queue) sortedNum[queue] = counts[queue];
}

}  // namespace AscendC

namespace opkit::vec {

/// One pass of a full sort: `from` holds sorted queues of `length` elements, the last may be shorter; `to` gets queues
/// four times as long.
template <typename T>
inline void merge_pass(const AscendC::LocalTensor<T>& to, const AscendC::LocalTensor<T>& from, uint32_t total,
                       uint32_t length, Where where) {
  const uint32_t step = AscendC::GetSortOffset<T>(length);
  const uint32_t whole = total / (4 * length);
  const auto merge_at = [&](uint32_t first, const uint16_t (&lengths)[4], uint16_t valid, uint32_t repeat) {
    const AscendC::LocalTensor<T> base = from[AscendC::GetSortOffset<T>(first)];
    const AscendC::MrgSortSrcList<T> queues(base, base[step], base[2 * step], base[3 * step]);
    AscendC::MrgSort<T>(to[AscendC::GetSortOffset<T>(first)], queues,
                        AscendC::MrgSort4Info(lengths, false, valid, static_cast<uint16_t>(repeat)), where);
  };
  const uint16_t even = static_cast<uint16_t>(length);
  if (whole > 0) merge_at(0, {even, even, even, even}, 15, whole);
  const uint32_t first = whole * 4 * length;
  uint32_t left = total - first;
  if (left == 0) return;
  if (left <= length) {
    AscendC::DataCopy(to[AscendC::GetSortOffset<T>(first)], from[AscendC::GetSortOffset<T>(first)],
                      AscendC::GetSortOffset<T>(left));
    return;
  }
  uint16_t lengths[4] = {0, 0, 0, 0};
  uint16_t valid = 0;
  for (uint32_t queue = 0; left > 0; ++queue) {
    const uint32_t here = left < length ? left : length;
    lengths[queue] = static_cast<uint16_t>(here);
    valid = static_cast<uint16_t>(valid << 1 | 1);
    left -= here;
  }
  merge_at(first, lengths, valid, 1);
}

}  // namespace opkit::vec

namespace AscendC {

/// Sorts 32 elements a repeat, or with isFullSort all of them; `tmp` is as large as `dst` then.
template <typename T, bool isFullSort>
inline void Sort(const LocalTensor<T>& dst, const LocalTensor<T>& concat, const LocalTensor<uint32_t>& index,
                 LocalTensor<T>& tmp, const int32_t repeatTime, OPKIT_HERE) {
  static_assert(sizeof(T) > 0 && opkit::vec::kSortsPairs, "Sort: not yet built for this chip; see `opkit isa Sort`");
  uint32_t passes = 0;
  if (isFullSort) {
    for (int32_t queues = repeatTime; queues > 1; queues = (queues + 3) / 4) ++passes;
  }
  // Passes go to and fro between the two tensors; the last one ends in dst.
  LocalTensor<T> from = passes % 2 == 0 ? dst : tmp;
  LocalTensor<T> to = passes % 2 == 0 ? tmp : dst;
  Sort32<T>(from, concat, index, repeatTime, where);
  const uint32_t total = static_cast<uint32_t>(repeatTime) * 32;
  uint32_t length = 32;
  for (uint32_t pass = 0; pass < passes; ++pass, length *= 4) {
    PipeBarrier<PIPE_V>(where);
    opkit::vec::merge_pass<T>(to, from, total, length, where);
    const LocalTensor<T> merged = to;
    to = from;
    from = merged;
  }
}

/// Takes values and indices of sorted pairs apart, 32 a repeat.
template <typename T>
inline void Extract(const LocalTensor<T>& dstValue, const LocalTensor<uint32_t>& dstIndex, const LocalTensor<T>& sorted,
                    const int32_t repeatTime, OPKIT_HERE) {
  static_assert(sizeof(T) > 0 && opkit::vec::kSortsPairs,
                "Extract: not yet built for this chip; see `opkit isa Extract`");
  if (repeatTime <= 0) return;
  uint64_t picked = 0;
  const GatherMaskParams params(1, static_cast<uint16_t>(repeatTime), 8, 0);
  // A pair is two floats, or four halves of which the second is reserved.
  GatherMask(dstValue, sorted, static_cast<uint8_t>(sizeof(T) == 2 ? 3 : 1), false, 0, params, picked, where);
  GatherMask(dstIndex, sorted.template ReinterpretCast<uint32_t>(), uint8_t{2}, false, 0, params, picked, where);
}

}  // namespace AscendC
