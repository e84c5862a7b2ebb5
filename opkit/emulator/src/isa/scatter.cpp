// Scatter, an instruction of the inference series. Source: Ascend C API, gather and scatter.
#include <algorithm>
#include <cstring>
#include <vector>

#include "isa/execute.h"
#include "isa/vector_run.h"
#include "memory/bounds.h"

namespace opkit {

VectorUse scatter_use(const Core& core, const Instr& instr) {
  VectorUse use;
  use.shape = lane_shape(core, instr, size_bytes(instr.dst.dtype));
  if (use.shape.repeat == 0) return use;
  use.uses.add(instr.src[0], 1, false);
  use.uses.add_run(instr.src[1], 2, false, use.shape.total() * sizeof(uint32_t));
  return use;
}

void execute_scatter(Core& core, const Instr& instr) {
  const VectorUse use = scatter_use(core, instr);
  const LaneShape& shape = use.shape;
  if (shape.repeat == 0) return;
  check_operands(core, instr, shape, use.uses);
  const uint32_t element_bytes = size_bytes(instr.dst.dtype);
  Operand source = instr.src[0];
  if (shape.is_count) source.repeat_stride = kBlocksPerRepeat;
  const uint8_t* offsets = core.at(instr.src[1]);
  std::vector<uint64_t> written;
  written.reserve(shape.total());
  alignas(64) uint8_t values[kRepeatBytes];
  for (uint32_t repeat = 0; repeat < shape.repeat; ++repeat) {
    const uint32_t lanes = repeat + 1 == shape.repeat ? shape.tail : shape.active;
    gather_repeat(core, source, repeat, lanes, values);
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      if (shape.is_bits && !shape.is_active(lane)) continue;
      uint32_t offset = 0;
      std::memcpy(&offset, offsets + (uint64_t{repeat} * shape.lanes + lane) * sizeof(offset), sizeof(offset));
      const uint64_t place = instr.scalar_bits[0] + offset;
      OPKIT_CHECK(place % element_bytes == 0, Misaligned, &instr, "offsets are in bytes",
                  "Scatter: element %u goes to byte %llu, not a multiple of %u", repeat * shape.lanes + lane,
                  static_cast<unsigned long long>(place), element_bytes);
      const uint64_t address = instr.dst.address + place;
      check_bounds(core, instr, instr.dst, address, element_bytes, true);
      std::memcpy(core.at(instr.dst.space, address), values + lane * element_bytes, element_bytes);
      written.push_back(place);
    }
  }
  std::sort(written.begin(), written.end());
  const auto twice = std::adjacent_find(written.begin(), written.end());
  if (twice == written.end()) return;
  raise_fault(Fault::Unspecified, &instr, "give each element a place of its own",
              "Scatter: which of the elements that go to byte %llu stays is not documented",
              static_cast<unsigned long long>(*twice));
}

}  // namespace opkit
