// Allocator, guard, hooks, generators, streams and events of the device "npu".
#include "runtime/device.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/GeneratorForPrivateuseone.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "runtime/faults.h"
#include "aten/natives.h"
#include "opkit/device_memory.h"
#include "opkit/direct_launch.h"
#include "runtime/registry.h"

namespace opkit::npu {
namespace {

constexpr int kMaxDevices = 64;

thread_local c10::DeviceIndex thread_device = 0;
thread_local std::array<c10::StreamId, kMaxDevices> thread_streams{};
thread_local c10::DeviceIndex cpu_memory_device = -1;

c10::DeviceIndex device_count() { return static_cast<c10::DeviceIndex>(opkit_memory_devices()); }

void check_device(c10::DeviceIndex device) {
  TORCH_CHECK(device >= 0 && device < device_count(), "npu:", static_cast<int>(device), " does not exist: there are ",
              static_cast<int>(device_count()), " devices; OPKIT_NPU_COUNT says how many to emulate");
}

/// Modelled time at which each stream is done with what it was given, in microseconds.
class StreamClocks {
 public:
  static StreamClocks& get() {
    static auto* clocks = new StreamClocks();
    return *clocks;
  }

  c10::StreamId add_stream() { return next_stream_.fetch_add(1); }

  double now(c10::DeviceIndex device, c10::StreamId stream) {
    const std::lock_guard<std::mutex> guard(lock_);
    return times_[{device, stream}];
  }
  void advance(c10::DeviceIndex device, c10::StreamId stream, double by_us) {
    const std::lock_guard<std::mutex> guard(lock_);
    times_[{device, stream}] += by_us;
  }
  void wait(c10::DeviceIndex device, c10::StreamId stream, double until_us) {
    const std::lock_guard<std::mutex> guard(lock_);
    double& time = times_[{device, stream}];
    time = std::max(time, until_us);
  }

  std::atomic<bool> is_timed{false};

 private:
  std::mutex lock_;
  std::map<std::pair<int, c10::StreamId>, double> times_;
  std::atomic<c10::StreamId> next_stream_{1};
};

/// One recorded point of a stream.
struct Event {
  double time_us = 0;
  bool is_timed = false;
};

void release_device(void* pointer) { opkit_memory_free(pointer); }

[[noreturn]] void throw_out_of_memory(c10::DeviceIndex device) {
  opkit_memory_shortage why{};
  opkit_memory_shortage_of_thread(&why);
  const auto mib = [](uint64_t bytes) { return c10::str(static_cast<double>(bytes) / (1 << 20), " MiB"); };
  TORCH_CHECK_WITH(OutOfMemoryError, why.host_refused == 0,
                   "NPU out of memory: this machine has no addresses left for npu:", static_cast<int>(device));
  TORCH_CHECK_WITH(OutOfMemoryError, false, "NPU out of memory. Tried to allocate ", mib(why.wanted_bytes),
                   " (npu:", static_cast<int>(device), "; ", mib(why.total_bytes), " total capacity; ",
                   mib(why.allocated_bytes), " already allocated; ", mib(why.free_bytes), " free; ",
                   mib(why.reserved_bytes),
                   " reserved in total). torch.npu.memory_summary() shows what is held; where much more is reserved "
                   "than allocated, torch.npu.set_allocator_settings(max_split_size_mb=...) avoids fragments.");
}

class NpuAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::DeviceIndex device = thread_device;
    void* memory = npu::allocate(device, bytes);
    return {memory, memory, &release_device, c10::Device(kDevice, device)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release_device; }
  void copy_data(void* destination, const void* source, size_t count) const override {
    std::memcpy(destination, source, count);
  }

  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {
    for (int i = 0; i < device_count(); ++i) opkit_memory_release_cache(i);
  }
  // Every launch has ended when its call returns: no stream still uses what is given back.
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  void resetAccumulatedStats(c10::DeviceIndex device) override { opkit_memory_reset_totals(device); }
  void resetPeakStats(c10::DeviceIndex device) override { opkit_memory_reset_peaks(device); }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;
    opkit_memory_info(device, &free_bytes, &total_bytes);
    return {free_bytes, total_bytes};
  }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    opkit_memory_figures figures;
    opkit_memory_get_figures(device, &figures);
    c10::CachingDeviceAllocator::DeviceStats stats;
    const auto fill = [](c10::CachingAllocator::StatArray& to, const opkit_memory_figure(&from)[OPKIT_MEMORY_POOLS]) {
      using c10::CachingAllocator::StatType;
      constexpr StatType kTypes[] = {StatType::AGGREGATE, StatType::SMALL_POOL, StatType::LARGE_POOL};
      for (int pool = 0; pool < OPKIT_MEMORY_POOLS; ++pool) {
        c10::CachingAllocator::Stat& stat = to[static_cast<size_t>(kTypes[pool])];
        stat.current = from[pool].current;
        stat.peak = from[pool].peak;
        stat.allocated = from[pool].added;
        stat.freed = from[pool].removed;
      }
    };
    fill(stats.allocation, figures.allocations);
    fill(stats.active, figures.allocations);
    fill(stats.segment, figures.segments);
    fill(stats.inactive_split, figures.inactive_split);
    fill(stats.allocated_bytes, figures.allocated_bytes);
    fill(stats.active_bytes, figures.allocated_bytes);
    fill(stats.reserved_bytes, figures.reserved_bytes);
    fill(stats.inactive_split_bytes, figures.inactive_split_bytes);
    fill(stats.requested_bytes, figures.requested_bytes);
    stats.num_alloc_retries = figures.retries;
    stats.num_ooms = figures.out_of_memory;
    stats.num_device_alloc = figures.segment_allocations;
    stats.num_device_free = figures.segment_releases;
    stats.max_split_size = figures.max_split_bytes;
    return stats;
  }
};

/// The CPU's own allocator, except while DeviceMemoryForCpu lives.
class CpuOrDeviceAllocator final : public c10::Allocator {
 public:
  explicit CpuOrDeviceAllocator(c10::Allocator* cpu) : cpu_(cpu) { cpu_deleter = cpu->raw_deleter(); }
  c10::DataPtr allocate(size_t bytes) override {
    if (cpu_memory_device < 0) return cpu_->allocate(bytes);
    void* memory = npu::allocate(cpu_memory_device, bytes);
    return {memory, memory, &release, c10::Device(c10::DeviceType::CPU)};
  }
  // What one of the two allocators gave is given back through this, wherever the thread is by then.
  c10::DeleterFnPtr raw_deleter() const override { return &release_either; }
  void copy_data(void* destination, const void* source, size_t count) const override {
    cpu_->copy_data(destination, source, count);
  }

 private:
  static void release(void* pointer) { opkit_memory_free(pointer); }
  static void release_either(void* pointer) {
    if (pointer != nullptr && opkit_memory_free(pointer) != 0) cpu_deleter(pointer);
  }
  static inline c10::DeleterFnPtr cpu_deleter = nullptr;
  c10::Allocator* cpu_;
};

/// Page-locked host memory: ordinary memory whose addresses are remembered.
class PinnedMemory final : public c10::Allocator {
 public:
  static PinnedMemory& get() {
    static auto* memory = new PinnedMemory();
    return *memory;
  }
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &release, c10::Device(c10::DeviceType::CPU)};
    void* memory = nullptr;
    TORCH_CHECK(posix_memalign(&memory, 256, bytes) == 0, "there is no room for ", bytes, " bytes of pinned memory");
    const std::lock_guard<std::mutex> guard(lock_);
    blocks_[reinterpret_cast<uintptr_t>(memory)] = bytes;
    return {memory, memory, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* destination, const void* source, size_t count) const override {
    std::memcpy(destination, source, count);
  }
  bool owns(const void* pointer) {
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    const std::lock_guard<std::mutex> guard(lock_);
    auto behind = blocks_.upper_bound(address);
    if (behind == blocks_.begin()) return false;
    --behind;
    return address < behind->first + behind->second;
  }

 private:
  static void release(void* pointer) {
    if (pointer == nullptr) return;
    PinnedMemory& self = get();
    {
      const std::lock_guard<std::mutex> guard(self.lock_);
      self.blocks_.erase(reinterpret_cast<uintptr_t>(pointer));
    }
    std::free(pointer);
  }
  std::mutex lock_;
  std::map<uintptr_t, size_t> blocks_;
};

struct GuardImpl final : public c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kDevice; }
  c10::Device getDevice() const override { return c10::Device(kDevice, thread_device); }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  void setDevice(c10::Device device) const override {
    check_device(device.index());
    thread_device = device.index();
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() >= 0 && device.index() < device_count()) thread_device = device.index();
  }
  c10::DeviceIndex deviceCount() const noexcept override { return device_count(); }
  // Every type can be held and computed with: what the chip lacks is the CPU's.
  c10::DeviceCapability getDeviceCapability(c10::Device) const override { return {}; }

  c10::Stream stream(c10::Device device, c10::StreamId id) const {
    const c10::DeviceIndex index = device.has_index() ? device.index() : thread_device;
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(kDevice, index), id);
  }
  c10::Stream getStream(c10::Device device) const override {
    const c10::DeviceIndex index = device.has_index() ? device.index() : thread_device;
    return stream(device, thread_streams[index]);
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return stream(device, 0); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return stream(device, StreamClocks::get().add_stream());
  }
  c10::Stream getNewStream(c10::Device device, int) const override {
    return stream(device, StreamClocks::get().add_stream());
  }
  c10::Stream exchangeStream(c10::Stream next) const override {
    const c10::Stream before = getStream(next.device());
    thread_streams[next.device_index()] = next.id();
    return before;
  }
  void* getStreamNativeHandle(const c10::Stream of) const override { return reinterpret_cast<void*>(of.id()); }
  bool queryStream(const c10::Stream&) const override { return true; }
  // Launches have ended when their call returns: what is left to wait for is a fault that was kept.
  void synchronizeStream(const c10::Stream& stream) const override { throw_kept_fault(stream.device_index()); }
  void synchronizeDevice(c10::DeviceIndex device) const override { throw_kept_fault(device); }

  void record(void** event, const c10::Stream& on, c10::DeviceIndex, c10::EventFlag flag) const override {
    if (*event == nullptr) *event = new Event();
    auto& recorded = *static_cast<Event*>(*event);
    recorded.is_timed = flag == c10::EventFlag::BACKEND_DEFAULT;
    StreamClocks& clocks = StreamClocks::get();
    // From the first timed event on: a launch is only modelled when somebody asks for its time.
    if (recorded.is_timed && !clocks.is_timed.exchange(true)) opkit_time_launches(1);
    recorded.time_us = clocks.now(on.device_index(), on.id());
  }
  void block(void* event, const c10::Stream& waiting) const override {
    if (event == nullptr) return;
    StreamClocks::get().wait(waiting.device_index(), waiting.id(), static_cast<Event*>(event)->time_us);
  }
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void*) const override { throw_kept_fault(-1); }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override { delete static_cast<Event*>(event); }
  double elapsedTime(void* first, void* second, c10::DeviceIndex) const override {
    TORCH_CHECK(first != nullptr && second != nullptr, "both events must be recorded before calculating elapsed time");
    const auto& from = *static_cast<Event*>(first);
    const auto& to = *static_cast<Event*>(second);
    TORCH_CHECK(from.is_timed && to.is_timed, "both events must be made with enable_timing=True");
    return (to.time_us - from.time_us) / 1000;
  }
};

/// Random numbers of the device: a seed, and how many tensors it has filled, which is the stream of the next one. The
/// state is both, eight bytes each, as torch.distributed.tensor takes it apart.
class NpuGenerator final : public c10::GeneratorImpl {
 public:
  explicit NpuGenerator(c10::DeviceIndex device)
      : c10::GeneratorImpl(c10::Device(kDevice, device), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}
  void set_current_seed(uint64_t seed) override {
    seed_ = seed;
    streams_ = 0;
  }
  uint64_t current_seed() const override { return seed_; }
  uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom());
    return seed_;
  }
  void set_offset(uint64_t offset) override { streams_ = offset; }
  uint64_t get_offset() const override { return streams_; }
  uint64_t next_stream() { return streams_++; }

  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    const at::Tensor state = at::detail::empty_cpu({2 * kWordBytes}, at::kByte);
    auto* bytes = static_cast<char*>(state.data_ptr());
    std::memcpy(bytes, &seed_, kWordBytes);
    std::memcpy(bytes + kWordBytes, &streams_, kWordBytes);
    return state.getIntrusivePtr();
  }
  void set_state(const c10::TensorImpl& state) override {
    at::detail::check_rng_state(state);
    TORCH_CHECK(state.numel() == 2 * kWordBytes, "the state of npu's random numbers has ", 2 * kWordBytes,
                " bytes, a seed and an offset; this one has ", state.numel());
    const auto* bytes = static_cast<const char*>(state.data());
    std::memcpy(&seed_, bytes, kWordBytes);
    std::memcpy(&streams_, bytes + kWordBytes, kWordBytes);
  }

 private:
  static constexpr int64_t kWordBytes = sizeof(uint64_t);
  NpuGenerator* clone_impl() const override {
    auto* made = new NpuGenerator(device_.index());
    made->seed_ = seed_;
    made->streams_ = streams_;
    return made;
  }
  uint64_t seed_ = c10::default_rng_seed_val;
  uint64_t streams_ = 0;
};

const at::Generator& default_generator(c10::DeviceIndex device) {
  static auto* generators = new std::array<at::Generator, kMaxDevices>();
  static std::mutex lock;
  if (device < 0) device = thread_device;
  check_device(device);
  const std::lock_guard<std::mutex> guard(lock);
  at::Generator& generator = (*generators)[device];
  if (!generator.defined()) generator = at::make_generator<NpuGenerator>(device);
  return generator;
}

struct Hooks final : public at::PrivateUse1HooksInterface {
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_count() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return device_count(); }
  void setCurrentDevice(c10::DeviceIndex device) const override {
    check_device(device);
    thread_device = device;
  }
  c10::DeviceIndex getCurrentDevice() const override { return thread_device; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    const c10::DeviceIndex before = thread_device;
    if (device >= 0) setCurrentDevice(device);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override { return exchangeDevice(device); }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override { return default_generator(device); }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    return at::make_generator<NpuGenerator>(device < 0 ? thread_device : device);
  }
  bool isPinnedPtr(const void* data) const override { return PinnedMemory::get().owns(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &PinnedMemory::get(); }
  at::Device getDeviceFromPtr(void* data) const override {
    const int32_t device = opkit_memory_device_of(data);
    TORCH_CHECK(device >= 0, data, " is no memory of the npu");
    return at::Device(kDevice, static_cast<c10::DeviceIndex>(device));
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    c10::DataPtr fresh = storage.allocator()->allocate(bytes);
    if (storage.nbytes() != 0 && bytes != 0)
      std::memcpy(fresh.get(), storage.data(), std::min(storage.nbytes(), bytes));
    storage.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(fresh));
    storage.unsafeGetStorageImpl()->set_nbytes(bytes);
  }
};

NpuAllocator npu_allocator;

}  // namespace

c10::Allocator* device_allocator() { return &npu_allocator; }
c10::DeviceIndex current_device() { return thread_device; }
c10::StreamId current_stream(c10::DeviceIndex device) { return thread_streams[device]; }

void* allocate(c10::DeviceIndex device, size_t bytes) {
  if (bytes == 0) return nullptr;
  void* memory = opkit_memory_allocate(device, bytes, static_cast<uint64_t>(thread_streams[device]));
  if (memory == nullptr) throw_out_of_memory(device);
  return memory;
}

StreamTimer::StreamTimer(c10::DeviceIndex device) : device_(device) {
  if (StreamClocks::get().is_timed.load(std::memory_order_relaxed)) before_us_ = opkit_modelled_us();
}

StreamTimer::~StreamTimer() {
  StreamClocks& clocks = StreamClocks::get();
  if (!clocks.is_timed.load(std::memory_order_relaxed)) return;
  clocks.advance(device_, thread_streams[device_], opkit_modelled_us() - before_us_);
}

std::pair<uint64_t, uint64_t> next_random_stream(c10::DeviceIndex device, const c10::IValue& given) {
  at::Generator generator = given.isGenerator() ? given.toGenerator() : default_generator(device);
  TORCH_CHECK(generator.device().type() == kDevice, "Expected a 'npu' device type for generator but found '",
              generator.device().type(), "'");
  const std::lock_guard<std::mutex> guard(generator.mutex());
  auto& own = *static_cast<NpuGenerator*>(generator.unsafeGetGeneratorImpl());
  return {own.current_seed(), own.next_stream()};
}

DeviceMemoryForCpu::DeviceMemoryForCpu(c10::DeviceIndex device) : before_(cpu_memory_device) {
  cpu_memory_device = device;
}
DeviceMemoryForCpu::~DeviceMemoryForCpu() { cpu_memory_device = before_; }

C10_REGISTER_GUARD_IMPL(PrivateUse1, GuardImpl)

/// What opkit/torch_npu/native.py calls once, before anything else of this library.
extern "C" __attribute__((visibility("default"))) const char* opkit_npu_start(int devices) {
  static bool is_started = false;
  if (is_started) return nullptr;
  if (opkit_memory_set_devices(devices) != 0) return "OPKIT_NPU_COUNT is not a number of devices from 0 to 64";
  c10::SetAllocator(kDevice, &npu_allocator, 10);
  static auto* cpu = new CpuOrDeviceAllocator(c10::GetAllocator(c10::DeviceType::CPU));
  c10::SetAllocator(c10::DeviceType::CPU, cpu, 10);
  at::RegisterPrivateUse1HooksInterface(new Hooks());
  add_elementwise();
  add_operators();
  register_natives();
  start_gradient_threads();
  is_started = true;
  return nullptr;
}
extern "C" __attribute__((visibility("default"))) double opkit_npu_stream_us(int device, int64_t stream) {
  return StreamClocks::get().now(static_cast<c10::DeviceIndex>(device), stream);
}
/// The modelled clock of all launches, in microseconds; below 0 while nobody has asked for times.
extern "C" __attribute__((visibility("default"))) double opkit_npu_clock_us(void) {
  return StreamClocks::get().is_timed.load(std::memory_order_relaxed) ? opkit_modelled_us() : -1;
}
/// Charges what the clock has gained since `before_us` to the current stream of a device; -1: of this thread's.
extern "C" __attribute__((visibility("default"))) void opkit_npu_charge(int device, double before_us) {
  const auto index = device < 0 ? thread_device : static_cast<c10::DeviceIndex>(device);
  StreamClocks::get().advance(index, thread_streams[index], opkit_modelled_us() - before_us);
}
extern "C" __attribute__((visibility("default"))) int64_t opkit_npu_current_stream(int device) {
  return current_stream(static_cast<c10::DeviceIndex>(device));
}
extern "C" __attribute__((visibility("default"))) void opkit_npu_set_stream(int device, int64_t stream) {
  thread_streams[device] = stream;
}

}  // namespace opkit::npu
