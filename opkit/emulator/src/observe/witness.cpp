#include "observe/witness.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

namespace opkit {
namespace {

std::string hex(const uint8_t* bytes, uint32_t count) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (uint32_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

/// All cores, `first` and `second` in front of the others.
std::vector<uint32_t> starting_with(uint32_t first, uint32_t second, uint32_t count) {
  std::vector<uint32_t> order = {first, second};
  for (uint32_t i = 0; i < count; ++i) {
    if (i != first && i != second) order.push_back(i);
  }
  return order;
}

}  // namespace

void Witnesses::launch_begin(const LaunchInfo& info) {
  launch_ = info.launch;
  core_count_ = info.core_count;
  before_ = read();
}

Witnesses::Memory Witnesses::read() const {
  Memory memory;
  for (const GmRange& range : launch_->gm) {
    const auto* begin = reinterpret_cast<const uint8_t*>(range.begin);
    memory.emplace_back(begin, begin + (range.end - range.begin));
  }
  return memory;
}

void Witnesses::write(const Memory& memory) const {
  for (size_t i = 0; i < memory.size(); ++i) {
    std::memcpy(reinterpret_cast<void*>(launch_->gm[i].begin), memory[i].data(), memory[i].size());
  }
}

Witnesses::Result Witnesses::run(const ReplayOrder& order, const Rerun& rerun) const {
  write(before_);
  FaultReport fault = rerun(order);
  return {read(), std::move(fault)};
}

void Witnesses::show(const std::vector<Finding*>& races, bool has_auto_sync, const Rerun& rerun) {
  const Memory after = read();
  std::optional<Result> in_order;  // what every race inside a core is compared with
  for (Finding* race : races) {
    // A replay holds whole pipes back.
    if (race->core == race->other_core && race->site.pipe == race->other.pipe) continue;
    ReplayOrder lost;
    if (race->core != race->other_core) {
      ReplayOrder other_first;
      other_first.cores = starting_with(race->other_core, race->core, core_count_);
      lost.cores = starting_with(race->core, race->other_core, core_count_);
      compare(*race, run(other_first, rerun), run(lost, rerun));
      continue;
    }
    if (!in_order) in_order = run(ReplayOrder(), rerun);
    lost.core = race->core;
    lost.earlier = race->other_instruction;
    lost.later = race->instruction;
    lost.has_auto_sync = has_auto_sync;
    compare(*race, *in_order, run(lost, rerun));
  }
  write(after);
}

void Witnesses::compare(Finding& race, const Result& expected, const Result& actual) const {
  Witness& witness = race.witness;
  witness.is_tried = true;
  const bool is_new_fault = actual.fault.fault != Fault::None && expected.fault.fault == Fault::None;
  if (is_new_fault) witness.fault = actual.fault.message;
  const uint32_t size = std::max(1u, size_bytes(race.dtype));
  for (size_t i = 0; i < actual.memory.size(); ++i) {
    const uint64_t bytes = actual.memory[i].size() / size * size;
    for (uint64_t at = 0; at < bytes; at += size) {
      const uint8_t* lost = &actual.memory[i][at];
      const uint8_t* ordered = &expected.memory[i][at];
      if (std::memcmp(lost, ordered, size) == 0) continue;
      if (witness.differing++ != 0) continue;
      witness.place = launch_->gm[i].name;
      witness.element = at / size;
      witness.ordered = hex(ordered, size);
      witness.lost = hex(lost, size);
    }
  }
}

}  // namespace opkit
