/// What scalar code leaves in the cores' data caches: lines of 64 bytes that are written back as a whole, some time or
/// at the end. Execution has no caches, so nothing here shows in results. Source: Ascend C API, GlobalTensor::SetValue,
/// DataCacheCleanAndInvalid; programming guide, cache coherence.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "core/launch.h"
#include "observe/core_clocks.h"
#include "observe/gm_accesses.h"

namespace opkit {

/// An access that met another in a way that only caches make wrong.
struct CacheConflict {
  enum class Kind : uint8_t { LostWrite, UnwrittenRead, StaleRead };

  Kind kind;
  Segment first;   ///< what the finding is about: the read, or the later write
  Segment other;   ///< the write that it meets
  uint64_t begin;  ///< bytes concerned
  uint64_t end;
};

class CacheLines {
 public:
  void launch_begin(uint32_t core_count);

  /// A scalar access through the cache; its bytes do not cross a line.
  void access(const Core& core, const Segment& access);
  /// A scalar read has made its core know of more, which was there when the line was loaded.
  void acquired(const Core& core, uint64_t address, const Moment& now);
  /// A copy of the core's own.
  void copy(const Core& core, const Segment& access);
  void clean_line(const Core& core, uint64_t address, const Moment& now);
  /// All lines, as at the end of a kernel, too.
  void clean(const Core& core, const Moment& now);
  /// The core signals others.
  void signal(const Core& core) { cores_[core.index].signals += 1; }

  using Report = std::function<void(const CacheConflict&)>;

  /// Reports what is wrong, once a launch has ended: of each core by itself, and of each two.
  void compare(const CoreClocks& clocks, const std::vector<CoreAccesses>& accesses, const Report& report);

 private:
  using Mask = uint64_t;  // a bit a byte

  struct Line {
    Moment loaded;
    uint64_t sweep = 0;
    uint64_t loader = 0;  ///< the instruction that loaded it
    Mask dirty = 0;
    Moment dirtied;
    uint64_t signals = 0;  ///< that its core had sent when it became dirty
    Segment write = {};    ///< the latest
    Mask copied = 0;       ///< bytes that a copy of this core has written to global memory since
    Segment copy = {};
  };
  /// How long a line was dirty.
  struct Episode {
    uint64_t line;
    Line state;
    bool has_signalled;  ///< while it was dirty
    Moment cleaned;
  };
  /// A read of a line that was loaded before its core learned what others had done.
  struct LateRead {
    uint64_t line;
    Moment loaded;
    Segment read;
  };
  struct CoreState {
    std::unordered_map<uint64_t, Line> lines;
    std::vector<Episode> episodes;
    std::vector<LateRead> late_reads;
    std::vector<CacheConflict> conflicts;
    uint64_t signals = 0;
    uint64_t sweep = 0;
    uint32_t loads = 0;  ///< in this sweep
    uint64_t base = 0;   ///< of the allocation touched last
    uint64_t end = 0;
  };

  static uint64_t line_of(const Core& core, CoreState& state, uint64_t address);
  static Mask mask_of(uint64_t line, uint64_t begin, uint64_t end);
  static void close(CoreState& state, uint64_t line, const Line& found, const Moment& now);
  static void keep(CoreState& state, const CacheConflict& conflict);
  static void forget_old(CoreState& state);
  template <typename Visit>
  static void for_lines(const Core& core, CoreState& state, const Segment& access, const Visit& visit);
  static bool is_over(const CoreClocks& clocks, const Episode& episode, const Moment& moment);
  void compare_episodes(const CoreClocks& clocks, const std::vector<const Episode*>& episodes,
                        const Report& report) const;
  void compare_segments(const CoreClocks& clocks, const std::vector<const Episode*>& episodes,
                        const std::vector<CoreAccesses>& accesses, const Report& report) const;
  void compare_reads(const CoreClocks& clocks, const std::vector<CoreAccesses>& accesses, const Report& report) const;

  std::vector<CoreState> cores_;
};

}  // namespace opkit
