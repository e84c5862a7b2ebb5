#include "isa/vector_run.h"

#include <cstring>

#include "isa/saturation.h"
#include "isa/table.h"

namespace opkit {
namespace {

bool overlaps(const uint8_t* a, uint64_t a_bytes, const uint8_t* b, uint64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

uint8_t* repeat_address(const Core& core, const Operand& operand, uint32_t repeat) {
  return core.at(operand) + uint64_t{repeat} * operand.repeat_stride * kBlockBytes;
}

/// All operands are one run each, of one element size. False when that is not so.
bool run_contiguous(const Core& core, const Instr& instr, const LaneShape& shape, const LaneJob& job) {
  if (job.select_bits_restart && shape.repeat > 1) return false;
  if (!is_contiguous(shape, instr.dst)) return false;
  const uint64_t total = shape.total();
  uint8_t* dst = core.at(instr.dst);
  const uint32_t dst_bytes = size_bytes(instr.dst.dtype);
  const void* sources[3] = {nullptr, nullptr, job.select_bits};
  for (uint32_t i = 0; i < job.source_count; ++i) {
    const Operand& source = instr.src[i];
    if (!is_contiguous(shape, source)) return false;
    const uint8_t* from = core.at(source);
    const uint32_t bytes = size_bytes(source.dtype);
    if ((from != dst || bytes != dst_bytes) && overlaps(dst, total * dst_bytes, from, total * bytes)) return false;
    sources[i] = from;
  }
  job.lane(dst, sources, job.scalars, total);
  if (job.saturates) saturate_floats(instr.dst.dtype, dst, total);
  return true;
}

/// One data block that goes with every block of a repeat: strides of 0.
bool is_block(const LaneShape& shape, const Operand& operand) { return !shape.is_count && operand.block_stride == 0; }

/// The destination and the first source are one run each, and the second source is one data block for all of them.
/// False when that is not so.
bool run_with_block(const Core& core, const Instr& instr, const LaneShape& shape, const LaneJob& job) {
  const Operand& block = instr.src[1];
  if (job.block_lane == nullptr || !is_block(shape, block) || (shape.repeat > 1 && block.repeat_stride != 0))
    return false;
  if (!is_contiguous(shape, instr.dst) || !is_contiguous(shape, instr.src[0])) return false;
  const uint64_t total = shape.total();
  const uint64_t bytes = total * size_bytes(instr.dst.dtype);
  uint8_t* dst = core.at(instr.dst);
  const uint8_t* from = core.at(instr.src[0]);
  const uint8_t* from_block = core.at(block);
  if (from != dst && overlaps(dst, bytes, from, bytes)) return false;
  if (overlaps(dst, bytes, from_block, kBlockBytes)) return false;
  const void* sources[2] = {from, from_block};
  job.block_lane(dst, sources, job.scalars, total);
  if (job.saturates) saturate_floats(instr.dst.dtype, dst, total);
  return true;
}

}  // namespace

Operand placed(const LaneShape& shape, Operand operand) {
  if (!shape.is_count) return operand;
  operand.block_stride = 1;
  operand.repeat_stride = static_cast<uint32_t>(span_bytes(operand.dtype, shape.lanes) / kBlockBytes);
  return operand;
}

void gather_repeat(const Core& core, const Operand& operand, uint32_t repeat, uint32_t lanes, uint8_t* buffer) {
  const uint8_t* from = repeat_address(core, operand, repeat);
  const uint32_t bytes = lanes * size_bytes(operand.dtype);
  if (operand.block_stride == 1) {
    std::memcpy(buffer, from, bytes);
    return;
  }
  for (uint32_t at = 0; at < bytes; at += kBlockBytes) {
    const uint32_t length = bytes - at < kBlockBytes ? bytes - at : kBlockBytes;
    std::memcpy(buffer + at, from + uint64_t{at} * operand.block_stride, length);
  }
}

void gather_masked(const Core& core, const Operand& source, const LaneShape& shape, uint32_t repeat, uint8_t* buffer) {
  const uint32_t lanes = repeat + 1 == shape.repeat ? shape.tail : shape.active;
  const uint32_t element_bytes = size_bytes(source.dtype);
  std::memset(buffer + lanes * element_bytes, 0, kRepeatBytes - lanes * element_bytes);
  gather_repeat(core, source, repeat, lanes, buffer);
  if (!shape.is_bits) return;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    if (!shape.is_active(lane)) std::memset(buffer + lane * element_bytes, 0, element_bytes);
  }
}

void scatter_repeat(const Core& core, const Operand& operand, uint32_t repeat, const LaneShape& shape, uint32_t lanes,
                    const uint8_t* buffer) {
  uint8_t* to = repeat_address(core, operand, repeat);
  const uint32_t element_bytes = size_bytes(operand.dtype);
  if (!shape.is_bits) {
    const uint32_t bytes = lanes * element_bytes;
    for (uint32_t at = 0; at < bytes; at += kBlockBytes) {
      const uint32_t length = bytes - at < kBlockBytes ? bytes - at : kBlockBytes;
      std::memcpy(to + uint64_t{at} * operand.block_stride, buffer + at, length);
    }
    return;
  }
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    if (!shape.is_active(lane)) continue;
    const uint32_t at = lane * element_bytes;
    const uint64_t block = uint64_t{at / kBlockBytes} * operand.block_stride * kBlockBytes;
    std::memcpy(to + block + at % kBlockBytes, buffer + at, element_bytes);
  }
}

void run_lanes(const Core& core, const Instr& instr, const LaneShape& shape, const LaneJob& job) {
  if (run_contiguous(core, instr, shape, job) || run_with_block(core, instr, shape, job)) return;

  const Operand dst = placed(shape, instr.dst);
  const Operand src[3] = {placed(shape, instr.src[0]), placed(shape, instr.src[1]), placed(shape, instr.src[2])};
  alignas(64) uint8_t gathered[3][kRepeatBytes];
  alignas(64) uint8_t result[kRepeatBytes];
  const bool has_block = job.block_lane != nullptr && is_block(shape, instr.src[1]);
  for (uint32_t repeat = 0; repeat < shape.repeat; ++repeat) {
    const uint32_t lanes = repeat + 1 == shape.repeat ? shape.tail : shape.active;
    const bool is_direct = dst.block_stride == 1 && !shape.is_bits;
    uint8_t* to = is_direct ? repeat_address(core, dst, repeat) : result;
    const uint64_t to_bytes = uint64_t{lanes} * size_bytes(dst.dtype);
    const void* sources[3] = {nullptr, nullptr, nullptr};
    for (uint32_t i = 0; i < job.source_count; ++i) {
      const uint8_t* from = repeat_address(core, src[i], repeat);
      const uint32_t bytes = size_bytes(src[i].dtype);
      if (has_block && i == 1) {
        sources[i] = from;
        continue;
      }
      const bool is_in_place = src[i].block_stride == 1 && ((from == to && bytes == size_bytes(dst.dtype)) ||
                                                            !overlaps(to, to_bytes, from, uint64_t{lanes} * bytes));
      if (!is_in_place) gather_repeat(core, src[i], repeat, lanes, gathered[i]);
      sources[i] = is_in_place ? from : gathered[i];
    }
    if (job.select_bits != nullptr) {
      sources[2] = job.select_bits + (job.select_bits_restart ? 0 : uint64_t{repeat} * shape.lanes / 8);
    }
    if (job.ramp != nullptr) *job.ramp = uint64_t{repeat} * shape.lanes;
    if (job.reads_dst && !is_direct) gather_repeat(core, dst, repeat, lanes, result);
    (has_block ? job.block_lane : job.lane)(to, sources, job.scalars, lanes);
    if (job.saturates) saturate_floats(dst.dtype, to, lanes);
    if (!is_direct) scatter_repeat(core, dst, repeat, shape, lanes, result);
  }
}

}  // namespace opkit
