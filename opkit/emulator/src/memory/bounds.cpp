#include "memory/bounds.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "core/launch_state.h"
#include "isa/table.h"
#include "memory/kernel_constants.h"

namespace opkit {

const char* space_name(Space space) {
  static constexpr const char* kNames[] = {
#define OPKIT_SPACE(name) #name,
#include "opkit/isa/units.inc"
  };
  return kNames[static_cast<size_t>(space)];
}

namespace {

[[noreturn]] void fault_outside(const Instr& instr, const Operand& operand, uint64_t address, uint64_t bytes,
                                bool is_write) {
  const char* verb = is_write ? "writes" : "reads";
  const char* name = row_of(instr.op).name;
  if (operand.space == Space::GM) {
    const Launch& launch = *current_core()->launch->launch;
    if (const GmRange* freed = range_at(launch.freed, address)) {
      raise_fault(Fault::UseAfterFree, &instr, "free device memory once the stream has been synchronised",
                  "%s %s %llu bytes of %s that the program has freed", name, verb,
                  static_cast<unsigned long long>(bytes), freed->name.c_str());
    }
    const std::string place = place_text(launch, address, bytes);
    char raw[32] = "";
    if (place.empty()) std::snprintf(raw, sizeof raw, " at 0x%llx", static_cast<unsigned long long>(address));
    raise_fault(Fault::OutOfBounds, &instr, "check the offset and the length of this tile; the last one may be shorter",
                "%s %s %llu bytes of global memory%s that lie in no tensor of this launch%s%s", name, verb,
                static_cast<unsigned long long>(bytes), raw, place.empty() ? "" : ": ", place.c_str());
  }
  const long long first = static_cast<long long>(address) - static_cast<long long>(operand.begin);
  const std::string buffer = buffer_text(operand.space, operand.begin);
  raise_fault(Fault::OutOfBounds, &instr, "check the length given to this instruction and to InitBuffer",
              "%s %s bytes %lld..%lld of a buffer that has %llu bytes in %s%s", name, verb, first,
              first + static_cast<long long>(bytes), static_cast<unsigned long long>(operand.end - operand.begin),
              space_name(operand.space), buffer.empty() ? "" : (": " + buffer).c_str());
}

[[noreturn]] void fault_behind_memory(const Instr& instr, Space space, uint64_t address, uint64_t bytes,
                                      uint64_t limit) {
  const std::string placed = buffers_text(space);
  raise_fault(Fault::OutOfBounds, &instr,
              placed.empty() ? "the tensor itself lies outside this memory"
                             : "make the tiles smaller or use fewer buffers: `opkit targets` lists the sizes",
              "%s touches bytes %llu..%llu of %s, which has %llu bytes on this chip%s%s", row_of(instr.op).name,
              static_cast<unsigned long long>(address), static_cast<unsigned long long>(address + bytes),
              space_name(space), static_cast<unsigned long long>(limit),
              placed.empty() ? "" : "; given out are:", placed.c_str());
}

/// Addresses that fell below zero are very large: adding to them would wrap around.
bool is_inside(const Operand& operand, uint64_t address, uint64_t bytes) {
  return address >= operand.begin && address <= operand.end && bytes <= operand.end - address;
}

constexpr uint64_t kNearBytes = 1u << 20;

/// The last range that begins at or before an address; null where none does.
const GmRange* range_before(const std::vector<GmRange>& ranges, uint64_t address) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), address,
                                      [](uint64_t value, const GmRange& range) { return value < range.begin; });
  return after == ranges.begin() ? nullptr : &*(after - 1);
}

bool is_in_gm(const std::vector<GmRange>& ranges, uint64_t address, uint64_t bytes, bool is_write) {
  const GmRange* range = range_before(ranges, address);
  return range != nullptr && address + bytes <= range->end + (is_write ? 0 : range->readable_bytes);
}

}  // namespace

const GmRange* range_at(const std::vector<GmRange>& ranges, uint64_t address) {
  const GmRange* range = range_before(ranges, address);
  return range != nullptr && address < range->end ? range : nullptr;
}

std::string place_text(const Launch& launch, uint64_t address, uint64_t bytes) {
  if (const GmRange* host = range_at(launch.host, address)) return host->name + ", which no kernel can reach";
  const std::vector<GmRange>& ranges = launch.gm;
  const GmRange* before = range_before(ranges, address);
  if (before != nullptr && address < before->end) {
    if (address + bytes <= before->end) return "";
    return "the last " + std::to_string(address + bytes - before->end) + " of them behind the end of " + before->name;
  }
  const GmRange* next = before == nullptr ? ranges.data() : before + 1;
  const bool has_next = next != ranges.data() + ranges.size() && next->begin - address <= kNearBytes;
  const bool is_behind = before != nullptr && address - before->end <= kNearBytes &&
                         (!has_next || address - before->end <= next->begin - address);
  if (is_behind) return std::to_string(address - before->end) + " bytes behind the end of " + before->name;
  return has_next ? std::to_string(next->begin - address) + " bytes in front of " + next->name : "";
}

void check_bounds(const Core& core, const Instr& instr, const Operand& operand, uint64_t address, uint64_t bytes,
                  bool is_write) {
  if (bytes == 0) return;
  if (operand.space == Space::GM) {
    const Launch& launch = *core.launch->launch;
    if (is_in_gm(launch.gm, address, bytes, is_write)) {
      if (is_write) note_written(core, address, bytes);
      return;
    }
    if (!is_write && is_kernel_constant(launch, address, bytes)) return;
    fault_outside(instr, operand, address, bytes, is_write);
  }
  const uint64_t limit = core.space_bytes[static_cast<uint32_t>(operand.space)];
  if (!is_inside(operand, address, bytes)) fault_outside(instr, operand, address, bytes, is_write);
  if (address + bytes > limit) fault_behind_memory(instr, operand.space, address, bytes, limit);
}

void note_written(const Core& core, uint64_t address, uint64_t bytes) {
  if (core.launch->raw_writes != nullptr) core.launch->raw_writes->note(core.index, address, bytes);
}

void note_scalar(const Core& core, const Operand& element) {
  if (element.space != Space::GM || core.launch->raw_writes == nullptr) return;
  core.launch->raw_writes->note_open(core.index, element.address, size_bytes(element.dtype));
}

bool is_in_bounds(const Core& core, const Operand& operand, uint64_t address, uint64_t bytes, bool is_write) {
  if (operand.space == Space::GM) return is_in_gm(core.launch->launch->gm, address, bytes, is_write);
  return is_inside(operand, address, bytes) &&
         address + bytes <= core.space_bytes[static_cast<uint32_t>(operand.space)];
}

void check_alignment(const Instr& instr, const Operand& operand, uint32_t alignment, const char* role) {
  if (operand.space == Space::GM) return;
  OPKIT_CHECK(operand.address % alignment == 0, Misaligned, &instr,
              "start tensors and tiles at multiples of this many bytes",
              "%s: %s address %llu in %s is not a multiple of %u bytes", row_of(instr.op).name, role,
              static_cast<unsigned long long>(operand.address), space_name(operand.space), alignment);
}

}  // namespace opkit
