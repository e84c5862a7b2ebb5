// InitConstValue and BroadCastVecToMM. Source: Ascend C API, matrix computation (ISASI), Fill, BroadCastVecToMM.
#include <cstring>

#include "isa/cube.h"
#include "isa/table.h"
#include "memory/bounds.h"

namespace opkit {
namespace {

constexpr uint32_t kMaxFills = 32767;

}  // namespace

void fill_ranges(const Core&, const Instr& instr, RangeCallback callback, void* context) {
  const MatrixFill& fill = *instr.fill;
  const uint64_t row_bytes = uint64_t{kCubeSide} * size_bytes(instr.dst.dtype);
  for (uint32_t repeat = 0; instr.source_count > 0 && repeat < fill.repeat; ++repeat) {
    callback(context, {1, instr.src[0].address + repeat * fill.src_stride, fill.blocks * row_bytes, false});
  }
  for (uint32_t repeat = 0; repeat < fill.repeat; ++repeat) {
    callback(context,
             {0, instr.dst.address + repeat * fill.dst_stride, uint64_t{fill.blocks} * fill.block_bytes, true});
  }
}

void execute_fill_matrix(Core& core, const Instr& instr) {
  const MatrixFill& fill = *instr.fill;
  if (fill.repeat == 0 || fill.blocks == 0) return;
  check_cube(core, instr, instr.dst.dtype);
  const Space space = instr.dst.space;
  const bool is_cube = space == Space::L0A || space == Space::L0B;
  OPKIT_CHECK(is_cube || space == Space::L1, IllegalOperand, &instr, "it fills L1, L0A and L0B",
              "InitConstValue: dst lies in %s", space_name(space));
  OPKIT_CHECK(fill.repeat <= kMaxFills && fill.blocks <= kMaxFills, IllegalOperand, &instr, "split the call",
              "InitConstValue: repeatTimes %u or blockNum %u is over %u", fill.repeat, fill.blocks, kMaxFills);
  check_alignment(instr, instr.dst, is_cube ? kFractalBytes : kBlockBytes, "dst");
  const uint64_t bytes = uint64_t{fill.blocks} * fill.block_bytes;
  const uint32_t size = size_bytes(instr.dst.dtype);
  for (uint32_t repeat = 0; repeat < fill.repeat; ++repeat) {
    const uint64_t address = instr.dst.address + repeat * fill.dst_stride;
    check_bounds(core, instr, instr.dst, address, bytes, true);
    uint8_t* to = core.at(space, address);
    for (uint64_t at = 0; at < bytes; at += size) std::memcpy(to + at, &fill.value_bits, size);
  }
}

void execute_broadcast(Core& core, const Instr& instr) {
  const MatrixFill& fill = *instr.fill;
  check_cube(core, instr, instr.dst.dtype);
  check_place(instr, instr.src[0], Space::UB, kBlockBytes, "src");
  check_place(instr, instr.dst, Space::L0C, fill.block_bytes, "dst");
  OPKIT_CHECK(fill.repeat >= 1 && fill.repeat <= 255 && fill.blocks >= 1, IllegalOperand, &instr, "split the call",
              "BroadCastVecToMM: blockCount %u or blockLen %u is not 1 to 255", fill.repeat, fill.blocks);
  const uint64_t row_bytes = uint64_t{kCubeSide} * size_bytes(instr.dst.dtype);
  for (uint32_t repeat = 0; repeat < fill.repeat; ++repeat) {
    const uint64_t from = instr.src[0].address + repeat * fill.src_stride;
    const uint64_t to = instr.dst.address + repeat * fill.dst_stride;
    check_bounds(core, instr, instr.src[0], from, fill.blocks * row_bytes, false);
    check_bounds(core, instr, instr.dst, to, uint64_t{fill.blocks} * fill.block_bytes, true);
    for (uint32_t row = 0; row < fill.blocks * kCubeSide; ++row) {
      std::memcpy(core.at(Space::L0C, to + row * row_bytes), core.at(Space::UB, from + row / kCubeSide * row_bytes),
                  row_bytes);
    }
  }
}

}  // namespace opkit
