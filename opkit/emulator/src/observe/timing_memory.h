/// What all cores share: bandwidth that is used up in time slices, and the contents of L2.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

namespace opkit {

/// A link of fixed bandwidth. Time is cut into slices; a transfer takes what earlier transfers left of each slice
/// from its start on. Requests need not come in order of time, but those before the window count from its begin.
class SharedBandwidth {
 public:
  explicit SharedBandwidth(double bytes_per_cycle);

  /// Takes `bytes` from `start` on and returns the cycle at which the last of them has passed.
  double take(double start, double bytes);

 private:
  void reach(uint64_t slice);

  double bytes_per_slice_;
  uint64_t window_begin_ = 0;  ///< the oldest slice still kept
  std::vector<float> used_;    ///< ring, by slice modulo its size
};

/// A link whose bandwidth all transfers under way share evenly: those that begin together end together, so cores that
/// read in step stay in step.
class FairShare {
 public:
  static constexpr size_t kNobody = ~size_t{0};

  explicit FairShare(double bytes_per_cycle) : bytes_per_cycle_(bytes_per_cycle) {}

  /// Begins a transfer at `start`; those of a launch begin in order of time. `owner` is given back when it ends.
  void begin(double start, double bytes, size_t owner);
  bool is_idle() const { return transfers_.empty(); }
  /// What a byte of one more transfer would take.
  double cycles_per_byte() const { return static_cast<double>(transfers_.size()) / bytes_per_cycle_; }
  /// When the next transfer ends if no other begins before; infinity when there is none.
  double next_end() const;
  /// Ends that transfer and returns its owner.
  size_t end_next();

 private:
  using Transfer = std::pair<double, size_t>;  // level at which it ends, owner
  void run_to(double cycle);

  double bytes_per_cycle_;
  double now_ = 0;
  double level_ = 0;  ///< bytes that a transfer under way since the begin would have got
  std::priority_queue<Transfer, std::vector<Transfer>, std::greater<Transfer>> transfers_;
};

/// Traffic that one burst caused.
struct BurstTraffic {
  uint64_t hit_bytes = 0;        ///< of what was read, already in L2
  uint64_t write_hit_bytes = 0;  ///< of what was written, already in L2
  uint64_t hbm_read_bytes = 0;
  uint64_t hbm_write_bytes = 0;  ///< written past L2, or written lines that left L2 to make room
  uint64_t lost_bytes = 0;       ///< of hbm_read_bytes, what L2 had held before
};

constexpr uint32_t kL2LineBytes = 128;

/// Contents of L2 by lines of 128 bytes, kept in pages of 32 lines; the oldest pages leave first, written ones before
/// others, which is the closed form HBM writes = min(W, max(0, R + W - L2 size)) of published Add runs.
class L2Contents {
 public:
  explicit L2Contents(uint64_t capacity_bytes);

  enum class Access : uint8_t { Read, Write, ReadPast, WritePast };  ///< Past: lines that are not in L2 stay outside

  /// `address` is a launch-relative GM address; adds to `traffic`.
  void touch(uint64_t address, uint64_t bytes, Access access, BurstTraffic& traffic);

 private:
  struct Page {
    uint32_t present = 0;  ///< bit per line
    uint32_t written = 0;
    uint32_t left = 0;  ///< lines that L2 has held and given up
  };
  /// Neighbouring pages, side by side: what kernels touch is dense, and a page of its own in memory each is slow.
  static constexpr uint64_t kPagesPerChunk = 512;
  using Chunk = std::array<Page, kPagesPerChunk>;

  Page& page_of(uint64_t page_number);
  void touch_page(uint64_t page_number, uint32_t lines, Access access, BurstTraffic& traffic);
  void make_room(BurstTraffic& traffic);

  uint64_t capacity_lines_;
  uint64_t used_lines_ = 0;
  std::unordered_map<uint64_t, std::unique_ptr<Chunk>> chunks_;
  std::deque<uint64_t> clean_;  ///< page numbers, oldest first; a page written since is skipped
  std::deque<uint64_t> written_;
  uint64_t last_number_ = ~0ull;  ///< of a chunk
  Chunk* last_chunk_ = nullptr;
};

/// Which cores read the same addresses in step. Each core's last two reads count, so the first of a group in step and
/// the last see the same number of others.
class SharedReads {
 public:
  explicit SharedReads(size_t core_count) : last_(core_count) {}

  /// Notes a read that begins at `address` and returns how many cores, this one included, are at its place.
  uint32_t note(size_t core, uint64_t address);

 private:
  struct Last {
    uint64_t addresses[2] = {~0ull, ~0ull};  ///< the last read, the one before
  };
  std::vector<Last> last_;
  std::unordered_map<uint64_t, uint32_t> readers_;  ///< by address: in how many cores' last two it is
};

}  // namespace opkit
