// DataCopy, DataCopyPad, the conversions between ND and NZ, InitOutput. Source: Ascend C API, memory vector compute,
// data movement.
#include <algorithm>
#include <cstring>

#include "core/core.h"
#include "isa/atomic_write.h"
#include "isa/lanes/lanes.h"
#include "isa/table.h"
#include "memory/bounds.h"

namespace opkit {
namespace {

constexpr uint32_t kMaxBursts = 4095;
constexpr uint32_t kMaxNdRows = 16384;  // nValue of Nd2NzParams

/// Fills what surrounds one burst on the padded side: left and right padding elements, then up to the data block.
void pad_burst(const Core& core, const Instr& instr, uint8_t* row, const uint8_t* burst, uint64_t burst_bytes,
               uint64_t row_bytes) {
  const CopyShape& copy = instr.copy;
  const uint32_t element_bytes = size_bytes(instr.dst.dtype);
  const uint64_t left_bytes = uint64_t{copy.left_padding} * element_bytes;
  const uint64_t behind = left_bytes + burst_bytes;
  // Without padding elements the block is filled up with the burst's own first element, as documented; with them and
  // without a value the content is not defined: the pad register's value is as good as any and the same every run.
  const bool is_first_element = !copy.has_pad_value && copy.left_padding == 0 && copy.right_padding == 0;
  const uint64_t bits = copy.has_pad_value ? copy.pad_value_bits : core.pad_value_bits;
  const void* value = is_first_element ? static_cast<const void*>(burst) : static_cast<const void*>(&bits);
  for (uint64_t at = 0; at < left_bytes; at += element_bytes) std::memcpy(row + at, value, element_bytes);
  for (uint64_t at = behind; at + element_bytes <= row_bytes; at += element_bytes) {
    std::memcpy(row + at, value, element_bytes);
  }
}

void check_padding(const Instr& instr, bool is_to_local) {
  const CopyShape& copy = instr.copy;
  const uint32_t element_bytes = size_bytes(instr.dst.dtype);
  OPKIT_CHECK(copy.burst_bytes % element_bytes == 0, IllegalOperand, &instr, nullptr,
              "%s: blockLen %u is not a multiple of the element's %u bytes", row_of(instr.op).name, copy.burst_bytes,
              element_bytes);
  if (!is_to_local) return;
  OPKIT_CHECK(copy.left_padding * element_bytes <= kBlockBytes && copy.right_padding * element_bytes <= kBlockBytes,
              IllegalOperand, &instr, "pad by 32 bytes at the most on each side",
              "DataCopyPad: leftPadding %u and rightPadding %u of %u-byte elements exceed 32 bytes", copy.left_padding,
              copy.right_padding, element_bytes);
  OPKIT_CHECK(element_bytes != 8 || !copy.has_pad_value || copy.pad_value_bits == 0, IllegalOperand, &instr,
              "pad with 0, and fill with Duplicate what shall be another number",
              "DataCopyPad: paddingValue of 8-byte elements can only be 0");
}

/// Bursts after the first start on data blocks of a local memory, too.
void check_strides(const Instr& instr, const Operand& operand, uint64_t stride, uint64_t plane_stride,
                   const char* role) {
  if (operand.space == Space::GM) return;
  const CopyShape& copy = instr.copy;
  OPKIT_CHECK((copy.burst_count == 1 || stride % kBlockBytes == 0) &&
                  (copy.plane_count == 1 || plane_stride % kBlockBytes == 0),
              Misaligned, &instr, "choose lengths and gaps that are multiples of 32 bytes together",
              "%s: bursts of %s are %llu bytes apart in a local memory, which is not a multiple of %u",
              row_of(instr.op).name, role,
              static_cast<unsigned long long>(copy.burst_count == 1 ? plane_stride : stride), kBlockBytes);
}

uint32_t destination_alignment(Space space) {
  return space == Space::BT ? 64 : (space == Space::FB ? 128 : kBlockBytes);
}

/// Moves checked bytes; into global memory by the core's atomic operation when one is set.
void move(const Core& core, const Instr& instr, uint8_t* to, const uint8_t* from, uint64_t bytes) {
  if (instr.dst.space == Space::GM && core.atomic_op != AtomicOp::None) {
    atomic_write(core, instr, to, from, bytes);
    return;
  }
  std::memmove(to, from, bytes);
}

void execute_init_output(const Core& core, const Instr& instr) {
  const Operand& destination = instr.dst;
  const uint32_t element_bytes = size_bytes(destination.dtype);
  const uint64_t bytes = uint64_t{instr.count} * element_bytes;
  check_bounds(core, instr, destination, destination.address, bytes, true);
  uint8_t* to = core.at(destination);
  for (uint64_t at = 0; at < bytes; at += element_bytes) std::memcpy(to + at, &instr.scalar_bits[0], element_bytes);
}

/// Half to float on the way to the bias table.
void copy_widened(const Core& core, const Instr& instr) {
  const CopyShape& copy = instr.copy;
  OPKIT_CHECK(instr.dst.space == Space::BT && instr.src[0].space == Space::L1, IllegalOperand, &instr,
              "convert with Cast, in UB",
              "DataCopy: it converts half to float only on the way from L1 to the bias table");
  const lanes::Lane widen = lanes::table().cast[static_cast<size_t>(DType::F32)][static_cast<size_t>(DType::F16)][0];
  for (uint32_t burst = 0; burst < copy.burst_count; ++burst) {
    const uint64_t from = instr.src[0].address + burst * copy.src_stride;
    const uint64_t to = instr.dst.address + burst * copy.dst_stride;
    check_bounds(core, instr, instr.src[0], from, copy.burst_bytes, false);
    check_bounds(core, instr, instr.dst, to, uint64_t{copy.burst_bytes} * 2, true);
    const void* source[1] = {core.at(instr.src[0].space, from)};
    widen(core.at(instr.dst.space, to), source, nullptr, copy.burst_bytes / 2);
  }
}

/// The bursts of one plane: all there is, except in the conversions between ND and NZ.
void copy_plane(const Core& core, const Instr& instr, uint32_t plane, uint32_t burst_bytes) {
  const CopyShape& copy = instr.copy;
  const Operand& source = instr.src[0];
  const Operand& destination = instr.dst;
  const bool is_to_local = destination.space != Space::GM;
  const uint32_t element_bytes = size_bytes(destination.dtype);
  const uint64_t padding_bytes = uint64_t{copy.left_padding + uint32_t{copy.right_padding}} * element_bytes;
  const uint64_t row_bytes = copy.is_padded && is_to_local
                                 ? (burst_bytes + padding_bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes
                                 : burst_bytes;
  const uint64_t source_address = source.address + plane * copy.src_plane_stride;
  const uint64_t destination_address = destination.address + plane * copy.dst_plane_stride;
  const bool is_contiguous =
      copy.burst_count == 1 || (copy.src_stride == burst_bytes && copy.dst_stride == burst_bytes);
  if (is_contiguous && row_bytes == burst_bytes) {
    const uint64_t total = uint64_t{copy.burst_count} * burst_bytes;
    check_bounds(core, instr, source, source_address, total, false);
    check_bounds(core, instr, destination, destination_address, total, true);
    move(core, instr, core.at(destination.space, destination_address), core.at(source.space, source_address), total);
    return;
  }
  for (uint32_t burst = 0; burst < copy.burst_count; ++burst) {
    const uint64_t from = source_address + burst * copy.src_stride;
    const uint64_t to = destination_address + burst * copy.dst_stride;
    check_bounds(core, instr, source, from, burst_bytes, false);
    check_bounds(core, instr, destination, to, row_bytes, true);
    uint8_t* row = core.at(destination.space, to);
    const uint8_t* bytes = core.at(source.space, from);
    if (row_bytes != burst_bytes) pad_burst(core, instr, row, bytes, burst_bytes, row_bytes);
    const uint64_t left_bytes = is_to_local ? uint64_t{copy.left_padding} * element_bytes : 0;
    move(core, instr, row + left_bytes, bytes, burst_bytes);
  }
}

/// Rows to columns of data blocks. False, and nothing done, where the extent of all rows leaves a tensor: then the
/// bursts say which one does.
bool copy_to_columns(const Core& core, const Instr& instr) {
  const CopyShape& copy = instr.copy;
  const Operand& source = instr.src[0];
  const Operand& destination = instr.dst;
  const uint32_t last_plane = copy.plane_count - 1;
  const uint32_t last_bytes = last_plane == 0 ? copy.burst_bytes : copy.last_plane_bytes;
  const uint64_t rows = copy.burst_count - 1;
  const uint64_t source_extent = rows * copy.src_stride + last_plane * copy.src_plane_stride + last_bytes;
  const uint64_t destination_extent = rows * copy.dst_stride + last_plane * copy.dst_plane_stride + kBlockBytes;
  if (!is_in_bounds(core, source, source.address, source_extent, false) ||
      !is_in_bounds(core, destination, destination.address, destination_extent, true)) {
    return false;
  }
  const uint8_t* from = core.at(source);
  uint8_t* to = core.at(destination);
  const uint32_t whole = last_bytes == kBlockBytes ? copy.plane_count : last_plane;
  lanes::table().rows_to_columns(from, copy.src_stride, copy.burst_count, whole, to, copy.dst_stride,
                                 copy.dst_plane_stride);
  if (whole == copy.plane_count) return true;
  from += last_plane * copy.src_plane_stride;
  to += last_plane * copy.dst_plane_stride;
  for (uint32_t row = 0; row < copy.burst_count; ++row, from += copy.src_stride, to += copy.dst_stride) {
    std::memset(to, 0, kBlockBytes);
    std::memcpy(to, from, last_bytes);
  }
  return true;
}

}  // namespace

void execute_data_copy(Core& core, const Instr& instr) {
  if (instr.op == Op::InitOutput) return execute_init_output(core, instr);
  const CopyShape& copy = instr.copy;
  if (copy.burst_count == 0 || copy.burst_bytes == 0) return;
  const uint32_t limit = instr.op == Op::DataCopyNd2Nz || instr.op == Op::DataCopyNz2Nd ? kMaxNdRows : kMaxBursts;
  OPKIT_CHECK(copy.burst_count <= limit, IllegalOperand, &instr, "split the copy", "%s: %s %u is over %u",
              row_of(instr.op).name, limit == kMaxNdRows ? "nValue" : "blockCount", copy.burst_count, limit);
  const Operand& source = instr.src[0];
  const Operand& destination = instr.dst;
  check_alignment(instr, destination, destination_alignment(destination.space), "dst");
  check_alignment(instr, source, kBlockBytes, "src");
  check_strides(instr, destination, copy.dst_stride, copy.dst_plane_stride, "dst");
  check_strides(instr, source, copy.src_stride, copy.src_plane_stride, "src");
  if (copy_widens(instr)) return copy_widened(core, instr);
  if (copy.is_padded) check_padding(instr, destination.space != Space::GM);
  if (instr.op == Op::DataCopyNd2Nz && copy_to_columns(core, instr)) return;
  for (uint32_t plane = 0; plane < copy.plane_count; ++plane) {
    const bool is_last = plane + 1 == copy.plane_count;
    copy_plane(core, instr, plane, is_last && plane > 0 ? copy.last_plane_bytes : copy.burst_bytes);
  }
}

}  // namespace opkit
