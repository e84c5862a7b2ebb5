/// The emulated device as PyTorch's C++ sees it: current device and stream, and the modelled clock of each stream.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <utility>

namespace opkit::npu {

constexpr c10::DeviceType kDevice = c10::DeviceType::PrivateUse1;

c10::DeviceIndex current_device();
c10::StreamId current_stream(c10::DeviceIndex device);

/// Runs `launch` and charges what the model says it took to the current stream of `device`.
class StreamTimer {
 public:
  explicit StreamTimer(c10::DeviceIndex device);
  ~StreamTimer();
  StreamTimer(const StreamTimer&) = delete;
  StreamTimer& operator=(const StreamTimer&) = delete;

 private:
  c10::DeviceIndex device_;
  double before_us_ = 0;
};

/// Device memory, or c10::OutOfMemoryError with the sizes.
void* allocate(c10::DeviceIndex device, size_t bytes);

/// While one lives, what the CPU's allocator is asked for on this thread comes from the device's memory: so the CPU
/// computes into memory that a tensor of the device can take over.
class DeviceMemoryForCpu {
 public:
  explicit DeviceMemoryForCpu(c10::DeviceIndex device);
  ~DeviceMemoryForCpu();
  DeviceMemoryForCpu(const DeviceMemoryForCpu&) = delete;
  DeviceMemoryForCpu& operator=(const DeviceMemoryForCpu&) = delete;

 private:
  c10::DeviceIndex before_;
};

/// Makes up for a gradient that was computed before the device was there: the engine counts devices once, and has no
/// thread for those that come later.
void start_gradient_threads();

c10::Allocator* device_allocator();

/// Seed and number of the next stream of random numbers: of the generator that a call names, else of the device's own.
std::pair<uint64_t, uint64_t> next_random_stream(c10::DeviceIndex device, const c10::IValue& generator);

}  // namespace opkit::npu
