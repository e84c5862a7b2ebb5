#include "observe/cache_lines.h"

#include <algorithm>

#include "core/launch_state.h"
#include "memory/bounds.h"

namespace opkit {
namespace {

constexpr uint64_t kLineBytes = 64;
/// Lines that a vector core's cache of 32 KiB holds; those of a cube core are fewer. Which line makes room for another
/// is not documented: one that has not been loaded for so many others is taken as gone. Source: programming guide,
/// cache coherence, units of architecture 2201.
constexpr uint32_t kLines = 512;

}  // namespace

void CacheLines::launch_begin(uint32_t core_count) { cores_.assign(core_count, CoreState()); }

/// Lines are counted from the start of what was allocated, which the device aligns and a host's array need not.
uint64_t CacheLines::line_of(const Core& core, CoreState& state, uint64_t address) {
  if (address < state.base || address >= state.end) {
    const GmRange* range = range_at(core.launch->launch->gm, address);
    state.base = range == nullptr ? address / kLineBytes * kLineBytes : range->begin;
    state.end = range == nullptr ? state.base + kLineBytes : range->end;
  }
  return state.base + (address - state.base) / kLineBytes * kLineBytes;
}

CacheLines::Mask CacheLines::mask_of(uint64_t line, uint64_t begin, uint64_t end) {
  if (end <= line || begin >= line + kLineBytes) return 0;
  const uint64_t first = std::max(begin, line) - line;
  const uint64_t last = std::min(end, line + kLineBytes) - line;
  const Mask upper = last == kLineBytes ? ~Mask{0} : (Mask{1} << last) - 1;
  return upper & ~((Mask{1} << first) - 1);
}

/// Of conflicts of the same two lines of the source the first.
void CacheLines::keep(CoreState& state, const CacheConflict& conflict) {
  const auto is_known = [&conflict](const CacheConflict& other) {
    return other.kind == conflict.kind && other.first.site.line == conflict.first.site.line &&
           other.other.site.line == conflict.other.site.line;
  };
  if (std::none_of(state.conflicts.begin(), state.conflicts.end(), is_known)) state.conflicts.push_back(conflict);
}

void CacheLines::forget_old(CoreState& state) {
  if (++state.loads < kLines) return;
  state.loads = 0;
  ++state.sweep;
  for (auto at = state.lines.begin(); at != state.lines.end();) {
    const bool is_gone = at->second.dirty == 0 && at->second.sweep + 1 < state.sweep;
    at = is_gone ? state.lines.erase(at) : std::next(at);
  }
}

void CacheLines::access(const Core& core, const Segment& access) {
  CoreState& state = cores_[core.index];
  const uint64_t key = line_of(core, state, access.begin);
  const auto [at, is_loaded] = state.lines.try_emplace(key);
  Line& line = at->second;
  if (is_loaded) {
    line.loaded = access.when;
    line.loader = access.instruction;
    line.sweep = state.sweep;
    forget_old(state);
  }
  const Mask bytes = mask_of(key, access.begin, access.end);
  if (access.is_write) {
    if (line.dirty == 0) line.dirtied = access.when, line.signals = state.signals;
    line.dirty |= bytes;
    line.write = access;
    return;
  }
  if ((line.copied & bytes) != 0) {
    keep(state, {CacheConflict::Kind::StaleRead, access, line.copy, access.begin, access.end});
  }
  if (access.when.seen == line.loaded.seen) return;
  if (!state.late_reads.empty()) {
    const LateRead& last = state.late_reads.back();
    if (last.read.begin == access.begin && last.read.when.seen == access.when.seen) return;
  }
  state.late_reads.push_back({key, line.loaded, access});
}

void CacheLines::acquired(const Core& core, uint64_t address, const Moment& now) {
  CoreState& state = cores_[core.index];
  const auto at = state.lines.find(line_of(core, state, address));
  if (at != state.lines.end() && at->second.loader == core.issued) at->second.loaded = now;
}

/// Calls `visit` for the lines in the cache that an access touches.
template <typename Visit>
void CacheLines::for_lines(const Core& core, CoreState& state, const Segment& access, const Visit& visit) {
  if (state.lines.empty()) return;
  const uint64_t first = line_of(core, state, access.begin);
  if ((access.end - first) / kLineBytes > state.lines.size()) {
    for (auto& [key, line] : state.lines) {
      if (key + kLineBytes > access.begin && key < access.end) visit(key, line);
    }
    return;
  }
  for (uint64_t key = first; key < access.end; key += kLineBytes) {
    const auto at = state.lines.find(key);
    if (at != state.lines.end()) visit(key, at->second);
  }
}

void CacheLines::copy(const Core& core, const Segment& access) {
  CoreState& state = cores_[core.index];
  for_lines(core, state, access, [&](uint64_t key, Line& line) {
    const Mask bytes = mask_of(key, access.begin, access.end);
    if (access.is_write) {
      if (line.dirty != 0) {
        keep(state, {CacheConflict::Kind::LostWrite, access, line.write, key, key + kLineBytes});
      }
      line.copied |= bytes;
      line.copy = access;
    } else if ((line.dirty & bytes) != 0) {
      keep(state, {CacheConflict::Kind::UnwrittenRead, access, line.write, line.write.begin, line.write.end});
    }
  });
}

void CacheLines::close(CoreState& state, uint64_t key, const Line& line, const Moment& now) {
  if (line.dirty != 0) state.episodes.push_back({key, line, line.signals != state.signals, now});
}

void CacheLines::clean_line(const Core& core, uint64_t address, const Moment& now) {
  CoreState& state = cores_[core.index];
  const auto at = state.lines.find(line_of(core, state, address));
  if (at == state.lines.end()) return;
  close(state, at->first, at->second, now);
  state.lines.erase(at);
}

void CacheLines::clean(const Core& core, const Moment& now) {
  CoreState& state = cores_[core.index];
  for (const auto& [key, line] : state.lines) close(state, key, line, now);
  state.lines.clear();
}

/// Whether a line was back in global memory at a moment of another core. A core that reads a word which another has
/// written and cleaned sees it behind the cleaning, on the chip; here it sees it as soon as it is written.
bool CacheLines::is_over(const CoreClocks& clocks, const Episode& episode, const Moment& moment) {
  if (clocks.is_before(episode.cleaned, moment)) return true;
  return !episode.has_signalled && clocks.is_before(episode.state.dirtied, moment);
}

void CacheLines::compare(const CoreClocks& clocks, const std::vector<CoreAccesses>& accesses, const Report& report) {
  std::vector<const Episode*> episodes;
  for (const CoreState& state : cores_) {
    for (const Episode& episode : state.episodes) episodes.push_back(&episode);
    for (const CacheConflict& conflict : state.conflicts) report(conflict);
  }
  std::sort(episodes.begin(), episodes.end(), [](const Episode* a, const Episode* b) {
    return std::tie(a->line, a->state.write.when.core, a->state.write.instruction) <
           std::tie(b->line, b->state.write.when.core, b->state.write.instruction);
  });
  if (clocks.is_single()) return;
  compare_episodes(clocks, episodes, report);
  compare_segments(clocks, episodes, accesses, report);
  compare_reads(clocks, accesses, report);
}

void CacheLines::compare_episodes(const CoreClocks& clocks, const std::vector<const Episode*>& episodes,
                                  const Report& report) const {
  for (size_t i = 0; i < episodes.size(); ++i) {
    const Episode& one = *episodes[i];
    for (size_t j = i + 1; j < episodes.size() && episodes[j]->line == one.line; ++j) {
      const Episode& two = *episodes[j];
      if (one.state.write.when.core == two.state.write.when.core) continue;
      if (is_over(clocks, one, two.state.loaded) || is_over(clocks, two, one.state.loaded)) continue;
      report({CacheConflict::Kind::LostWrite, two.state.write, one.state.write, one.line, one.line + kLineBytes});
    }
  }
}

void CacheLines::compare_segments(const CoreClocks& clocks, const std::vector<const Episode*>& episodes,
                                  const std::vector<CoreAccesses>& accesses, const Report& report) const {
  if (episodes.empty()) return;
  const auto from = [&episodes](uint64_t address) {
    return std::lower_bound(episodes.begin(), episodes.end(), address,
                            [](const Episode* each, uint64_t at) { return each->line + kLineBytes <= at; });
  };
  for (const CoreAccesses& of_core : accesses) {
    for (const Segment& segment : of_core.segments()) {
      if (segment.is_write && segment.is_cached) continue;
      for (auto at = from(segment.begin); at != episodes.end() && (*at)->line < segment.end; ++at) {
        const Episode& episode = **at;
        if (episode.state.write.when.core == segment.when.core || is_over(clocks, episode, segment.when)) continue;
        if (segment.is_write) {
          if (clocks.is_before(segment.when, episode.state.loaded)) continue;
          report(
              {CacheConflict::Kind::LostWrite, segment, episode.state.write, episode.line, episode.line + kLineBytes});
          continue;
        }
        const bool is_dirty = (episode.state.dirty & mask_of(episode.line, segment.begin, segment.end)) != 0;
        // What nothing orders is a race, which caches do not make.
        if (!is_dirty || !clocks.is_before(episode.state.dirtied, segment.when)) continue;
        report({CacheConflict::Kind::UnwrittenRead, segment, episode.state.write, std::max(episode.line, segment.begin),
                std::min(episode.line + kLineBytes, segment.end)});
      }
    }
  }
}

void CacheLines::compare_reads(const CoreClocks& clocks, const std::vector<CoreAccesses>& accesses,
                               const Report& report) const {
  std::vector<const Segment*> writes;
  uint64_t longest = 0;
  for (const CoreState& state : cores_) {
    if (state.late_reads.empty()) continue;
    if (writes.empty()) {
      for (const CoreAccesses& of_core : accesses) {
        for (const Segment& segment : of_core.segments()) {
          if (!segment.is_write) continue;
          writes.push_back(&segment);
          longest = std::max(longest, segment.end - segment.begin);
        }
      }
      std::sort(writes.begin(), writes.end(), [](const Segment* a, const Segment* b) { return a->begin < b->begin; });
    }
    for (const LateRead& late : state.late_reads) {
      const uint64_t least = late.read.begin > longest ? late.read.begin - longest : 0;
      const auto first = std::lower_bound(writes.begin(), writes.end(), least,
                                          [](const Segment* each, uint64_t at) { return each->begin < at; });
      for (auto at = first; at != writes.end() && (*at)->begin < late.read.end; ++at) {
        const Segment& write = **at;
        if (write.end <= late.read.begin || write.when.core == late.read.when.core) continue;
        if (!clocks.is_before(write.when, late.read.when) || clocks.is_before(write.when, late.loaded)) continue;
        report({CacheConflict::Kind::StaleRead, late.read, write, late.read.begin, late.read.end});
      }
    }
  }
}

}  // namespace opkit
