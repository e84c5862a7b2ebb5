/// Memory of the device for programs that describe tensors: allocation, preparation of host data, reuse, and copies by
/// the modelled DMA engines. The memory is that of opkit/device_memory.h, which torch's allocator uses too.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "opkit/device_memory.h"

namespace td::mm {

/// Sizes of what is cached apart: below 1 KiB, up to 2 MiB, and above.
enum CacheLevel { LEVEL_0 = 0, LEVEL_1 = 1, LEVEL_2 = 2 };
enum class DataType { FLOAT32, FLOAT16, BFLOAT16, INT32, INT8, UINT8, INT64 };
enum class MemoryFormat { CONTIGUOUS, NZ };
/// When the target of a reuse gives its own memory back: with its last user, or at once.
enum ReuseStrategy { REUSE_LAZY = 0, REUSE_EAGER = 1 };
enum PipelinePriority { PRIORITY_LOW = 0, PRIORITY_NORMAL = 1, PRIORITY_HIGH = 2 };

constexpr int64_t kAlignment = 256;

inline int64_t size_of(DataType type) {
  switch (type) {
    case DataType::INT64: return 8;
    case DataType::FLOAT32:
    case DataType::INT32: return 4;
    case DataType::FLOAT16:
    case DataType::BFLOAT16: return 2;
    default: return 1;
  }
}

struct TensorDesc {
  DataType dtype = DataType::FLOAT32;
  std::vector<int64_t> shape;
  MemoryFormat format = MemoryFormat::CONTIGUOUS;
  int64_t alignment = kAlignment;

  /// Throws std::invalid_argument for a negative size, or an alignment that no allocation has.
  int64_t bytes() const {
    if (alignment <= 0 || 512 % alignment != 0) {
      throw std::invalid_argument("TensorDesc: alignment " + std::to_string(alignment) + " does not divide 512");
    }
    int64_t count = size_of(dtype);
    for (const int64_t size : shape) {
      if (size < 0) throw std::invalid_argument("TensorDesc: a size is negative: " + std::to_string(size));
      if (size != 0 && count > INT64_MAX / size) throw std::invalid_argument("TensorDesc: more bytes than there are");
      count *= size;
    }
    return count;
  }
};

/// A tensor's memory; given back with its last user.
class TensorMemory {
 public:
  void* data() const { return data_; }
  const TensorDesc& desc() const { return desc_; }
  int64_t bytes() const { return bytes_; }
  /// Whether this is the caller's memory, which nothing was copied from.
  bool is_zero_copy() const { return owner_ == nullptr; }

 private:
  friend class MemoryManager;
  void* data_ = nullptr;
  int64_t bytes_ = 0;
  TensorDesc desc_;
  std::shared_ptr<void> owner_;
};
using TensorMemoryPtr = std::shared_ptr<TensorMemory>;

/// Bytes from the beginning of `src` to `offset` bytes behind that of `dst`.
struct DMATask {
  TensorMemoryPtr src;
  TensorMemoryPtr dst;
  int64_t offset = 0;
  int64_t size = 0;  ///< bytes; 0: all of `src`
};

/// Where a copy stands. Times are the model's, in microseconds from the first copy on.
struct PipelineStatus {
  uint64_t task = 0;
  bool is_done = false;
  int engine = -1;
  double start_us = 0;
  double end_us = 0;
};

struct LevelStatistics {
  uint64_t allocations = 0;
  uint64_t bytes = 0;
};

struct Statistics {
  LevelStatistics levels[3];
  uint64_t cache_hits = 0;         ///< allocations that memory kept from before served
  uint64_t predictions = 0;        ///< allocations whose size the history had named
  uint64_t right_predictions = 0;  ///< of these, those that it had named right
  uint64_t copies = 0;
  uint64_t copies_avoided = 0;  ///< tensors prepared where they lay
  uint64_t reused = 0;
  double copy_us = 0;    ///< modelled time of all scheduled copies
  double hidden_us = 0;  ///< of that, what ran while another copy or a note_compute did
};

class MemoryManager {
 public:
  using CacheLevel = td::mm::CacheLevel;
  static constexpr CacheLevel LEVEL_0 = td::mm::LEVEL_0, LEVEL_1 = td::mm::LEVEL_1, LEVEL_2 = td::mm::LEVEL_2;

  static MemoryManager& instance() {
    static auto* manager = new MemoryManager();
    return *manager;
  }

  /// New memory. `level` says which tensors it is counted with; `zero_copy` has a meaning for prepare_tensor only.
  /// Throws std::bad_alloc when the device is full.
  TensorMemoryPtr allocate_tensor(const TensorDesc& desc, CacheLevel level = td::mm::LEVEL_1, bool zero_copy = true) {
    (void)zero_copy;
    auto memory = std::make_shared<TensorMemory>();
    memory->desc_ = desc;
    memory->bytes_ = desc.bytes();
    void* data = opkit_memory_allocate(device_, static_cast<uint64_t>(std::max<int64_t>(memory->bytes_, 1)), 0);
    if (data == nullptr) throw std::bad_alloc();
    memory->data_ = data;
    memory->owner_ = std::shared_ptr<void>(data, [](void* pointer) { opkit_memory_free(pointer); });
    const std::lock_guard<std::mutex> guard(lock_);
    ++levels_[level].allocations;
    levels_[level].bytes += static_cast<uint64_t>(memory->bytes_);
    return memory;
  }

  /// The caller's data as memory of the device: as it lies where it is aligned (the emulated device reads the host's
  /// memory), else in a copy.
  TensorMemoryPtr prepare_tensor(void* data, const TensorDesc& desc, CacheLevel level = td::mm::LEVEL_1,
                                 bool zero_copy = true) {
    if (data == nullptr) throw std::invalid_argument("prepare_tensor: the data is null");
    const int64_t bytes = desc.bytes();
    const bool is_aligned = reinterpret_cast<uintptr_t>(data) % 32 == 0;
    if (zero_copy && is_aligned) {
      auto memory = std::make_shared<TensorMemory>();
      memory->data_ = data;
      memory->bytes_ = bytes;
      memory->desc_ = desc;
      const std::lock_guard<std::mutex> guard(lock_);
      ++copies_avoided_;
      return memory;
    }
    TensorMemoryPtr memory = allocate_tensor(desc, level);
    std::memcpy(memory->data_, data, static_cast<size_t>(bytes));
    const std::lock_guard<std::mutex> guard(lock_);
    ++copies_;
    return memory;
  }

  /// Lets `dst` have the memory of `src`: what `dst` held is given back.
  void reuse_memory(TensorMemoryPtr src, TensorMemoryPtr dst, ReuseStrategy strategy = REUSE_LAZY) {
    if (src == nullptr || dst == nullptr) throw std::invalid_argument("reuse_memory: a tensor is null");
    if (src->bytes_ < dst->bytes_) {
      throw std::invalid_argument("reuse_memory: " + std::to_string(src->bytes_) + " bytes are fewer than " +
                                  std::to_string(dst->bytes_));
    }
    std::shared_ptr<void> before = dst->owner_;
    dst->owner_ = src->owner_;
    dst->data_ = src->data_;
    const std::lock_guard<std::mutex> guard(lock_);
    ++reused_;
    if (strategy == REUSE_LAZY && before != nullptr) retired_.push_back(std::move(before));
    if (retired_.size() > 64 || strategy == REUSE_EAGER) retired_.clear();
  }

  /// Queues a copy. Copies of higher priority go first, those of one priority in order, on two engines; `wait` or
  /// `status` of a copy runs those that are before it.
  PipelineStatus schedule_dma(const DMATask& task, PipelinePriority priority = PRIORITY_HIGH) {
    if (task.src == nullptr || task.dst == nullptr) throw std::invalid_argument("schedule_dma: a tensor is null");
    const int64_t bytes = task.size == 0 ? task.src->bytes_ : task.size;
    if (bytes < 0 || task.offset < 0 || bytes > task.src->bytes_ || task.offset + bytes > task.dst->bytes_) {
      throw std::out_of_range("schedule_dma: " + std::to_string(bytes) + " bytes at " + std::to_string(task.offset) +
                              " leave a tensor of " + std::to_string(task.dst->bytes_));
    }
    const std::lock_guard<std::mutex> guard(lock_);
    PipelineStatus status;
    status.task = ++last_task_;
    queue_.emplace(std::make_pair(-static_cast<int>(priority), status.task), Queued{task, bytes});
    statuses_[status.task] = status;
    return status;
  }

  /// Runs every queued copy, and returns how one of them went.
  PipelineStatus wait(const PipelineStatus& status) {
    const std::lock_guard<std::mutex> guard(lock_);
    drain();
    const auto found = statuses_.find(status.task);
    if (found == statuses_.end()) throw std::invalid_argument("wait: there is no such copy");
    return found->second;
  }

  /// Says that cores compute for so long, from now on, on the modelled clock: copies meanwhile are hidden.
  void note_compute(double duration_us) {
    const std::lock_guard<std::mutex> guard(lock_);
    compute_end_us_ = std::max(compute_end_us_, std::min(engines_[0], engines_[1])) + duration_us;
  }

  /// Copies to the caller's memory, behind what is queued; nothing where it lies there already.
  void copy_to_host(const TensorMemoryPtr& memory, void* data) {
    if (memory == nullptr || data == nullptr) throw std::invalid_argument("copy_to_host: a pointer is null");
    const std::lock_guard<std::mutex> guard(lock_);
    drain();
    if (memory->data_ == data) {
      ++copies_avoided_;
      return;
    }
    std::memcpy(data, memory->data_, static_cast<size_t>(memory->bytes_));
    ++copies_;
  }

  Statistics statistics() {
    const std::lock_guard<std::mutex> guard(lock_);
    opkit_memory_figures figures;
    opkit_memory_get_figures(device_, &figures);
    Statistics all;
    std::copy(std::begin(levels_), std::end(levels_), std::begin(all.levels));
    all.cache_hits = static_cast<uint64_t>(figures.cache_hits);
    all.predictions = static_cast<uint64_t>(figures.predictions);
    all.right_predictions = static_cast<uint64_t>(figures.right_predictions);
    all.copies = copies_;
    all.copies_avoided = copies_avoided_;
    all.reused = reused_;
    all.copy_us = copy_us_;
    all.hidden_us = hidden_us_;
    return all;
  }

 private:
  struct Queued {
    DMATask task;
    int64_t bytes;
  };

  MemoryManager() = default;

  // The model: a copy between host and device costs its start and its bytes. Source: guess, PCIe 4.0 with 16 lanes.
  static constexpr double kStartUs = 2.0;
  static constexpr double kBytesPerUs = 24000.0;

  void drain() {
    for (const auto& [key, queued] : queue_) {
      char* to = static_cast<char*>(queued.task.dst->data_) + queued.task.offset;
      std::memmove(to, queued.task.src->data_, static_cast<size_t>(queued.bytes));
      ++copies_;
      const int engine = engines_[0] <= engines_[1] ? 0 : 1;
      PipelineStatus& status = statuses_[key.second];
      const double duration = kStartUs + static_cast<double>(queued.bytes) / kBytesPerUs;
      status.is_done = true;
      status.engine = engine;
      status.start_us = engines_[engine];
      status.end_us = status.start_us + duration;
      const double busy_until = std::max(compute_end_us_, engines_[1 - engine]);
      hidden_us_ += std::max(0.0, std::min(status.end_us, busy_until) - status.start_us);
      copy_us_ += duration;
      engines_[engine] = status.end_us;
    }
    queue_.clear();
    while (statuses_.size() > kStatusesKept) statuses_.erase(statuses_.begin());
  }

  static constexpr size_t kStatusesKept = 4096;
  const int32_t device_ = 0;
  std::mutex lock_;
  LevelStatistics levels_[3];
  uint64_t copies_ = 0, copies_avoided_ = 0, reused_ = 0, last_task_ = 0;
  double copy_us_ = 0, hidden_us_ = 0, compute_end_us_ = 0;
  double engines_[2] = {0, 0};
  std::map<std::pair<int, uint64_t>, Queued> queue_;
  std::map<uint64_t, PipelineStatus> statuses_;
  std::vector<std::shared_ptr<void>> retired_;
};

inline TensorMemoryPtr allocate_tensor(const TensorDesc& desc, CacheLevel level = LEVEL_1, bool zero_copy = true) {
  return MemoryManager::instance().allocate_tensor(desc, level, zero_copy);
}
inline TensorMemoryPtr prepare_tensor(void* data, const TensorDesc& desc, CacheLevel level = LEVEL_1) {
  return MemoryManager::instance().prepare_tensor(data, desc, level);
}
inline void copy_to_host(const TensorMemoryPtr& memory, void* data) {
  MemoryManager::instance().copy_to_host(memory, data);
}

}  // namespace td::mm
