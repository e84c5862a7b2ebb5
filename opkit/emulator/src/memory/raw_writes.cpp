#include "memory/raw_writes.h"

#include <algorithm>
#include <cstring>

namespace opkit {
namespace {

/// Counts bytes of [begin, end) that are not as before; `first` becomes the first of all.
uint64_t changed(const uint8_t* now, const uint8_t* before, uint64_t begin, uint64_t end, uint64_t& first) {
  if (begin >= end || std::memcmp(now + begin, before + begin, end - begin) == 0) return 0;
  uint64_t count = 0;
  for (uint64_t at = begin; at < end; ++at) {
    if (now[at] == before[at]) continue;
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

std::optional<RawWrites::Found> RawWrites::find() {
  ByteIntervals all;
  for (ByteIntervals& core : by_core_) all.take(core);
  const std::vector<ByteIntervals::Interval>& written = all.merged();
  for (const Output& output : outputs_) {
    const uint64_t base = output.range->begin;
    const uint64_t size = output.before.size();
    const auto* now = reinterpret_cast<const uint8_t*>(base);
    uint64_t first = size;
    uint64_t bytes = 0;
    uint64_t at = 0;
    auto next =
        std::lower_bound(written.begin(), written.end(), base,
                         [](const ByteIntervals::Interval& one, uint64_t value) { return one.second <= value; });
    for (; next != written.end() && next->first < base + size; ++next) {
      if (next->first > base + at) bytes += changed(now, output.before.data(), at, next->first - base, first);
      at = std::max(at, std::min(size, next->second - base));
    }
    bytes += changed(now, output.before.data(), at, size, first);
    if (bytes != 0) return Found{output.range, first, bytes};
  }
  return std::nullopt;
}

}  // namespace opkit
