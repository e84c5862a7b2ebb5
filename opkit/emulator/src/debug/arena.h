/// Memory that only grows and stays where it is: the first part lies in RAM, the rest in a file without a name.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

namespace opkit::debug {

/// Offsets into an arena are 1 or more; 0 stands for none.
class Arena {
 public:
  /// Nothing is reserved before the first `add`.
  explicit Arena(uint64_t limit_bytes, std::string spill_folder = "")
      : limit_bytes_(limit_bytes), spill_folder_(std::move(spill_folder)) {}
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Room for that many bytes, at a multiple of 8; 0 when the limit is reached.
  uint64_t add(uint64_t bytes) {
    const uint64_t begin = (used_ + 7) & ~uint64_t{7};
    if (begin + bytes > committed_ && !grow(begin + bytes)) return 0;
    used_ = begin + bytes;
    return begin;
  }
  uint64_t add(const void* data, uint64_t bytes) {
    const uint64_t at_offset = add(bytes);
    if (at_offset != 0 && bytes != 0) std::memcpy(at(at_offset), data, bytes);
    return at_offset;
  }

  uint8_t* at(uint64_t offset) { return base_ + offset; }
  const uint8_t* at(uint64_t offset) const { return base_ + offset; }
  uint64_t used() const { return used_; }
  bool is_full() const { return is_full_; }

 private:
  bool grow(uint64_t bytes);

  uint64_t limit_bytes_;
  std::string spill_folder_;
  uint8_t* base_ = nullptr;
  uint64_t used_ = 8;
  uint64_t committed_ = 0;
  bool is_full_ = false;
  int file_ = -1;
  uint64_t file_begin_ = 0;
};

}  // namespace opkit::debug
