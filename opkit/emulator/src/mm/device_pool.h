/// The memory of one device: segments of its address range, cut into blocks that are kept for reuse.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/launch.h"
#include "opkit/device_memory.h"

namespace opkit::mm {

constexpr uint64_t kAlignment = 512;          ///< of addresses and sizes; td::mm promises 256
constexpr uint64_t kSmallBlock = 1 << 20;     ///< up to here blocks share small segments
constexpr uint64_t kSmallSegment = 2 << 20;   ///< as PyTorch's allocators, so that figures can be compared
constexpr uint64_t kLargeSegment = 20 << 20;  ///< of blocks up to kOwnSegment
constexpr uint64_t kOwnSegment = 10 << 20;    ///< from here on a block has a segment of its own
constexpr uint64_t kSegmentRounding = 2 << 20;

struct Segment;

struct Block {
  uint64_t begin = 0;
  uint64_t bytes = 0;
  uint64_t requested = 0;
  uint64_t stream = 0;
  bool is_used = false;
  Segment* segment = nullptr;
  Block* before = nullptr;
  Block* behind = nullptr;
  std::string stack;
};

struct Segment {
  uint64_t begin = 0;
  uint64_t bytes = 0;
  uint64_t stream = 0;
  bool is_small = false;
  Block* first = nullptr;
};

/// One line of the history: PyTorch's names of actions.
struct TraceEntry {
  const char* action;
  int32_t device;
  uint64_t address;
  uint64_t bytes;
  uint64_t stream;
  uint64_t time_us;
  std::string stack;
};

/// What all devices share of the recording.
struct Recorder {
  uint64_t limit = 0;
  const char* (*stack)(void) = nullptr;
};

class DevicePool {
 public:
  DevicePool(int32_t device, uint64_t total_bytes);
  ~DevicePool();
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;

  void* allocate(uint64_t bytes, uint64_t stream, const Recorder& recorder, opkit_memory_shortage& shortage);
  bool release(void* pointer, const Recorder& recorder);
  bool owns(const void* pointer) const;
  uint64_t size_of(const void* pointer) const;
  void release_cache(const Recorder& recorder);
  bool configure(int64_t max_split_bytes, double collect_above, double fraction);
  opkit_memory_figures figures() const;
  void reset_peaks();
  void reset_totals();
  uint64_t free_bytes() const;
  uint64_t total_bytes() const { return total_bytes_; }
  /// Adds what is handed out, each rounded up as kernels may touch it.
  void append_used(std::vector<GmRange>& ranges) const;
  void describe(std::string& segments, std::string& trace) const;
  void trim_trace(uint64_t limit);

 private:
  struct BySize {
    bool operator()(const Block* a, const Block* b) const;
  };
  using FreeList = std::set<Block*, BySize>;

  Block* find_free(uint64_t bytes, bool is_small, uint64_t stream);
  Block* add_segment(uint64_t bytes, bool is_small, uint64_t stream, const Recorder& recorder);
  void drop_segment(Segment* segment, const Recorder& recorder);
  void split(Block* block, uint64_t bytes);
  Block* merge(Block* block);
  void collect(uint64_t wanted, const Recorder& recorder);
  void learn(uint64_t bytes);
  void note(const char* action, uint64_t address, uint64_t bytes, uint64_t stream, const Recorder& recorder,
            const std::string& stack = {});
  uint64_t reserve_range(uint64_t bytes);
  void return_range(uint64_t begin, uint64_t bytes);
  bool may_split(uint64_t block_bytes, uint64_t bytes, bool is_small) const;
  void count_split(const Block* block, int64_t sign);

  const int32_t device_;
  const uint64_t total_bytes_;
  uint64_t base_ = 0;
  uint64_t limit_bytes_;
  uint64_t max_split_bytes_ = UINT64_MAX;
  double collect_above_ = 0;
  mutable std::mutex lock_;
  std::map<uint64_t, uint64_t> unreserved_;  ///< ranges of the address space that no segment has
  std::set<Segment*> segments_;
  FreeList free_[2];  ///< large, small
  std::unordered_map<uint64_t, Block*> used_;
  std::unordered_map<uint64_t, uint64_t> follows_;  ///< by size: the size that came next, the last time
  uint64_t last_bytes_ = 0;
  std::deque<TraceEntry> trace_;
  opkit_memory_figures figures_{};
};

/// What every device has handed out, by address.
std::vector<GmRange> used_ranges();

}  // namespace opkit::mm
