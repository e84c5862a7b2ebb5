/// The byte ranges of an instruction with neighbours joined: strided forms come block by block.
#pragma once

#include <algorithm>
#include <tuple>
#include <vector>

#include "isa/footprint.h"

namespace opkit {

/// Puts them into `ranges`, in the footprint's order; a block that is read again and again comes once.
inline void merged_ranges(const Core& core, const Instr& instr, std::vector<ByteRange>& ranges) {
  ranges.clear();
  for_each_range(core, instr, [&ranges](const ByteRange& range) {
    if (!ranges.empty()) {
      ByteRange& last = ranges.back();
      const bool is_same = last.operand == range.operand && last.is_write == range.is_write;
      if (is_same && range.begin >= last.begin && range.begin <= last.begin + last.bytes) {
        const uint64_t end = range.begin + range.bytes;
        if (end > last.begin + last.bytes) last.bytes = end - last.begin;
        return;
      }
    }
    ranges.push_back(range);
  });
}

/// The same with all neighbours joined: by operand, reads before writes, in rising order. What comes in columns, such
/// as a copy to fractals, is then as few ranges as it has rows.
inline void joined_ranges(const Core& core, const Instr& instr, std::vector<ByteRange>& ranges) {
  merged_ranges(core, instr, ranges);
  if (ranges.size() <= 4) return;
  std::sort(ranges.begin(), ranges.end(), [](const ByteRange& a, const ByteRange& b) {
    return std::tie(a.operand, a.is_write, a.begin) < std::tie(b.operand, b.is_write, b.begin);
  });
  size_t kept = 0;
  for (const ByteRange& range : ranges) {
    ByteRange* last = kept == 0 ? nullptr : &ranges[kept - 1];
    const bool is_joined = last != nullptr && last->operand == range.operand && last->is_write == range.is_write &&
                           range.begin <= last->begin + last->bytes;
    if (!is_joined) {
      ranges[kept++] = range;
      continue;
    }
    last->bytes = std::max(last->bytes, range.begin + range.bytes - last->begin);
  }
  ranges.resize(kept);
}

}  // namespace opkit
