// The devices' memories, as C callers see them.
#include "opkit/device_memory.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "core/chip.h"
#include "core/launch.h"
#include "mm/device_pool.h"

namespace opkit::mm {
namespace {

constexpr int32_t kMaxDevices = 64;

/// Pools are made when a device is first asked of, and never destroyed: tensors may outlive everything else.
class Devices {
 public:
  static Devices& get() {
    static auto* devices = new Devices();
    return *devices;
  }

  DevicePool* pool(int32_t device) {
    if (device < 0 || device >= count.load()) return nullptr;
    if (DevicePool* made = pools_[device].load()) return made;
    const std::lock_guard<std::mutex> guard(lock_);
    if (pools_[device].load() == nullptr) {
      const auto bytes = static_cast<uint64_t>(Device::get().chip().number("memory.hbm_bytes"));
      pools_[device].store(new DevicePool(device, bytes));
    }
    return pools_[device].load();
  }

  DevicePool* pool_of(const void* pointer) const {
    for (int32_t i = 0; i < kMaxDevices; ++i) {
      DevicePool* pool = pools_[i].load(std::memory_order_acquire);
      if (pool != nullptr && pool->owns(pointer)) return pool;
    }
    return nullptr;
  }

  int32_t device_of(const void* pointer) const {
    for (int32_t i = 0; i < kMaxDevices; ++i) {
      const DevicePool* pool = pools_[i].load(std::memory_order_acquire);
      if (pool != nullptr && pool->owns(pointer)) return i;
    }
    return -1;
  }

  void append_used(std::vector<GmRange>& ranges) const {
    for (const std::atomic<DevicePool*>& made : pools_) {
      if (const DevicePool* pool = made.load(std::memory_order_acquire)) pool->append_used(ranges);
    }
  }

  std::atomic<int32_t> count{1};
  Recorder recorder;

 private:
  std::mutex lock_;
  std::atomic<DevicePool*> pools_[kMaxDevices] = {};
};

thread_local opkit_memory_shortage thread_shortage{};

}  // namespace

std::vector<GmRange> used_ranges() {
  std::vector<GmRange> ranges;
  Devices::get().append_used(ranges);
  std::sort(ranges.begin(), ranges.end(), [](const GmRange& a, const GmRange& b) { return a.begin < b.begin; });
  return ranges;
}

}  // namespace opkit::mm

using opkit::mm::DevicePool;
using opkit::mm::Devices;

int32_t opkit_memory_devices(void) { return Devices::get().count.load(); }

int32_t opkit_memory_set_devices(int32_t count) {
  if (count < 0 || count > opkit::mm::kMaxDevices) return -1;
  Devices::get().count.store(count);
  return 0;
}

void* opkit_memory_allocate(int32_t device, uint64_t bytes, uint64_t stream) {
  Devices& devices = Devices::get();
  DevicePool* pool = devices.pool(device);
  return pool == nullptr ? nullptr : pool->allocate(bytes, stream, devices.recorder, opkit::mm::thread_shortage);
}

int32_t opkit_memory_free(void* pointer) {
  Devices& devices = Devices::get();
  DevicePool* pool = devices.pool_of(pointer);
  return pool != nullptr && pool->release(pointer, devices.recorder) ? 0 : -1;
}

int32_t opkit_memory_device_of(const void* pointer) { return Devices::get().device_of(pointer); }

uint64_t opkit_memory_size_of(const void* pointer) {
  const DevicePool* pool = Devices::get().pool_of(pointer);
  return pool == nullptr ? 0 : pool->size_of(pointer);
}

void opkit_memory_shortage_of_thread(opkit_memory_shortage* shortage) { *shortage = opkit::mm::thread_shortage; }

void opkit_memory_get_figures(int32_t device, opkit_memory_figures* figures) {
  const DevicePool* pool = Devices::get().pool(device);
  *figures = pool == nullptr ? opkit_memory_figures{} : pool->figures();
}

void opkit_memory_reset_peaks(int32_t device) {
  if (DevicePool* pool = Devices::get().pool(device)) pool->reset_peaks();
}

void opkit_memory_reset_totals(int32_t device) {
  if (DevicePool* pool = Devices::get().pool(device)) pool->reset_totals();
}

void opkit_memory_release_cache(int32_t device) {
  Devices& devices = Devices::get();
  if (DevicePool* pool = devices.pool(device)) pool->release_cache(devices.recorder);
}

void opkit_memory_info(int32_t device, uint64_t* free_bytes, uint64_t* total_bytes) {
  const DevicePool* pool = Devices::get().pool(device);
  *free_bytes = pool == nullptr ? 0 : pool->free_bytes();
  *total_bytes = pool == nullptr ? 0 : pool->total_bytes();
}

int32_t opkit_memory_configure(int32_t device, int64_t max_split_bytes, double collect_above, double fraction) {
  DevicePool* pool = Devices::get().pool(device);
  return pool != nullptr && pool->configure(max_split_bytes, collect_above, fraction) ? 0 : -1;
}

void opkit_memory_record(uint64_t entries, const char* (*stack)(void)) {
  Devices& devices = Devices::get();
  devices.recorder = {entries, stack};
  for (int32_t i = 0; i < devices.count.load(); ++i) {
    if (DevicePool* pool = devices.pool(i)) pool->trim_trace(entries);
  }
}

const char* opkit_memory_snapshot(void) {
  static thread_local std::string text;
  Devices& devices = Devices::get();
  std::string segments;
  std::string traces;
  for (int32_t i = 0; i < devices.count.load(); ++i) {
    std::string own_segments;
    std::string trace;
    if (const DevicePool* pool = devices.pool(i)) pool->describe(own_segments, trace);
    if (!own_segments.empty()) segments += (segments.empty() ? "" : ",") + own_segments;
    traces += std::string(i == 0 ? "" : ",") + "[" + trace + "]";
  }
  text = "{\"segments\":[" + segments + "],\"device_traces\":[" + traces + "]}";
  return text.c_str();
}
