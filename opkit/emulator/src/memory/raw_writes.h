/// Which bytes of a launch's outputs are not what instructions have written there: a kernel's raw pointers changed
/// them.
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

  // Each core's own thread calls these.

  /// What an instruction of a core is about to write.
  void note(uint32_t core, uint64_t address, uint64_t bytes) {
    by_core_[core].written.add(address, address + bytes);
    by_core_[core].pending.emplace_back(address, address + bytes);
  }
  /// What a scalar access of a core may write by itself, behind the instruction that says so.
  void note_open(uint32_t core, uint64_t address, uint64_t bytes) { by_core_[core].open.add(address, address + bytes); }
  /// Takes over what the last instruction has written.
  void keep(uint32_t core) {
    if (!by_core_[core].pending.empty()) keep_pending(by_core_[core]);
  }

  struct Found {
    const GmRange* output;
    uint64_t first;  ///< byte of the output
    uint64_t bytes;  ///< how many of it have changed
    bool is_over;    ///< all that changed was written by an instruction before
  };
  /// The first output with bytes that are not what instructions left there; not among them those that several cores
  /// have written, whose order is open. Once, when every core has ended.
  std::optional<Found> find();

 private:
  struct Output {
    const GmRange* range;
    std::vector<uint8_t> expected;  ///< before the launch, then what instructions have written
  };
  struct CoreWrites {
    ByteIntervals written;
    ByteIntervals open;
    std::vector<ByteIntervals::Interval> pending;  ///< of the instruction that runs
  };
  void keep_pending(CoreWrites& core);
  /// The first byte that is not as expected, and how many are not, outside of these ranges.
  static std::pair<uint64_t, uint64_t> changed_outside(const Output& output,
                                                       const std::vector<ByteIntervals::Interval>& left_out);

  std::vector<Output> outputs_;
  std::vector<CoreWrites> by_core_;
};

}  // namespace opkit
