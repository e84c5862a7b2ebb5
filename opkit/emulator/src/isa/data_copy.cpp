// DataCopy and DataCopyPad. Source: Ascend C API, memory vector compute, data movement.
#include <cstring>

#include "core/core.h"
#include "isa/table.h"
#include "memory/bounds.h"

namespace opkit {
namespace {

constexpr uint32_t kMaxBursts = 4095;

/// Fills what surrounds one burst on the padded side: left and right padding elements, then up to the data block.
void pad_burst(const Core& core, const Instr& instr, uint8_t* row, const uint8_t* burst, uint64_t row_bytes) {
  const CopyShape& copy = instr.copy;
  const uint32_t element_bytes = size_bytes(instr.dst.dtype);
  const uint64_t left_bytes = uint64_t{copy.left_padding} * element_bytes;
  const uint64_t behind = left_bytes + copy.burst_bytes;
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
              "DataCopyPad: blockLen %u is not a multiple of the element's %u bytes", copy.burst_bytes, element_bytes);
  if (!is_to_local) return;
  OPKIT_CHECK(copy.left_padding * element_bytes <= kBlockBytes && copy.right_padding * element_bytes <= kBlockBytes,
              IllegalOperand, &instr, "pad by 32 bytes at the most on each side",
              "DataCopyPad: leftPadding %u and rightPadding %u of %u-byte elements exceed 32 bytes", copy.left_padding,
              copy.right_padding, element_bytes);
}

}  // namespace

void execute_data_copy(Core& core, const Instr& instr) {
  const CopyShape& copy = instr.copy;
  if (copy.burst_count == 0 || copy.burst_bytes == 0) return;
  OPKIT_CHECK(copy.burst_count <= kMaxBursts, IllegalOperand, &instr, "split the copy", "%s: blockCount %u is over %u",
              row_of(instr.op).name, copy.burst_count, kMaxBursts);
  const Operand& source = instr.src[0];
  const Operand& destination = instr.dst;
  check_alignment(instr, destination, kBlockBytes, "dst");
  check_alignment(instr, source, kBlockBytes, "src");

  const bool is_to_local = destination.space != Space::GM;
  if (copy.is_padded) check_padding(instr, is_to_local);
  const uint32_t element_bytes = size_bytes(destination.dtype);
  const uint64_t padding_bytes = uint64_t{copy.left_padding + uint32_t{copy.right_padding}} * element_bytes;
  const uint64_t row_bytes = copy.is_padded && is_to_local
                                 ? (copy.burst_bytes + padding_bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes
                                 : copy.burst_bytes;
  const bool is_contiguous =
      copy.burst_count == 1 ||
      (row_bytes == copy.burst_bytes && copy.src_stride == copy.burst_bytes && copy.dst_stride == copy.burst_bytes);
  if (is_contiguous && row_bytes == copy.burst_bytes) {
    const uint64_t total = uint64_t{copy.burst_count} * copy.burst_bytes;
    check_bounds(core, instr, source, source.address, total, false);
    check_bounds(core, instr, destination, destination.address, total, true);
    std::memmove(core.at(destination), core.at(source), total);
    return;
  }
  for (uint32_t burst = 0; burst < copy.burst_count; ++burst) {
    const uint64_t from = source.address + burst * copy.src_stride;
    const uint64_t to = destination.address + burst * copy.dst_stride;
    check_bounds(core, instr, source, from, copy.burst_bytes, false);
    check_bounds(core, instr, destination, to, row_bytes, true);
    uint8_t* row = core.at(destination.space, to);
    const uint8_t* bytes = core.at(source.space, from);
    if (row_bytes != copy.burst_bytes) pad_burst(core, instr, row, bytes, row_bytes);
    const uint64_t left_bytes = is_to_local ? uint64_t{copy.left_padding} * element_bytes : 0;
    std::memmove(row + left_bytes, bytes, copy.burst_bytes);
  }
}

}  // namespace opkit
