/// When a kernel's fault becomes an exception: at the call that launched it, or, as on the chip, where the host next
/// waits for the device.
#pragma once

#include <c10/core/Device.h>

#include <string>

namespace opkit::npu {

/// Throws a fault, or keeps it until the device is waited for: the first one of a device, as those behind it follow.
void report_fault(c10::DeviceIndex device, const std::string& message);

/// Throws the fault that was kept of a device; of any for -1.
void throw_kept_fault(c10::DeviceIndex device);

}  // namespace opkit::npu
