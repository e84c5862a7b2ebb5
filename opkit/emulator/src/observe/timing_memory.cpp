#include "observe/timing_memory.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace opkit {
namespace {

constexpr double kSliceCycles = 64;
constexpr uint64_t kWindowSlices = 1 << 14;
constexpr uint32_t kLineShift = 7;
constexpr uint32_t kPageShift = 12;
static_assert(kL2LineBytes == 1u << kLineShift);
constexpr uint32_t kLinesPerPage = 1u << (kPageShift - kLineShift);

uint32_t line_bits(uint32_t first, uint32_t last) {
  const uint32_t count = last - first + 1;
  const uint32_t ones = count >= 32 ? ~0u : (1u << count) - 1;
  return ones << first;
}

uint64_t line_count(uint32_t lines) { return static_cast<uint64_t>(__builtin_popcount(lines)); }

}  // namespace

SharedBandwidth::SharedBandwidth(double bytes_per_cycle)
    : bytes_per_slice_(bytes_per_cycle * kSliceCycles), used_(kWindowSlices, 0.0f) {}

void SharedBandwidth::reach(uint64_t slice) {
  if (slice < window_begin_ + kWindowSlices) return;
  // Keep half of the window behind the newest slice for cores that lag.
  const uint64_t begin = slice - kWindowSlices / 2;
  const uint64_t cleared = std::min(begin - window_begin_, kWindowSlices);
  for (uint64_t i = 0; i < cleared; ++i) used_[(window_begin_ + i) % kWindowSlices] = 0.0f;
  window_begin_ = begin;
}

double SharedBandwidth::take(double start, double bytes) {
  uint64_t slice = std::max(static_cast<uint64_t>(start / kSliceCycles), window_begin_);
  double end = start;
  for (double left = bytes; left > 0; ++slice) {
    reach(slice);
    float& used = used_[slice % kWindowSlices];
    // The part of the slice before the start cannot be used by this transfer.
    const double begin = static_cast<double>(slice) * kSliceCycles;
    const double gone = start > begin ? (start - begin) / kSliceCycles * bytes_per_slice_ : 0;
    const double from = std::max(static_cast<double>(used), gone);
    const double taken = std::min(left, bytes_per_slice_ - from);
    if (taken <= 0) continue;
    left -= taken;
    end = begin + (from + taken) / bytes_per_slice_ * kSliceCycles;
    used = static_cast<float>(std::min(static_cast<double>(used) + taken, bytes_per_slice_));
  }
  return end;
}

void FairShare::run_to(double cycle) {
  if (cycle <= now_) return;
  if (!transfers_.empty()) level_ += (cycle - now_) * bytes_per_cycle_ / static_cast<double>(transfers_.size());
  now_ = cycle;
}

void FairShare::begin(double start, double bytes, size_t owner) {
  run_to(start);
  transfers_.emplace(level_ + bytes, owner);
}

double FairShare::next_end() const {
  if (transfers_.empty()) return std::numeric_limits<double>::infinity();
  const double left = transfers_.top().first - level_;
  return now_ + std::max(0.0, left) * static_cast<double>(transfers_.size()) / bytes_per_cycle_;
}

size_t FairShare::end_next() {
  const Transfer ended = transfers_.top();
  now_ = next_end();
  level_ = std::max(level_, ended.first);
  transfers_.pop();
  return ended.second;
}

L2Contents::L2Contents(uint64_t capacity_bytes) : capacity_lines_(capacity_bytes / kL2LineBytes) {}

void L2Contents::touch(uint64_t address, uint64_t bytes, Access access, BurstTraffic& traffic) {
  if (bytes == 0) return;
  const uint64_t last_line = (address + bytes - 1) >> kLineShift;
  for (uint64_t line = address >> kLineShift; line <= last_line;) {
    const uint64_t page_number = line / kLinesPerPage;
    const uint32_t first = static_cast<uint32_t>(line % kLinesPerPage);
    const uint32_t last =
        static_cast<uint32_t>(std::min<uint64_t>(last_line - page_number * kLinesPerPage, kLinesPerPage - 1));
    touch_page(page_number, line_bits(first, last), access, traffic);
    line = (page_number + 1) * kLinesPerPage;
  }
}

L2Contents::Page& L2Contents::page_of(uint64_t page_number) {
  const uint64_t number = page_number / kPagesPerChunk;
  if (number != last_number_) {
    std::unique_ptr<Chunk>& chunk = chunks_[number];
    if (chunk == nullptr) chunk = std::make_unique<Chunk>();
    last_chunk_ = chunk.get();
    last_number_ = number;
  }
  return (*last_chunk_)[page_number % kPagesPerChunk];
}

void L2Contents::touch_page(uint64_t page_number, uint32_t lines, Access access, BurstTraffic& traffic) {
  Page& page = page_of(page_number);
  const uint32_t missing = lines & ~page.present;
  const bool stays_outside = access == Access::ReadPast || access == Access::WritePast;
  const uint32_t kept = stays_outside ? lines & page.present : lines;
  if (access == Access::Write || access == Access::WritePast) {
    traffic.write_hit_bytes += line_count(lines & page.present) * kL2LineBytes;
    if (stays_outside) traffic.hbm_write_bytes += line_count(missing) * kL2LineBytes;
    if (kept != 0 && page.written == 0) written_.push_back(page_number);
    page.written |= kept;
  } else {
    traffic.hit_bytes += line_count(lines & page.present) * kL2LineBytes;
    traffic.hbm_read_bytes += line_count(missing) * kL2LineBytes;
    traffic.lost_bytes += line_count(missing & page.left) * kL2LineBytes;
    if (kept != 0 && page.present == 0) clean_.push_back(page_number);
  }
  if (stays_outside) return;
  page.present |= lines;
  used_lines_ += line_count(missing);
  if (used_lines_ > capacity_lines_) make_room(traffic);
}

void L2Contents::make_room(BurstTraffic& traffic) {
  while (used_lines_ > capacity_lines_) {
    const bool is_written = !written_.empty();
    std::deque<uint64_t>& queue = is_written ? written_ : clean_;
    if (queue.empty()) return;
    Page& page = page_of(queue.front());
    queue.pop_front();
    if (!is_written && page.written != 0) continue;
    traffic.hbm_write_bytes += line_count(page.written) * kL2LineBytes;
    used_lines_ -= line_count(page.present);
    page = {0, 0, page.left | page.present};
  }
}

uint32_t SharedReads::note(size_t core, uint64_t address) {
  Last& last = last_[core];
  const uint64_t place = last.addresses[0];
  const uint64_t gone = last.addresses[1];
  if (gone != ~0ull) {
    const auto found = readers_.find(gone);
    if (--found->second == 0) readers_.erase(found);
  }
  last = {{address, place}};
  ++readers_[address];
  // A core that reads one address again and again is one reader.
  if (place == address) return 1;
  const auto found = readers_.find(place);
  return found == readers_.end() ? 1 : found->second;
}

}  // namespace opkit
