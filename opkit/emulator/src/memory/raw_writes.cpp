#include "memory/raw_writes.h"

#include <algorithm>
#include <cstring>

namespace opkit {
namespace {

/// Counts bytes of [begin, end) that are not as expected; `first` becomes the first of all.
uint64_t changed(const uint8_t* now, const uint8_t* expected, uint64_t begin, uint64_t end, uint64_t& first) {
  if (begin >= end || std::memcmp(now + begin, expected + begin, end - begin) == 0) return 0;
  uint64_t count = 0;
  for (uint64_t at = begin; at < end; ++at) {
    if (now[at] == expected[at]) continue;
    first = std::min(first, at);
    ++count;
  }
  return count;
}

}  // namespace

void ByteIntervals::merge() {
  std::sort(intervals_.begin(), intervals_.end());
  size_t kept = 0;
  for (size_t i = 1; i < intervals_.size(); ++i) {
    if (intervals_[i].first <= intervals_[kept].second) {
      intervals_[kept].second = std::max(intervals_[kept].second, intervals_[i].second);
    } else {
      intervals_[++kept] = intervals_[i];
    }
  }
  if (!intervals_.empty()) intervals_.resize(kept + 1);
  limit_ = std::max(limit_, 2 * intervals_.size());
}

RawWrites::RawWrites(const Launch& launch, uint32_t core_count) : by_core_(core_count) {
  for (const GmRange& range : launch.gm) {
    if (!range.is_output) continue;
    const auto* data = reinterpret_cast<const uint8_t*>(range.begin);
    outputs_.push_back({&range, {data, data + (range.end - range.begin - range.padding_bytes)}});
  }
}

void RawWrites::keep_pending(CoreWrites& core) {
  for (const auto& [begin, end] : core.pending) {
    for (Output& output : outputs_) {
      const uint64_t base = output.range->begin;
      const uint64_t first = std::max(begin, base);
      const uint64_t last = std::min(end, base + output.expected.size());
      if (first >= last) continue;
      std::memcpy(output.expected.data() + (first - base), reinterpret_cast<const void*>(first), last - first);
    }
  }
  core.pending.clear();
}

std::optional<RawWrites::Found> RawWrites::find() {
  // What was executed late, and not in its core's order.
  for (CoreWrites& core : by_core_) keep_pending(core);
  ByteIntervals written;
  ByteIntervals unknown;
  std::vector<std::pair<uint64_t, int>> ends;  ///< +1 where a core's writes begin, -1 where they end
  for (CoreWrites& core : by_core_) {
    for (const auto& [begin, end] : core.written.merged()) {
      ends.emplace_back(begin, 1);
      ends.emplace_back(end, -1);
    }
    written.take(core.written);
    unknown.take(core.open);
  }
  std::sort(ends.begin(), ends.end());
  int cores = 0;
  for (size_t i = 0; i + 1 < ends.size(); ++i) {
    cores += ends[i].second;
    if (cores > 1 && ends[i].first < ends[i + 1].first) unknown.add(ends[i].first, ends[i + 1].first);
  }
  for (const Output& output : outputs_) {
    const auto [first, bytes] = changed_outside(output, unknown.merged());
    if (bytes == 0) continue;
    written.take(unknown);
    const auto [unwritten, count] = changed_outside(output, written.merged());
    return Found{output.range, count == 0 ? first : unwritten, count == 0 ? bytes : count, count == 0};
  }
  return std::nullopt;
}

std::pair<uint64_t, uint64_t> RawWrites::changed_outside(const Output& output,
                                                         const std::vector<ByteIntervals::Interval>& left_out) {
  const uint64_t base = output.range->begin;
  const uint64_t size = output.expected.size();
  const auto* now = reinterpret_cast<const uint8_t*>(base);
  uint64_t first = size;
  uint64_t bytes = 0;
  uint64_t at = 0;
  auto next = std::lower_bound(left_out.begin(), left_out.end(), base,
                               [](const ByteIntervals::Interval& one, uint64_t value) { return one.second <= value; });
  for (; next != left_out.end() && next->first < base + size; ++next) {
    if (next->first > base + at) bytes += changed(now, output.expected.data(), at, next->first - base, first);
    at = std::max(at, std::min(size, next->second - base));
  }
  bytes += changed(now, output.expected.data(), at, size, first);
  return {first, bytes};
}

}  // namespace opkit
