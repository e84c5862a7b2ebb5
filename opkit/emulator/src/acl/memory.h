/// The device's and the host's allocations: where they lie, and whether a range of bytes is one of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "acl/acl_rt.h"
#include "core/launch.h"
#include "observe/written_bits.h"

namespace opkit::acl {

/// One allocation of either side.
struct Allocation {
  uint64_t begin = 0;
  uint64_t bytes = 0;         ///< as the program asked
  uint64_t usable_bytes = 0;  ///< what the device may touch
  uint64_t page_bytes = 0;    ///< what it may read, where the chip's bounds count; else the same
  uint8_t red_zone = 0;       ///< device: what the rest of the mapping is filled with
  uint64_t mapping = 0;       ///< device: the guard page in front
  uint64_t mapping_bytes = 0;
  const void* caller = nullptr;          ///< the program's call that made it
  std::shared_ptr<WrittenBits> written;  ///< device, under checks: what was written, and whether anything was touched
};

enum class Side : uint8_t { Unknown, Device, Host, Freed };

/// Device memory is mapped between two guard pages, each allocation by itself; what was freed stays reserved, so that a
/// later access is caught and its address is not given out again soon.
class Memory {
 public:
  /// Null when the host has no memory left.
  void* allocate_device(size_t bytes, std::optional<uint8_t> fill, bool is_followed);
  void* allocate_host(size_t bytes);
  aclError free_device(void* pointer);
  aclError free_host(void* pointer);
  void free_all_device();

  /// Which side an address belongs to, and its allocation when it is known; memory of the program's own is Unknown.
  /// Memory of a tensor of PyTorch or td::mm is Device, and no allocation of this class.
  Side side_of(const void* pointer, const Allocation** allocation = nullptr) const;

  /// What a kernel may touch, sorted.
  std::vector<GmRange> device_ranges() const;

  /// What it may touch no longer, sorted.
  std::vector<GmRange> freed_ranges() const;

  /// What lies on the host, sorted.
  std::vector<GmRange> host_ranges() const;

  /// A transfer that is about to move bytes or has written them; either end may lie on the host.
  void note_copy(const void* destination, const void* source, size_t bytes);
  void note_write(const void* destination, size_t bytes);

  const std::map<uint64_t, Allocation>& device() const { return device_; }

  /// Where a kernel has written beside an allocation: "5 bytes behind the end of an allocation of 64 bytes"; empty
  /// where nowhere.
  std::string overrun_text() const;

 private:
  using Map = std::map<uint64_t, Allocation>;
  static const Allocation* find(const Map& map, uint64_t address);
  void retire(const Allocation& allocation);

  Map device_;
  Map host_;
  Map freed_;  // device memory only
  std::deque<uint64_t> freed_order_;
  std::set<uint64_t> freed_host_;  // for double frees; the host's allocator gives these addresses out again
};

}  // namespace opkit::acl
