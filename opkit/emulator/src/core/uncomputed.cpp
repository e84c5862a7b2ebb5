#include "core/uncomputed.h"

#include <algorithm>

#include "isa/footprint.h"
#include "isa/table.h"

namespace opkit {
namespace {

constexpr const char* kHelp = "what steers a kernel has to be computed: profile it without --timing-only";

}  // namespace

Uncomputed::Uncomputed(const Launch& launch, uint32_t core_count)
    : launch_(launch), local_(core_count), global_(new std::atomic<bool>[launch.gm.size() + 1]()) {}

void Uncomputed::run(Core& core, Instr& instr) {
  const OpRow& row = row_of(instr.op);
  if (instr.op == Op::GatherMask) return gather_mask(core, instr);
  if (row.family != Family::Control) return note(core, instr);
  if (instr.op == Op::GetValue) get_value(core, instr);
  row.execute(core, instr);
  if (instr.op == Op::SetValue) set_value(core, instr);
}

size_t Uncomputed::tensor_of(uint64_t address) const {
  const auto after = std::upper_bound(launch_.gm.begin(), launch_.gm.end(), address,
                                      [](uint64_t at, const GmRange& range) { return at < range.begin; });
  if (after == launch_.gm.begin() || address >= std::prev(after)->end) return launch_.gm.size();
  return static_cast<size_t>(std::prev(after) - launch_.gm.begin());
}

void Uncomputed::note(const Core& core, const Instr& instr) {
  if (instr.dst.space == Space::GM) {
    global_[tensor_of(instr.dst.address)].store(true, std::memory_order_relaxed);
    return;
  }
  // Scalars read no memory of a cube core but by way of global memory.
  if (instr.dst.space != Space::UB || row_of(instr.op).family == Family::Cube) return;
  for_each_range(core, instr, [&](const ByteRange& range) {
    if (range.is_write) note_local(core, range.begin, range.bytes);
  });
}

void Uncomputed::note_local(const Core& core, uint64_t begin, uint64_t bytes) {
  std::vector<uint8_t>& missing = local_[core.index];
  missing.resize(core.space_bytes[static_cast<size_t>(Space::UB)]);
  const uint64_t end = std::min<uint64_t>(begin + bytes, missing.size());
  if (begin < end)
    std::fill(missing.begin() + static_cast<ptrdiff_t>(begin), missing.begin() + static_cast<ptrdiff_t>(end),
              uint8_t{1});
}

bool Uncomputed::is_local_missing(const Core& core, uint64_t begin, uint64_t bytes) const {
  const std::vector<uint8_t>& missing = local_[core.index];
  const uint64_t end = std::min<uint64_t>(begin + bytes, missing.size());
  for (uint64_t at = begin; at < end; ++at) {
    if (missing[at] != 0) return true;
  }
  return false;
}

void Uncomputed::get_value(const Core& core, const Instr& instr) const {
  const Operand& element = instr.src[0];
  const bool is_missing = element.space == Space::GM
                              ? global_[tensor_of(element.address)].load(std::memory_order_relaxed)
                              : is_local_missing(core, element.address, size_bytes(element.dtype));
  OPKIT_CHECK(!is_missing, Unimplemented, &instr, kHelp,
              "GetValue reads an element of %s that a run without arithmetic has not computed",
              element.space == Space::GM ? "global memory" : "UB");
}

void Uncomputed::set_value(const Core& core, const Instr& instr) {
  std::vector<uint8_t>& missing = local_[core.index];
  if (instr.dst.space != Space::UB || missing.empty()) return;
  const uint64_t end = std::min<uint64_t>(instr.dst.address + size_bytes(instr.dst.dtype), missing.size());
  for (uint64_t at = instr.dst.address; at < end; ++at) missing[at] = 0;
}

/// How many elements a built-in pattern picks does not depend on them, and the kernel is given that number.
void Uncomputed::gather_mask(Core& core, Instr& instr) {
  for_each_range(core, instr, [&](const ByteRange& range) {
    const bool is_pattern = !range.is_write && range.operand == 2;
    OPKIT_CHECK(!is_pattern || !is_local_missing(core, range.begin, range.bytes), Unimplemented, &instr, kHelp,
                "GatherMask picks by a pattern that a run without arithmetic has not computed");
  });
  row_of(instr.op).execute(core, instr);
  note(core, instr);
}

void Uncomputed::read_register(const char* what) const {
  raise_fault(Fault::Unimplemented, nullptr, kHelp, "%s reads what a run without arithmetic has not computed", what);
}

}  // namespace opkit
