// Reading tiling data in a kernel, within the bytes that the tiling function wrote.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "core/launch_state.h"
#include "opkit/api/runtime_abi.h"
#include "opkit/api/tiling.h"

namespace opkit {

void read_tiling(void* out, const void* tiling, uint64_t offset, uint64_t size_bytes, Where where) {
  if (running_core() == nullptr) illegal_operand("tiling data is read outside a kernel", where);
  const uint64_t begin = reinterpret_cast<uint64_t>(tiling);
  const std::vector<GmRange>& ranges = require_running_core().core.launch->launch->gm;
  const auto range = std::find_if(ranges.begin(), ranges.end(), [begin](const GmRange& candidate) {
    return candidate.begin <= begin && begin < candidate.end;
  });
  const uint64_t available = range == ranges.end() ? 0 : range->end - begin;
  if (offset + size_bytes > available) {
    char message[160];
    std::snprintf(message, sizeof message,
                  "the kernel reads bytes %llu..%llu of its tiling data, but the tiling function wrote %llu bytes",
                  static_cast<unsigned long long>(offset), static_cast<unsigned long long>(offset + size_bytes),
                  static_cast<unsigned long long>(available));
    illegal_operand(message, where);
  }
  std::memcpy(out, static_cast<const uint8_t*>(tiling) + offset, size_bytes);
}

}  // namespace opkit
