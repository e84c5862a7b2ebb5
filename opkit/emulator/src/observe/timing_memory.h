/// What all cores share: bandwidth that is used up in time slices, and the contents of L2.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
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

/// Traffic that one burst caused.
struct BurstTraffic {
  uint64_t hit_bytes = 0;
  uint64_t hbm_read_bytes = 0;
  uint64_t hbm_write_bytes = 0;  ///< written lines that left L2 to make room
};

/// Contents of L2 by lines of 128 bytes, kept in pages of 32 lines; the oldest pages leave first, written ones before
/// others, which is the closed form HBM writes = min(W, max(0, R + W - L2 size)) of published Add runs.
class L2Contents {
 public:
  explicit L2Contents(uint64_t capacity_bytes);

  /// `address` is a launch-relative GM address; adds to `traffic`.
  void read(uint64_t address, uint64_t bytes, BurstTraffic& traffic) { touch(address, bytes, false, traffic); }
  void write(uint64_t address, uint64_t bytes, BurstTraffic& traffic) { touch(address, bytes, true, traffic); }

 private:
  struct Page {
    uint32_t present = 0;  ///< bit per line
    uint32_t written = 0;
  };

  void touch(uint64_t address, uint64_t bytes, bool is_write, BurstTraffic& traffic);
  void touch_page(uint64_t page_number, uint32_t lines, bool is_write, BurstTraffic& traffic);
  void make_room(BurstTraffic& traffic);

  uint64_t capacity_lines_;
  uint64_t used_lines_ = 0;
  std::unordered_map<uint64_t, Page> pages_;
  std::deque<uint64_t> clean_;  ///< page numbers, oldest first; a page written since is skipped
  std::deque<uint64_t> written_;
  uint64_t last_number_ = ~0ull;
  Page* last_page_ = nullptr;
};

}  // namespace opkit
