/// Which bytes of a launch's outputs changed though no instruction wrote them: a kernel's raw pointers did.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/launch.h"

namespace opkit {

/// Byte ranges in any order; what lies side by side is one.
class ByteIntervals {
 public:
  using Interval = std::pair<uint64_t, uint64_t>;  ///< begin, end

  void add(uint64_t begin, uint64_t end) {
    if (!intervals_.empty() && begin <= intervals_.back().second && end >= intervals_.back().first) {
      Interval& last = intervals_.back();
      last.first = begin < last.first ? begin : last.first;
      last.second = end > last.second ? end : last.second;
      return;
    }
    if (intervals_.size() >= limit_) merge();
    intervals_.emplace_back(begin, end);
  }

  /// Sorted, without overlap.
  const std::vector<Interval>& merged() {
    merge();
    return intervals_;
  }

  void take(ByteIntervals& other) {
    intervals_.insert(intervals_.end(), other.intervals_.begin(), other.intervals_.end());
    other.intervals_.clear();
  }

 private:
  void merge();

  std::vector<Interval> intervals_;
  size_t limit_ = 4096;  ///< from so many on they are merged before another is added
};

class RawWrites {
 public:
  /// Keeps what the outputs hold before the launch.
  RawWrites(const Launch& launch, uint32_t core_count);

  /// What an instruction of a core writes; each core's own thread calls it.
  void note(uint32_t core, uint64_t address, uint64_t bytes) { by_core_[core].add(address, address + bytes); }

  struct Found {
    const GmRange* output;
    uint64_t first;  ///< byte of the output
    uint64_t bytes;  ///< how many of it have changed
  };
  /// The first output with bytes that changed and that no instruction wrote. Once, when every core has ended.
  std::optional<Found> find();

 private:
  struct Output {
    const GmRange* range;
    std::vector<uint8_t> before;
  };
  std::vector<Output> outputs_;
  std::vector<ByteIntervals> by_core_;
};

}  // namespace opkit
