// Rewritten kernel launches: queued, then run on the emulated device.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "acl/error.h"
#include "acl/state.h"
#include "core/chip.h"
#include "core/names.h"
#include "mm/device_pool.h"
#include "opkit/launch_entry.h"

namespace opkit {
namespace acl {
namespace {

constexpr int64_t kMaxBlockDim = 65535;  // Source: kernel launch, numBlocks

/// The report as `opkit` prints errors: what, where, what to do.
void print_fault(const FaultReport& report) {
  std::fflush(stdout);  // what the kernel printed comes first
  std::fprintf(stderr, "error: %s [%s]\n", report.message.c_str(), fault_id(report.fault));
  const std::string place = report.file.empty() ? "an unknown line" : report.file + ":" + std::to_string(report.line);
  std::fprintf(stderr, "  --> %s      %s block %u, %s, pipe %s, instruction %llu\n", place.c_str(),
               report.kernel.c_str(), report.block, report.sub_core, pipe_name(report.pipe),
               static_cast<unsigned long long>(report.instruction));
  if (!report.help.empty()) std::fprintf(stderr, "  help: %s\n", report.help.c_str());
}

/// Makes the device a chip that the kernel was compiled for, unless the user chose another.
aclError fit_chip(Runtime& runtime, const LaunchConfig& config) {
  const Chip& chip = Device::get().chip();
  if (chip.traits().number == config.npu_arch) return ACL_SUCCESS;
  if (runtime.is_chip_chosen) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, config.name,
                "compiled for dav-%u, and the chosen chip %s is %s: build with --npu-arch=%s, or choose another chip",
                config.npu_arch, chip.name.c_str(), chip.npu_arch.c_str(), chip.npu_arch.c_str());
  }
  for (const Chip& candidate : all_chips()) {
    if (candidate.traits().number != config.npu_arch) continue;
    DeviceConfig device = Device::get().config();
    device.chip = &candidate;
    Device::get().configure(device);
    return ACL_SUCCESS;
  }
  return fail(ACL_ERROR_RT_PARAM_INVALID, config.name, "compiled for dav-%u, which opkit does not emulate",
              config.npu_arch);
}

aclError check_launch(Runtime& runtime, const LaunchConfig& config) {
  if (config.abi_version != kAbiVersion || config.table_fingerprint != table_fingerprint()) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, config.name,
                "this program was built by another version of opkit: build it again");
  }
  if (!config.is_mode_known) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, config.name,
                "opkit cannot tell whether this is a vector, cube or mix kernel: launch it by its name (%s:%u)",
                config.where.file, config.where.line);
  }
  if (config.block_dim < 1 || config.block_dim > kMaxBlockDim) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, config.name, "%lld blocks: a launch has 1 to %lld (%s:%u)",
                static_cast<long long>(config.block_dim), static_cast<long long>(kMaxBlockDim), config.where.file,
                config.where.line);
  }
  return fit_chip(runtime, config);
}

/// Any memory of a program may be a launch's result. Not what would take too long to keep for each launch.
void mark_outputs(std::vector<GmRange>& ranges) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 30;
  uint64_t bytes = 0;
  for (const GmRange& range : ranges) bytes += range.end - range.begin;
  if (bytes > kMostBytes) {
    static bool is_said = false;
    if (!is_said) {
      std::fprintf(stderr,
                   "warning: the program holds more than 1 GiB of device memory: writes to it through raw "
                   "pointers are not looked for\n");
    }
    is_said = true;
    return;
  }
  for (GmRange& range : ranges) range.is_output = true;
}

aclError run_launch(Runtime& runtime, const LaunchConfig& config, void (*invoke)(void* const*), void* call) {
  if (runtime.device_error != ACL_SUCCESS) return runtime.device_error;  // refused, as on a chip in error state
  Launch launch;
  launch.kernel = config.name;
  launch.invoke = invoke;
  launch.arguments = &call;
  launch.mode = config.mode;
  launch.block_dim = static_cast<uint32_t>(config.block_dim);
  // Beside the runtime's own memory that of torch's tensors and td::mm's, all by address.
  std::vector<GmRange> own = runtime.memory.device_ranges();
  if (!Device::get().config().allows_raw_writes) mark_outputs(own);
  const std::vector<GmRange> tensors = mm::used_ranges();
  std::merge(own.begin(), own.end(), tensors.begin(), tensors.end(), std::back_inserter(launch.gm),
             [](const GmRange& a, const GmRange& b) { return a.begin < b.begin; });
  launch.freed = runtime.memory.freed_ranges();
  launch.host = runtime.memory.host_ranges();
  const LaunchRecord record = Device::get().run(launch);
  std::fflush(stdout);
  const bool is_empty = record.fault.fault == Fault::None && record.instructions == 0 && config.takes_memory;
  if (is_empty && runtime.empty_kernels.insert(config.name).second) {
    std::fprintf(stderr,
                 "warning: %s has issued no instruction\n  --> %s:%u      its launch\n"
                 "  help: look for a condition that leaves its body out: an #if, or the loop's bounds\n",
                 config.name, config.where.file, config.where.line);
  }
  return record.fault.fault == Fault::None ? ACL_SUCCESS : fail_device(runtime, record.fault);
}

}  // namespace

aclError queue_launch(Runtime& runtime, Stream& stream, const LaunchConfig& config, void (*invoke)(void* const*),
                      std::shared_ptr<void> call) {
  if (const aclError error = check_launch(runtime, config)) return error;
  submit(stream, {[&runtime, config, invoke, call] { return run_launch(runtime, config, invoke, call.get()); }, nullptr,
                  nullptr, config.name});
  return ACL_SUCCESS;
}

aclError fail_device(Runtime& runtime, const FaultReport& report) {
  print_fault(report);
  const bool is_cube_core = std::string_view(report.sub_core) == "aic";
  runtime.device_error = is_cube_core ? ACL_ERROR_RT_AICORE_EXCEPTION : ACL_ERROR_RT_VECTOR_CORE_EXCEPTION;
  runtime.device_reason = std::string(fault_id(report.fault)) + ": " + report.message + " (" + report.file + ":" +
                          std::to_string(report.line) + ", kernel " + report.kernel + ", block " +
                          std::to_string(report.block) + ")";
  return fail_again(runtime.device_error, runtime.device_reason.c_str());
}

}  // namespace acl

void enqueue_launch(const LaunchConfig& config, void (*invoke)(void* const*), void* call, void (*destroy)(void*)) {
  using namespace acl;
  const std::shared_ptr<void> owner(call, destroy);
  Runtime& runtime = Runtime::get();
  const std::lock_guard<std::recursive_mutex> guard(runtime.lock);
  aclError error = ACL_SUCCESS;
  Stream* stream = find_stream(runtime, config.stream, config.name, &error);
  if (stream == nullptr) return;
  error = queue_launch(runtime, *stream, config, invoke, owner);
  if (error == ACL_SUCCESS) return;
  // A launch returns nothing: the stream's next synchronisation tells.
  const char* text = aclGetRecentErrMsg();
  const std::string reason = text == nullptr ? "" : text;
  submit(*stream, {[error, reason] { return fail_again(error, reason.c_str()); }, nullptr, nullptr, config.name});
}

}  // namespace opkit
