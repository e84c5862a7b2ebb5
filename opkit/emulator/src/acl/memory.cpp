#include "acl/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "acl/caller.h"
#include "acl/memory_check.h"
#include "core/log.h"
#include "opkit/device_memory.h"

namespace opkit::acl {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kAlignment = 64;         // Source: runtime API, aclrtMalloc
constexpr uint64_t kDataBlock = 32;         // sizes are rounded up to it. Source: the same
constexpr uint64_t kDevicePage = 2u << 20;  // of what is over 1 MB. Source: the same, aclrtMemMallocPolicy
constexpr uint8_t kRedZone = 0xA9;          // fills a mapping around its allocation
constexpr uint8_t kPageRest = 0xFF;         // the same, what may be read: NaN, so that no result is right that uses it
constexpr size_t kFreedKept = 4096;         // ranges, not bytes: only address space is kept

uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

std::string name_of(const Allocation& allocation) {
  const std::string text = "an allocation of " + std::to_string(allocation.bytes) + " bytes";
  if (allocation.usable_bytes == allocation.bytes) return text;
  return text + " (rounded up to " + std::to_string(allocation.usable_bytes) + ")";
}

void publish(const Allocation& allocation, int64_t sign) {
  const auto bytes = sign * static_cast<int64_t>(allocation.usable_bytes);
  publish_memory(0, bytes, bytes);
}

std::vector<GmRange> named_ranges(const std::map<uint64_t, Allocation>& allocations, const char* suffix = "") {
  std::vector<GmRange> ranges;
  ranges.reserve(allocations.size());
  for (const auto& [begin, allocation] : allocations) {
    ranges.push_back({begin, begin + allocation.usable_bytes, true, name_of(allocation) + suffix,
                      allocation.written.get(), allocation.usable_bytes - allocation.bytes,
                      allocation.page_bytes - allocation.usable_bytes});
  }
  return ranges;
}

}  // namespace

void* Memory::allocate_device(size_t bytes, std::optional<uint8_t> fill, bool is_followed) {
  if (bytes > UINT64_MAX / 2) return nullptr;
  Allocation allocation;
  allocation.bytes = bytes;
  allocation.usable_bytes = round_up(bytes, kDataBlock);
  const bool has_page = Device::get().config().chip_bounds;
  allocation.page_bytes = has_page ? round_up(bytes, kDevicePage) : allocation.usable_bytes;
  // The end of the allocation lies as near to the guard page behind it as its alignment allows.
  const uint64_t inner = round_up(round_up(allocation.page_bytes, kAlignment), kPage);
  allocation.mapping_bytes = inner + 2 * kPage;
  void* mapped = mmap(nullptr, allocation.mapping_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  allocation.mapping = reinterpret_cast<uint64_t>(mapped);
  const uint64_t inner_begin = allocation.mapping + kPage;
  if (mprotect(reinterpret_cast<void*>(inner_begin), inner, PROT_READ | PROT_WRITE) != 0) {
    munmap(mapped, allocation.mapping_bytes);
    return nullptr;
  }
  allocation.begin = inner_begin + inner - round_up(allocation.page_bytes, kAlignment);
  const uint64_t end = allocation.begin + allocation.usable_bytes;
  allocation.red_zone = has_page ? kPageRest : kRedZone;
  std::memset(reinterpret_cast<void*>(inner_begin), allocation.red_zone, allocation.begin - inner_begin);
  std::memset(reinterpret_cast<void*>(end), allocation.red_zone, inner_begin + inner - end);
  if (fill) std::memset(reinterpret_cast<void*>(allocation.begin), *fill, allocation.usable_bytes);
  allocation.caller = Caller::current();
  if (is_followed) allocation.written = std::make_shared<WrittenBits>(allocation.usable_bytes, fill.value_or(0));
  device_[allocation.begin] = allocation;
  publish(allocation, 1);
  return reinterpret_cast<void*>(allocation.begin);
}

void* Memory::allocate_host(size_t bytes) {
  if (bytes > SIZE_MAX - kAlignment) return nullptr;
  void* pointer = std::aligned_alloc(kAlignment, round_up(bytes, kAlignment));
  if (pointer == nullptr) return nullptr;
  Allocation allocation;
  allocation.begin = reinterpret_cast<uint64_t>(pointer);
  allocation.bytes = allocation.usable_bytes = allocation.page_bytes = bytes;
  host_[allocation.begin] = allocation;
  freed_host_.erase(allocation.begin);
  return pointer;
}

aclError Memory::free_device(void* pointer) {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  const auto found = device_.find(address);
  if (found != device_.end()) {
    report_unused(found->second);
    publish(found->second, -1);
    retire(found->second);
    device_.erase(found);
    return ACL_SUCCESS;
  }
  const Allocation* allocation = nullptr;
  switch (side_of(pointer, &allocation)) {
    case Side::Freed:
      return fail_memory("MEM-FREE", "aclrtFree", "free each allocation once", "%p was freed before (double free)",
                         pointer);
    case Side::Host:
      return fail_memory("MEM-FREE", "aclrtFree", "pass what aclrtMalloc returned",
                         "%p is host memory; free it with aclrtFreeHost", pointer);
    case Side::Device:
      if (allocation == nullptr) {
        return fail_memory("MEM-FREE", "aclrtFree", "pass what aclrtMalloc returned",
                           "%p is memory of a tensor, not what aclrtMalloc returned", pointer);
      }
      return fail_memory("MEM-FREE", "aclrtFree", "pass what aclrtMalloc returned",
                         "%p lies %llu bytes behind the start of its allocation", pointer,
                         static_cast<unsigned long long>(address - allocation->begin));
    default:
      return fail_memory("MEM-FREE", "aclrtFree", "pass what aclrtMalloc returned",
                         "%p is not what aclrtMalloc returned", pointer);
  }
}

aclError Memory::free_host(void* pointer) {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  const auto found = host_.find(address);
  if (found != host_.end()) {
    freed_host_.insert(address);
    host_.erase(found);
    std::free(pointer);
    return ACL_SUCCESS;
  }
  const char* reason = "is not what aclrtMallocHost returned";
  const Side side = side_of(pointer);
  if (side == Side::Freed) reason = "is device memory, and was freed before";
  if (freed_host_.count(address) != 0) reason = "was freed before (double free)";
  if (side == Side::Device) reason = "is device memory; free it with aclrtFree";
  return fail_memory("MEM-FREE", "aclrtFreeHost", "free each allocation once, with the function of its kind", "%p %s",
                     pointer, reason);
}

void Memory::free_all_device() {
  for (const auto& entry : device_) {
    publish(entry.second, -1);
    retire(entry.second);
  }
  device_.clear();
}

void Memory::retire(const Allocation& allocation) {
  // New pages without access in place of the old: gives the bytes back, keeps the addresses.
  mmap(reinterpret_cast<void*>(allocation.mapping), allocation.mapping_bytes, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  freed_[allocation.begin] = allocation;
  freed_[allocation.begin].written = nullptr;
  freed_order_.push_back(allocation.begin);
  if (freed_order_.size() <= kFreedKept) return;
  const auto oldest = freed_.find(freed_order_.front());
  freed_order_.pop_front();
  if (oldest == freed_.end()) return;
  munmap(reinterpret_cast<void*>(oldest->second.mapping), oldest->second.mapping_bytes);
  freed_.erase(oldest);
}

const Allocation* Memory::find(const Map& map, uint64_t address) {
  auto after = map.upper_bound(address);
  if (after == map.begin()) return nullptr;
  const Allocation& candidate = (--after)->second;
  return address < candidate.begin + std::max<uint64_t>(candidate.usable_bytes, 1) ? &candidate : nullptr;
}

Side Memory::side_of(const void* pointer, const Allocation** allocation) const {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  const Allocation* found = nullptr;
  Side side = Side::Unknown;
  if ((found = find(device_, address)) != nullptr) {
    side = Side::Device;
  } else if ((found = find(host_, address)) != nullptr) {
    side = Side::Host;
  } else if ((found = find(freed_, address)) != nullptr) {
    side = Side::Freed;
  } else if (opkit_memory_device_of(pointer) >= 0) {
    side = Side::Device;
  }
  if (allocation != nullptr) *allocation = found;
  return side;
}

std::vector<GmRange> Memory::device_ranges() const { return named_ranges(device_); }

std::vector<GmRange> Memory::freed_ranges() const { return named_ranges(freed_); }

std::vector<GmRange> Memory::host_ranges() const { return named_ranges(host_, " of aclrtMallocHost"); }

void Memory::note_copy(const void* destination, const void* source, size_t bytes) {
  const auto from = reinterpret_cast<uint64_t>(source);
  const auto to = reinterpret_cast<uint64_t>(destination);
  const Allocation* read = find(device_, from);
  const Allocation* written = find(device_, to);
  if (read != nullptr && read->written != nullptr) read->written->touch();
  if (written == nullptr || written->written == nullptr) return;
  if (read == nullptr || read->written == nullptr) return note_write(destination, bytes);
  written->written->touch();
  written->written->carry(*read->written, from - read->begin, from - read->begin + bytes, to - written->begin);
}

void Memory::note_write(const void* destination, size_t bytes) {
  const auto to = reinterpret_cast<uint64_t>(destination);
  const Allocation* written = find(device_, to);
  if (written == nullptr || written->written == nullptr) return;
  written->written->touch();
  written->written->set(to - written->begin, to - written->begin + bytes);
}

std::string Memory::overrun_text() const {
  for (const auto& [begin, allocation] : device_) {
    const auto* front = reinterpret_cast<const uint8_t*>(allocation.mapping + kPage);
    const auto* first = reinterpret_cast<const uint8_t*>(begin);
    const auto* end = first + allocation.usable_bytes;
    const auto* back = reinterpret_cast<const uint8_t*>(allocation.mapping + allocation.mapping_bytes - kPage);
    const auto is_intact = [&allocation](uint8_t byte) { return byte == allocation.red_zone; };
    // The nearest byte on either side.
    const auto* before = std::find_if_not(std::reverse_iterator(first), std::reverse_iterator(front), is_intact).base();
    const auto* behind = std::find_if_not(end, back, is_intact);
    if (before != front) return std::to_string(first - before + 1) + " bytes in front of " + name_of(allocation);
    if (behind != back) return std::to_string(behind - end) + " bytes behind the end of " + name_of(allocation);
  }
  return "";
}

}  // namespace opkit::acl
