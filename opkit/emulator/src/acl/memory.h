/// The device's and the host's allocations: where they lie, and whether a range of bytes is one of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "acl/acl_rt.h"
#include "core/launch.h"

namespace opkit::acl {

/// One allocation of either side.
struct Allocation {
  uint64_t begin = 0;
  uint64_t bytes = 0;         ///< as the program asked
  uint64_t usable_bytes = 0;  ///< what the device may touch
  uint64_t mapping = 0;       ///< device: the guard page in front
  uint64_t mapping_bytes = 0;
};

enum class Side : uint8_t { Unknown, Device, Host, Freed };

/// Device memory is mapped between two guard pages, each allocation by itself; what was freed stays reserved, so that a
/// later access is caught and its address is not given out again soon.
class Memory {
 public:
  /// Null when the host has no memory left.
  void* allocate_device(size_t bytes, bool poison);
  void* allocate_host(size_t bytes);
  aclError free_device(void* pointer);
  aclError free_host(void* pointer);
  void free_all_device();

  /// Which side an address belongs to, and its allocation when it is known; memory of the program's own is Unknown.
  Side side_of(const void* pointer, const Allocation** allocation = nullptr) const;

  /// What a kernel may touch, sorted.
  std::vector<GmRange> device_ranges() const;

  /// The first allocation whose surroundings a kernel has written; null when all are intact.
  const Allocation* find_overrun() const;

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
