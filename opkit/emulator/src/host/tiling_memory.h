/// The memory that a tiling function writes to: zero at each call, at the price of the pages that were written.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

namespace opkit::host {

constexpr size_t kTilingCapacity = 64 * 1024;  // ours: the documents name no limit

class TilingMemory {
 public:
  TilingMemory() {
    void* mapped = mmap(nullptr, kTilingCapacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<uint8_t*>(mapped);
    // A huge page would tell nothing of what was written.
    madvise(data_, kTilingCapacity, MADV_NOHUGEPAGE);
  }
  ~TilingMemory() { munmap(data_, kTilingCapacity); }
  TilingMemory(const TilingMemory&) = delete;
  TilingMemory& operator=(const TilingMemory&) = delete;

  uint8_t* data() { return data_; }

  /// Zeroes everything, also what a tiling function wrote behind the size that it set.
  void clear() {
    std::memset(data_, 0, kPageBytes);
    unsigned char resident[kPages - 1];
    const bool is_known = mincore(data_ + kPageBytes, kTilingCapacity - kPageBytes, resident) == 0;
    for (size_t i = 0; i + 1 < kPages; ++i) {
      if (!is_known || (resident[i] & 1) != 0) std::memset(data_ + (i + 1) * kPageBytes, 0, kPageBytes);
    }
  }

 private:
  static constexpr size_t kPageBytes = 4096;
  static constexpr size_t kPages = kTilingCapacity / kPageBytes;

  uint8_t* data_;
};

}  // namespace opkit::host
