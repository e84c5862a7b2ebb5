/// The byte ranges of an instruction with neighbours joined: strided forms come block by block.
#pragma once

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

}  // namespace opkit
