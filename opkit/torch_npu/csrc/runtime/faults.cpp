#include "runtime/faults.h"

#include <c10/util/Exception.h>

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "opkit/device_stream.h"

namespace opkit::npu {
namespace {

std::atomic<bool> is_blocking{true};
std::atomic<bool> has_kept{false};
std::mutex kept_lock;

std::map<c10::DeviceIndex, std::string>& kept_faults() {
  static auto* faults = new std::map<c10::DeviceIndex, std::string>();
  return *faults;
}

/// Writes the line of the program that the calling thread is at; nothing where it knows none.
using WriteLine = void (*)(char* text, size_t size);
std::atomic<WriteLine> write_line{nullptr};

std::string calling_line() {
  char text[1024] = "";
  if (const WriteLine write = write_line.load()) write(text, sizeof(text));
  return text;
}

}  // namespace

void report_fault(c10::DeviceIndex device, const std::string& message) {
  TORCH_CHECK(!is_blocking.load(std::memory_order_relaxed), message);
  const std::string line = calling_line();
  const std::lock_guard<std::mutex> guard(kept_lock);
  kept_faults().emplace(device, line.empty() ? message : c10::str(message, "\nlaunched at ", line));
  has_kept.store(true);
}

void throw_kept_fault(c10::DeviceIndex device) {
  char text[2048];
  TORCH_CHECK(!opkit_take_device_fault(text, sizeof(text)), text,
              "\nof a launch by an extension, found where the host waits for the device");
  if (!has_kept.load(std::memory_order_relaxed)) return;
  std::string message;
  {
    const std::lock_guard<std::mutex> guard(kept_lock);
    auto& faults = kept_faults();
    const auto found = device < 0 ? faults.begin() : faults.find(device);
    if (found == faults.end()) return;
    message = std::move(found->second);
    faults.erase(found);
    has_kept.store(!faults.empty());
  }
  TORCH_CHECK(
      false, message,
      "\nfound where the host waits for the device; without ASCEND_LAUNCH_BLOCKING=0 the call itself raises it");
}

}  // namespace opkit::npu

extern "C" __attribute__((visibility("default"))) void opkit_npu_launch_blocking(int is_on) {
  opkit::npu::is_blocking.store(is_on != 0);
}
extern "C" __attribute__((visibility("default"))) void opkit_npu_line_writer(void (*write)(char*, size_t)) {
  opkit::npu::write_line.store(write);
}
