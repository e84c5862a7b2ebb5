#include "debug/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace opkit::debug {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{64} << 20;
constexpr uint64_t kInMemoryBytes = uint64_t{1} << 30;

/// A new file that goes away with its descriptor; negative where the folder takes none.
int nameless_file(const std::string& folder) {
  std::string path = folder + "/opkit-recording-XXXXXX";
  const int file = mkstemp(path.data());
  if (file >= 0) unlink(path.c_str());
  return file;
}

}  // namespace

Arena::~Arena() {
  if (base_ != nullptr) munmap(base_, limit_bytes_);
  if (file_ >= 0) close(file_);
}

bool Arena::grow(uint64_t bytes) {
  if (is_full_ || bytes > limit_bytes_) {
    is_full_ = true;
    return false;
  }
  if (base_ == nullptr) {
    limit_bytes_ = (limit_bytes_ + kPieceBytes - 1) / kPieceBytes * kPieceBytes;
    void* mapped = mmap(nullptr, limit_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) {
      is_full_ = true;
      return false;
    }
    base_ = static_cast<uint8_t*>(mapped);
  }
  while (committed_ < bytes) {
    uint8_t* piece = base_ + committed_;
    if (committed_ < kInMemoryBytes || spill_folder_.empty()) {
      is_full_ = mprotect(piece, kPieceBytes, PROT_READ | PROT_WRITE) != 0;
      // Pages of 4 KiB would cost more time than what is copied into them.
      if (!is_full_) madvise(piece, kPieceBytes, MADV_HUGEPAGE);
    } else {
      if (file_ < 0) {
        file_ = nameless_file(spill_folder_);
        file_begin_ = committed_;
      }
      const auto offset = static_cast<off_t>(committed_ - file_begin_);
      // Room is taken now: a full disk later would be a signal.
      is_full_ = file_ < 0 || posix_fallocate(file_, offset, static_cast<off_t>(kPieceBytes)) != 0 ||
                 mmap(piece, kPieceBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_, offset) == MAP_FAILED;
    }
    if (is_full_) return false;
    committed_ += kPieceBytes;
  }
  return true;
}

}  // namespace opkit::debug
