/// Fill of L1, L0A and L0B, and BroadCastVecToMM. Source: Ascend C API, matrix computation (ISASI), Fill,
/// BroadCastVecToMM.
#pragma once

#include "opkit/api/tensor.h"

namespace AscendC {

/// blockNum and dstGap count blocks: 32 bytes in L1, 512 in L0A and L0B. Arch 2002 looks at repeatTimes and initValue
/// only: 512 bytes each time.
template <typename T>
struct InitConstValueParams {
  uint16_t repeatTimes = 0;
  uint16_t blockNum = 0;
  uint16_t dstGap = 0;
  T initValue = {};
  InitConstValueParams() = default;
  InitConstValueParams(uint16_t repeat_times, uint16_t block_count, uint16_t gap, T value)
      : repeatTimes(repeat_times), blockNum(block_count), dstGap(gap), initValue(value) {}
  InitConstValueParams(uint16_t repeat_times, T value) : repeatTimes(repeat_times), initValue(value) {}
};

/// Pipe MTE2 for L1, MTE1 for L0A and L0B.
template <typename T, typename U = PrimT<T>, std::enable_if_t<std::is_same_v<PrimT<T>, U>, bool> = true>
inline void Fill(const LocalTensor<T>& dst, const InitConstValueParams<U>& initConstValueParams,
                 opkit::Where where = opkit::Where::here()) {
  constexpr bool kHasBlocks = !opkit::kIsCoupled;
  opkit::Instr instr;
  instr.op = opkit::Op::InitConstValue;
  instr.dst = dst.operand();
  const bool is_l1 = instr.dst.space == opkit::Space::L1;
  instr.pipe = is_l1 ? opkit::Pipe::MTE2 : opkit::Pipe::MTE1;
  opkit::MatrixFill fill;
  fill.repeat = initConstValueParams.repeatTimes;
  fill.block_bytes = is_l1 && kHasBlocks ? opkit::kBlockBytes : opkit::kFractalBytes;
  fill.blocks = kHasBlocks ? initConstValueParams.blockNum : 1;
  fill.dst_stride = (uint64_t{fill.blocks} + (kHasBlocks ? initConstValueParams.dstGap : 0)) * fill.block_bytes;
  fill.value_bits = opkit::bits_of(initConstValueParams.initValue);
  instr.fill = &fill;
  instr.where = where;
  opkit::issue(instr);
}
/// Its name before CANN 9.
template <typename T, typename U = PrimT<T>, std::enable_if_t<std::is_same_v<PrimT<T>, U>, bool> = true>
inline void InitConstValue(const LocalTensor<T>& dst, const InitConstValueParams<U>& initConstValueParams,
                           opkit::Where where = opkit::Where::here()) {
  Fill(dst, initConstValueParams, where);
}

/// Each 16 elements of UB become 16 equal rows of a fractal of L0C. blockLen counts fractals, srcGap data blocks,
/// dstGap fractals.
template <typename T, typename U>
inline void BroadCastVecToMM(const LocalTensor<T>& dst, const LocalTensor<U>& src, const int32_t blockCount,
                             const uint8_t blockLen, const uint8_t srcGap, const uint8_t dstGap,
                             opkit::Where where = opkit::Where::here()) {
  static_assert(opkit::kIsCoupled && sizeof(T) > 0, "BroadCastVecToMM: this chip does not have it");
  static_assert(std::is_same_v<T, U>, "BroadCastVecToMM: dst and src are of one type");
  if (blockCount < 1 || blockCount > 255) opkit::illegal_operand("BroadCastVecToMM: blockCount is not 1 to 255", where);
  constexpr uint64_t kRowBytes = opkit::kCubeSide * sizeof(T);
  opkit::MatrixFill fill;
  fill.repeat = static_cast<uint32_t>(blockCount);
  fill.blocks = blockLen;
  fill.block_bytes = opkit::kCubeSide * kRowBytes;
  fill.src_stride = blockLen * kRowBytes + uint64_t{srcGap} * opkit::kBlockBytes;
  fill.dst_stride = (uint64_t{blockLen} + dstGap) * fill.block_bytes;
  opkit::Instr instr;
  instr.op = opkit::Op::BroadCastVecToMM;
  instr.pipe = opkit::Pipe::V;
  instr.dst = dst.operand();
  instr.src[0] = src.operand();
  instr.source_count = 1;
  instr.fill = &fill;
  instr.where = where;
  opkit::issue(instr);
}

}  // namespace AscendC
