#include "isa/footprint.h"

#include "isa/execute.h"
#include "isa/table.h"

namespace opkit {
namespace {

struct Sink {
  RangeCallback callback;
  void* context;

  void emit(const OperandUse& use, uint64_t begin, uint64_t bytes) const {
    if (bytes == 0) return;
    if (use.is_read) callback(context, {use.index, begin, bytes, false});
    if (use.is_write) callback(context, {use.index, begin, bytes, true});
  }
};

void emit_lanes(const Sink& sink, const LaneShape& shape, const OperandUse& use) {
  const Operand& operand = *use.operand;
  const DType type = operand.dtype;
  if (is_contiguous(shape, operand)) {
    sink.emit(use, operand.address, span_bytes(type, shape.total()));
    return;
  }
  const uint32_t per_block = static_cast<uint32_t>(2 * kBlockBytes / span_bytes(type, 2));
  for (uint32_t repeat = 0; repeat < shape.repeat; ++repeat) {
    const uint64_t base = operand.address + uint64_t{repeat} * operand.repeat_stride * kBlockBytes;
    const uint32_t lanes = repeat + 1 == shape.repeat ? shape.tail : shape.active;
    for (uint32_t first = 0; first < lanes; first += per_block) {
      const uint32_t last = first + per_block < lanes ? first + per_block : lanes;
      const uint64_t block = base + uint64_t{first / per_block} * operand.block_stride * kBlockBytes;
      if (!shape.is_bits) {
        sink.emit(use, block, span_bytes(type, last - first));
        continue;
      }
      for (uint32_t lane = first; lane < last; ++lane) {
        uint32_t end = lane;
        while (end < last && shape.is_active(end)) ++end;
        sink.emit(use, block + span_bytes(type, lane - first), span_bytes(type, end - lane));
        if (end > lane) lane = end;
      }
    }
  }
}

void emit_plane(const Sink& sink, const Instr& instr, uint32_t plane, uint64_t burst_bytes) {
  const CopyShape& copy = instr.copy;
  const uint32_t element_bytes = size_bytes(instr.dst.dtype);
  uint64_t row_bytes = burst_bytes;
  if (copy.is_padded && instr.dst.space != Space::GM) {
    row_bytes += uint64_t{copy.left_padding + uint32_t{copy.right_padding}} * element_bytes;
    row_bytes = (row_bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  }
  if (copy_widens(instr)) row_bytes *= 2;
  const uint64_t source = instr.src[0].address + plane * copy.src_plane_stride;
  const uint64_t destination = instr.dst.address + plane * copy.dst_plane_stride;
  const bool is_one = row_bytes == burst_bytes && copy.src_stride == burst_bytes && copy.dst_stride == burst_bytes;
  const uint32_t bursts = is_one ? 1 : copy.burst_count;
  const uint64_t factor = is_one ? copy.burst_count : 1;
  for (uint32_t burst = 0; burst < bursts; ++burst) {
    sink.callback(sink.context, {1, source + burst * copy.src_stride, burst_bytes * factor, false});
    sink.callback(sink.context, {0, destination + burst * copy.dst_stride, row_bytes * factor, true});
  }
}

}  // namespace

void emit_ranges(const VectorUse& vector, RangeCallback callback, void* context) {
  const Sink sink = {callback, context};
  if (vector.shape.repeat == 0) return;
  for (uint32_t i = 0; i < vector.uses.count; ++i) {
    const OperandUse& use = vector.uses.items[i];
    switch (use.layout) {
      case Layout::Lanes: emit_lanes(sink, vector.shape, use); break;
      case Layout::Run: sink.emit(use, use.operand->address, use.bytes); break;
      case Layout::Repeats:
        for (uint32_t repeat = 0; repeat < vector.shape.repeat; ++repeat) {
          sink.emit(use, use.operand->address + repeat * use.stride_bytes, use.bytes);
        }
        break;
    }
  }
}

void copied_ranges(const Core&, const Instr& instr, RangeCallback callback, void* context) {
  const CopyShape& copy = instr.copy;
  for (uint32_t plane = 0; plane < copy.plane_count; ++plane) {
    const bool is_last = plane > 0 && plane + 1 == copy.plane_count;
    emit_plane({callback, context}, instr, plane, is_last ? copy.last_plane_bytes : copy.burst_bytes);
  }
}

void filled_ranges(const Core&, const Instr& instr, RangeCallback callback, void* context) {
  callback(context, {0, instr.dst.address, uint64_t{instr.count} * size_bytes(instr.dst.dtype), true});
}

void no_ranges(const Core&, const Instr&, RangeCallback, void*) {}

void trans_data_ranges(const Core& core, const Instr& instr, RangeCallback callback, void* context) {
  for (uint32_t item = 0; item < instr.list_count; ++item) {
    emit_ranges(trans_data_use(core, instr, item), callback, context);
  }
}

void merge_ranges(const Core& core, const Instr& instr, RangeCallback callback, void* context) {
  for (uint32_t item = 0; item <= instr.list_count; ++item) {
    emit_ranges(merge_use(core, instr, item), callback, context);
  }
}

void compare_mask_ranges(const Core&, const Instr& instr, RangeCallback callback, void* context) {
  constexpr uint64_t kRegisterBytes = 16;
  const bool is_write = instr.op == Op::GetCmpMask;
  const Operand& memory = is_write ? instr.dst : instr.src[0];
  callback(context, {is_write ? 0u : 1u, memory.address, kRegisterBytes, is_write});
}

void for_each_range(const Core& core, const Instr& instr, RangeCallback callback, void* context) {
  row_of(instr.op).ranges(core, instr, callback, context);
}

}  // namespace opkit
