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

void emit_all(const Sink& sink, const VectorUse& vector) {
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

void emit_copy(const Sink& sink, const Instr& instr) {
  const CopyShape& copy = instr.copy;
  if (instr.op == Op::InitOutput) {
    sink.callback(sink.context, {0, instr.dst.address, uint64_t{instr.count} * size_bytes(instr.dst.dtype), true});
    return;
  }
  for (uint32_t plane = 0; plane < copy.plane_count; ++plane) {
    const bool is_last = plane > 0 && plane + 1 == copy.plane_count;
    emit_plane(sink, instr, plane, is_last ? copy.last_plane_bytes : copy.burst_bytes);
  }
}

}  // namespace

void for_each_range(const Core& core, const Instr& instr, RangeCallback callback, void* context) {
  const Sink sink = {callback, context};
  const OpRow& row = row_of(instr.op);
  if (row.family == Family::DataCopy) return emit_copy(sink, instr);
  if (row.family == Family::Control) return;
  if (row.family == Family::Cube) return cube_ranges(instr, callback, context);
  if (row.family != Family::VecSpecial) return emit_all(sink, elementwise_use(core, instr));
  switch (instr.op) {
    case Op::Compare:
    case Op::CompareScalar:
    case Op::CompareRegister: return emit_all(sink, compare_use(core, instr));
    case Op::Select: return emit_all(sink, select_use(core, instr));
    case Op::Brcb: return emit_all(sink, brcb_use(core, instr));
    case Op::Gather: return emit_all(sink, gather_use(core, instr));
    case Op::VectorPadding: return emit_all(sink, padding_use(core, instr));
    case Op::Scatter: return emit_all(sink, scatter_use(core, instr));
    case Op::Gatherb: return emit_all(sink, gather_blocks_use(core, instr));
    case Op::GatherMask: return emit_all(sink, gather_mask_use(core, instr));
    case Op::Transpose: return emit_all(sink, transpose_use(core, instr));
    case Op::TransDataTo5HD:
      for (uint32_t item = 0; item < instr.list_count; ++item) emit_all(sink, trans_data_use(core, instr, item));
      return;
    case Op::Sort32:
    case Op::RpSort16:
    case Op::ProposalConcat:
    case Op::ProposalExtract: return emit_all(sink, sort_use(core, instr));
    case Op::MrgSort:
    case Op::MrgSort4:
      for (uint32_t item = 0; item <= instr.list_count; ++item) emit_all(sink, merge_use(core, instr, item));
      return;
    case Op::ReduceSum:
    case Op::ReduceMax:
    case Op::ReduceMin: return emit_all(sink, reduce_use(core, instr));
    case Op::GetCmpMask: callback(context, {0, instr.dst.address, 16, true}); return;
    case Op::SetCmpMask: callback(context, {1, instr.src[0].address, 16, false}); return;
    case Op::Copy: return emit_all(sink, copy_use(core, instr));
    case Op::Cast:
    case Op::AddReluCast:
    case Op::SubReluCast:
    case Op::MulCast:
    case Op::AddDeqRelu:
    case Op::CastDequant:
    case Op::Duplicate:
    case Op::CreateVecIndex: return emit_all(sink, elementwise_use(core, instr));
    default: return emit_all(sink, repeat_reduce_use(core, instr));
  }
}

}  // namespace opkit
