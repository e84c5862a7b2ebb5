#include "mm/device_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <tuple>
#include <vector>

#include "core/log.h"

namespace opkit::mm {
namespace {

uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

void change(opkit_memory_figure& figure, int64_t by) {
  figure.current += by;
  figure.peak = std::max(figure.peak, figure.current);
  (by > 0 ? figure.added : figure.removed) += by > 0 ? by : -by;
}

/// One figure of a block or segment, in its pool's column and in that of all.
void change(opkit_memory_figure (&figure)[OPKIT_MEMORY_POOLS], bool is_small, int64_t by) {
  change(figure[OPKIT_MEMORY_ALL], by);
  change(figure[is_small ? OPKIT_MEMORY_SMALL : OPKIT_MEMORY_LARGE], by);
}

uint64_t now_us() {
  using namespace std::chrono;
  return static_cast<uint64_t>(duration_cast<microseconds>(system_clock::now().time_since_epoch()).count());
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n' || c == '\t') {
      out += c == '\n' ? "\\n" : "\\t";
    } else if (static_cast<unsigned char>(c) >= 0x20) {
      out += c;
    }
  }
  return out + "\"";
}

template <typename Change>
void for_each_figure(opkit_memory_figures& figures, const Change& apply) {
  for (int pool = 0; pool < OPKIT_MEMORY_POOLS; ++pool) {
    for (opkit_memory_figure* figure :
         {&figures.allocations[pool], &figures.segments[pool], &figures.inactive_split[pool],
          &figures.allocated_bytes[pool], &figures.reserved_bytes[pool], &figures.inactive_split_bytes[pool],
          &figures.requested_bytes[pool]}) {
      apply(*figure);
    }
  }
}

}  // namespace

bool DevicePool::BySize::operator()(const Block* a, const Block* b) const {
  return std::tie(a->stream, a->bytes, a->begin) < std::tie(b->stream, b->bytes, b->begin);
}

// Only addresses are taken here: a page costs the host memory when something is written to it.
DevicePool::DevicePool(int32_t device, uint64_t total_bytes)
    : device_(device), total_bytes_(total_bytes), limit_bytes_(total_bytes) {
  void* mapped = mmap(nullptr, total_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return;
  base_ = reinterpret_cast<uint64_t>(mapped);
  unreserved_[base_] = total_bytes;
}

DevicePool::~DevicePool() {
  if (base_ != 0) munmap(reinterpret_cast<void*>(base_), total_bytes_);
}

bool DevicePool::owns(const void* pointer) const {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  return base_ != 0 && address >= base_ && address < base_ + total_bytes_;
}

uint64_t DevicePool::size_of(const void* pointer) const {
  const std::lock_guard<std::mutex> guard(lock_);
  const auto found = used_.find(reinterpret_cast<uint64_t>(pointer));
  return found == used_.end() ? 0 : found->second->bytes;
}

void DevicePool::note(const char* action, uint64_t address, uint64_t bytes, uint64_t stream, const Recorder& recorder,
                      const std::string& stack) {
  if (recorder.limit == 0) return;
  trace_.push_back({action, device_, address, bytes, stream, now_us(), stack});
  if (trace_.size() > recorder.limit) trace_.pop_front();
}

void DevicePool::trim_trace(uint64_t limit) {
  const std::lock_guard<std::mutex> guard(lock_);
  while (trace_.size() > limit) trace_.pop_front();
}

/// The history: programs allocate in loops, so what followed a size the last time is likely to follow it again.
void DevicePool::learn(uint64_t bytes) {
  const auto found = follows_.find(last_bytes_);
  if (found != follows_.end()) {
    ++figures_.predictions;
    figures_.right_predictions += found->second == bytes;
  }
  follows_[last_bytes_] = bytes;
  last_bytes_ = bytes;
}

bool DevicePool::may_split(uint64_t block_bytes, uint64_t bytes, bool is_small) const {
  if (is_small) return block_bytes - bytes >= kAlignment;
  return bytes < max_split_bytes_ && block_bytes - bytes > kSmallBlock;
}

Block* DevicePool::find_free(uint64_t bytes, bool is_small, uint64_t stream) {
  FreeList& list = free_[is_small];
  Block key;
  key.bytes = bytes;
  key.stream = stream;
  const auto found = list.lower_bound(&key);
  if (found == list.end() || (*found)->stream != stream) return nullptr;
  Block* block = *found;
  // A block that must not be split is kept for those that need most of it.
  if (!is_small && block->bytes >= max_split_bytes_ && block->bytes - bytes > kLargeSegment) return nullptr;
  list.erase(found);
  return block;
}

uint64_t DevicePool::reserve_range(uint64_t bytes) {
  for (auto range = unreserved_.begin(); range != unreserved_.end(); ++range) {
    if (range->second < bytes) continue;
    const uint64_t begin = range->first;
    const uint64_t rest = range->second - bytes;
    unreserved_.erase(range);
    if (rest != 0) unreserved_[begin + bytes] = rest;
    return begin;
  }
  return 0;
}

void DevicePool::return_range(uint64_t begin, uint64_t bytes) {
  auto behind = unreserved_.lower_bound(begin);
  if (behind != unreserved_.end() && begin + bytes == behind->first) {
    bytes += behind->second;
    behind = unreserved_.erase(behind);
  }
  if (behind != unreserved_.begin()) {
    const auto before = std::prev(behind);
    if (before->first + before->second == begin) {
      before->second += bytes;
      return;
    }
  }
  unreserved_[begin] = bytes;
}

Block* DevicePool::add_segment(uint64_t bytes, bool is_small, uint64_t stream, const Recorder& recorder) {
  const uint64_t wanted = is_small              ? kSmallSegment
                          : bytes < kOwnSegment ? kLargeSegment
                                                : round_up(bytes, kSegmentRounding);
  const auto reserved = static_cast<uint64_t>(figures_.reserved_bytes[OPKIT_MEMORY_ALL].current);
  if (base_ == 0 || wanted > limit_bytes_ || reserved > limit_bytes_ - wanted) return nullptr;
  const uint64_t begin = reserve_range(wanted);
  if (begin == 0) return nullptr;
  if (mprotect(reinterpret_cast<void*>(begin), wanted, PROT_READ | PROT_WRITE) != 0) {
    return_range(begin, wanted);
    return nullptr;
  }
  auto* segment = new Segment{begin, wanted, stream, is_small, nullptr};
  auto* block = new Block();
  block->begin = begin;
  block->bytes = wanted;
  block->stream = stream;
  block->segment = segment;
  segment->first = block;
  segments_.insert(segment);
  change(figures_.segments, is_small, 1);
  change(figures_.reserved_bytes, is_small, static_cast<int64_t>(wanted));
  publish_memory(device_, 0, static_cast<int64_t>(wanted));
  ++figures_.segment_allocations;
  note("segment_alloc", begin, wanted, stream, recorder);
  return block;
}

void DevicePool::drop_segment(Segment* segment, const Recorder& recorder) {
  Block* block = segment->first;
  free_[segment->is_small].erase(block);
  auto* memory = reinterpret_cast<void*>(segment->begin);
  // The pages go back to the host; the addresses stay the device's.
  madvise(memory, segment->bytes, MADV_DONTNEED);
  mprotect(memory, segment->bytes, PROT_NONE);
  return_range(segment->begin, segment->bytes);
  change(figures_.segments, segment->is_small, -1);
  change(figures_.reserved_bytes, segment->is_small, -static_cast<int64_t>(segment->bytes));
  publish_memory(device_, 0, -static_cast<int64_t>(segment->bytes));
  ++figures_.segment_releases;
  note("segment_free", segment->begin, segment->bytes, segment->stream, recorder);
  segments_.erase(segment);
  delete block;
  delete segment;
}

/// A free block beside used ones: what fragmentation costs.
void DevicePool::count_split(const Block* block, int64_t sign) {
  if (block->before == nullptr && block->behind == nullptr) return;
  change(figures_.inactive_split, block->segment->is_small, sign);
  change(figures_.inactive_split_bytes, block->segment->is_small, sign * static_cast<int64_t>(block->bytes));
}

void DevicePool::split(Block* block, uint64_t bytes) {
  auto* rest = new Block();
  rest->begin = block->begin + bytes;
  rest->bytes = block->bytes - bytes;
  rest->stream = block->stream;
  rest->segment = block->segment;
  rest->before = block;
  rest->behind = block->behind;
  if (rest->behind != nullptr) rest->behind->before = rest;
  block->behind = rest;
  block->bytes = bytes;
  free_[block->segment->is_small].insert(rest);
  count_split(rest, 1);
}

Block* DevicePool::merge(Block* block) {
  FreeList& list = free_[block->segment->is_small];
  const auto absorb = [&](Block* first, Block* second) {
    first->bytes += second->bytes;
    first->behind = second->behind;
    if (first->behind != nullptr) first->behind->before = first;
    delete second;
    return first;
  };
  if (Block* behind = block->behind; behind != nullptr && !behind->is_used) {
    list.erase(behind);
    count_split(behind, -1);
    absorb(block, behind);
  }
  if (Block* before = block->before; before != nullptr && !before->is_used) {
    list.erase(before);
    count_split(before, -1);
    block = absorb(before, block);
  }
  return block;
}

/// Gives back what is not in use once more than the configured part of the memory is taken.
void DevicePool::collect(uint64_t wanted, const Recorder& recorder) {
  if (collect_above_ <= 0) return;
  const auto reserved = static_cast<double>(figures_.reserved_bytes[OPKIT_MEMORY_ALL].current);
  if (reserved + static_cast<double>(wanted) <= collect_above_ * static_cast<double>(limit_bytes_)) return;
  const std::vector<Segment*> all(segments_.begin(), segments_.end());
  for (Segment* segment : all) {
    if (!segment->is_small && segment->first->behind == nullptr && !segment->first->is_used) {
      drop_segment(segment, recorder);
    }
  }
}

void* DevicePool::allocate(uint64_t bytes, uint64_t stream, const Recorder& recorder, opkit_memory_shortage& shortage) {
  if (bytes == 0) return nullptr;
  // Before the lock: whoever tells the stack may wait for a lock that another thread holds while it frees.
  const char* caller = recorder.limit != 0 && recorder.stack != nullptr ? recorder.stack() : nullptr;
  const std::string stack = caller == nullptr ? "" : caller;
  const std::lock_guard<std::mutex> guard(lock_);
  // Beyond every memory there is; it also keeps the rounding from overflowing.
  const bool is_possible = bytes <= total_bytes_;
  const uint64_t rounded = is_possible ? round_up(bytes, kAlignment) : bytes;
  const bool is_small = rounded <= kSmallBlock;
  learn(rounded);
  Block* block = is_possible ? find_free(rounded, is_small, stream) : nullptr;
  if (block != nullptr) {
    ++figures_.cache_hits;
    count_split(block, -1);
  } else if (is_possible) {
    collect(rounded, recorder);
    block = add_segment(rounded, is_small, stream, recorder);
    if (block == nullptr) {
      ++figures_.retries;
      const std::vector<Segment*> all(segments_.begin(), segments_.end());
      for (Segment* segment : all) {
        if (segment->first->behind == nullptr && !segment->first->is_used) drop_segment(segment, recorder);
      }
      block = add_segment(rounded, is_small, stream, recorder);
    }
  }
  if (block == nullptr) {
    ++figures_.out_of_memory;
    log(OPKIT_LOG_WARNING,
        "device " + std::to_string(device_) + " has no room for " + std::to_string(bytes) + " bytes");
    const auto reserved = static_cast<uint64_t>(figures_.reserved_bytes[OPKIT_MEMORY_ALL].current);
    shortage = {bytes,
                limit_bytes_,
                limit_bytes_ > reserved ? limit_bytes_ - reserved : 0,
                static_cast<uint64_t>(figures_.allocated_bytes[OPKIT_MEMORY_ALL].current),
                reserved,
                base_ == 0};
    note("oom", shortage.free_bytes, bytes, stream, recorder, stack);
    return nullptr;
  }
  if (may_split(block->bytes, rounded, is_small)) split(block, rounded);
  block->is_used = true;
  block->requested = bytes;
  block->stack = stack;
  used_[block->begin] = block;
  change(figures_.allocations, is_small, 1);
  change(figures_.allocated_bytes, is_small, static_cast<int64_t>(block->bytes));
  publish_memory(device_, static_cast<int64_t>(block->bytes), 0);
  change(figures_.requested_bytes, is_small, static_cast<int64_t>(bytes));
  note("alloc", block->begin, block->bytes, stream, recorder, stack);
  return reinterpret_cast<void*>(block->begin);
}

bool DevicePool::release(void* pointer, const Recorder& recorder) {
  const std::lock_guard<std::mutex> guard(lock_);
  const auto found = used_.find(reinterpret_cast<uint64_t>(pointer));
  if (found == used_.end()) return false;
  Block* block = found->second;
  used_.erase(found);
  const bool is_small = block->segment->is_small;
  change(figures_.allocations, is_small, -1);
  change(figures_.allocated_bytes, is_small, -static_cast<int64_t>(block->bytes));
  publish_memory(device_, -static_cast<int64_t>(block->bytes), 0);
  change(figures_.requested_bytes, is_small, -static_cast<int64_t>(block->requested));
  note("free_requested", block->begin, block->bytes, block->stream, recorder);
  note("free_completed", block->begin, block->bytes, block->stream, recorder);
  block->is_used = false;
  block->requested = 0;
  block = merge(block);
  free_[is_small].insert(block);
  count_split(block, 1);
  return true;
}

void DevicePool::release_cache(const Recorder& recorder) {
  const std::lock_guard<std::mutex> guard(lock_);
  const std::vector<Segment*> all(segments_.begin(), segments_.end());
  for (Segment* segment : all) {
    if (segment->first->behind == nullptr && !segment->first->is_used) drop_segment(segment, recorder);
  }
}

bool DevicePool::configure(int64_t max_split_bytes, double collect_above, double fraction) {
  if (max_split_bytes != -1 && max_split_bytes < static_cast<int64_t>(kLargeSegment)) return false;
  if (!(collect_above >= 0 && collect_above < 1) || !(fraction > 0 && fraction <= 1)) return false;
  const std::lock_guard<std::mutex> guard(lock_);
  max_split_bytes_ = max_split_bytes == -1 ? UINT64_MAX : static_cast<uint64_t>(max_split_bytes);
  collect_above_ = collect_above;
  limit_bytes_ = static_cast<uint64_t>(static_cast<double>(total_bytes_) * fraction);
  return true;
}

opkit_memory_figures DevicePool::figures() const {
  const std::lock_guard<std::mutex> guard(lock_);
  opkit_memory_figures copy = figures_;
  copy.max_split_bytes = max_split_bytes_ == UINT64_MAX ? -1 : static_cast<int64_t>(max_split_bytes_);
  return copy;
}

void DevicePool::reset_peaks() {
  const std::lock_guard<std::mutex> guard(lock_);
  for_each_figure(figures_, [](opkit_memory_figure& figure) { figure.peak = figure.current; });
}

void DevicePool::reset_totals() {
  const std::lock_guard<std::mutex> guard(lock_);
  for_each_figure(figures_, [](opkit_memory_figure& figure) { figure.added = figure.removed = 0; });
  figures_.retries = figures_.out_of_memory = 0;
  figures_.segment_allocations = figures_.segment_releases = 0;
  figures_.cache_hits = figures_.predictions = figures_.right_predictions = 0;
}

uint64_t DevicePool::free_bytes() const {
  const std::lock_guard<std::mutex> guard(lock_);
  const auto reserved = static_cast<uint64_t>(figures_.reserved_bytes[OPKIT_MEMORY_ALL].current);
  return limit_bytes_ > reserved ? limit_bytes_ - reserved : 0;
}

void DevicePool::append_used(std::vector<GmRange>& ranges) const {
  constexpr uint64_t kUnit = 32;
  const std::lock_guard<std::mutex> guard(lock_);
  for (const auto& [begin, block] : used_) {
    const uint64_t usable = (block->requested + kUnit - 1) / kUnit * kUnit;
    std::string name = "a block of " + std::to_string(block->requested) + " bytes of the device's memory";
    ranges.push_back({begin, begin + usable, true, std::move(name), nullptr, usable - block->requested});
  }
}

void DevicePool::describe(std::string& segments, std::string& trace) const {
  const std::lock_guard<std::mutex> guard(lock_);
  for (const Segment* segment : segments_) {
    uint64_t allocated = 0;
    uint64_t requested = 0;
    std::string blocks;
    for (const Block* block = segment->first; block != nullptr; block = block->behind) {
      if (block->is_used) allocated += block->bytes, requested += block->requested;
      blocks += std::string(blocks.empty() ? "" : ",") + "{\"address\":" + std::to_string(block->begin) +
                ",\"size\":" + std::to_string(block->bytes) +
                ",\"requested_size\":" + std::to_string(block->requested) + ",\"state\":\"" +
                (block->is_used ? "active_allocated" : "inactive") + "\",\"stack\":" + quoted(block->stack) + "}";
    }
    segments += std::string(segments.empty() ? "" : ",") + "{\"device\":" + std::to_string(device_) +
                ",\"address\":" + std::to_string(segment->begin) + ",\"total_size\":" + std::to_string(segment->bytes) +
                ",\"allocated_size\":" + std::to_string(allocated) + ",\"active_size\":" + std::to_string(allocated) +
                ",\"requested_size\":" + std::to_string(requested) + ",\"stream\":" + std::to_string(segment->stream) +
                ",\"segment_type\":\"" + (segment->is_small ? "small" : "large") + "\",\"blocks\":[" + blocks + "]}";
  }
  for (const TraceEntry& entry : trace_) {
    trace += std::string(trace.empty() ? "" : ",") + "{\"action\":\"" + entry.action +
             "\",\"device\":" + std::to_string(entry.device) + ",\"addr\":" + std::to_string(entry.address) +
             ",\"size\":" + std::to_string(entry.bytes) + ",\"stream\":" + std::to_string(entry.stream) +
             ",\"time_us\":" + std::to_string(entry.time_us) + ",\"stack\":" + quoted(entry.stack) + "}";
  }
}

}  // namespace opkit::mm
