/// The log: what happens, for whoever listens; see opkit/process_report.h.
#pragma once

#include <cstdint>
#include <string>

#include "opkit/process_report.h"

namespace opkit {

/// Logs a record of the emulator. Ask opkit_logs first where the text costs something.
inline void log(int32_t level, const std::string& message, const std::string& where = {}) {
  opkit_write_log(level, "EMULATOR", where.c_str(), message.c_str());
}

/// Adds bytes to what is published of a device: those that allocations hold, and those reserved.
void publish_memory(int32_t device, int64_t held, int64_t reserved);

}  // namespace opkit
