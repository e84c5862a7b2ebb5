// Launching a kernel: its arguments, its workspace and the global memory that it may touch.
#include "launch_run.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

#include "dtypes.h"
#include "core/names.h"

namespace opkit::host {
namespace {

/// A file of 0xff bytes in memory. Private mappings of it are poisoned memory whose untouched pages cost nothing, where
/// writing the pattern to the 16 MiB that every workspace begins with would take longer than a small launch.
class PoisonFile {
 public:
  static constexpr uint64_t kBytes = uint64_t{1} << 24;

  PoisonFile() : file_(memfd_create("opkit-poison", MFD_CLOEXEC)) {
    if (file_ < 0 || ftruncate(file_, kBytes) != 0) throw std::bad_alloc();
    void* mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    std::memset(mapped, 0xff, kBytes);
    munmap(mapped, kBytes);
  }

  /// Poisons mapped memory that begins at a page.
  void map_over(uint8_t* data, uint64_t size_bytes) const {
    for (uint64_t at = 0; at < size_bytes; at += kBytes) {
      const uint64_t piece = std::min(kBytes, size_bytes - at);
      void* mapped = mmap(data + at, piece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file_, 0);
      if (mapped == MAP_FAILED) throw std::bad_alloc();
    }
  }

 private:
  int file_;
};

/// Zeroed or poisoned memory that lives for one launch; pages that nothing touches cost nothing.
class Workspace {
 public:
  Workspace(uint64_t size_bytes, bool poisons) : size_bytes_(size_bytes) {
    if (size_bytes == 0) return;
    void* mapped =
        mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<uint8_t*>(mapped);
    if (!poisons) return;
    static const PoisonFile file;
    file.map_over(data_, size_bytes);
  }
  ~Workspace() {
    if (data_ != nullptr) munmap(data_, size_bytes_);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  uint8_t* data() const { return data_; }

 private:
  uint8_t* data_ = nullptr;
  uint64_t size_bytes_;
};

uint64_t size_in_bytes(int64_t elements, int32_t dtype) {
  return static_cast<uint64_t>(elements) * find_dtype(dtype)->size_bytes;
}

/// Sorted and without overlap: a tensor passed twice, or an output written in place, is one range.
std::vector<GmRange> sorted_ranges(std::vector<GmRange> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const GmRange& a, const GmRange& b) { return a.begin < b.begin; });
  std::vector<GmRange> out;
  for (const GmRange& range : ranges) {
    if (range.begin == range.end) continue;
    if (!out.empty() && range.begin < out.back().end) {
      out.back().end = std::max(out.back().end, range.end);
      out.back().is_written = out.back().is_written || range.is_written;
    } else {
      out.push_back(range);
    }
  }
  return out;
}

/// What an output holds before its kernel writes it: NaN in floats, a large number in whole numbers.
int poison_byte(int32_t dtype) {
  switch (dtype) {
    case ge::DT_FLOAT:
    case ge::DT_FLOAT16:
    case ge::DT_BF16:
    case ge::DT_DOUBLE: return 0xff;
    default: return 0x7f;
  }
}

}  // namespace

LaunchRecord run_kernel(const KernelEntry& kernel, const BoundCall& call, const opkit_tensor* outputs,
                        TilingResult& tiling, bool poisons) {
  const Signature& signature = call.signature();
  const size_t tensor_count = signature.inputs.size() + signature.outputs.size();
  const std::string where = "[" + call.entry().type + "] ";
  if (kernel.mode != KernelMode::Vector) {
    fail(OPKIT_USAGE, where + "its kernel runs on cube cores, which opkit does not support yet");
  }
  if (kernel.argument_count != tensor_count + 2) {
    fail(OPKIT_USAGE, where + "its kernel " + kernel.name + " has " + std::to_string(kernel.argument_count) +
                          " parameters; it is called with " + std::to_string(tensor_count + 2) + ": " +
                          std::to_string(signature.inputs.size()) + " inputs, " +
                          std::to_string(signature.outputs.size()) + " outputs, workspace, tiling");
  }
  const Workspace workspace(tiling.workspace_bytes, poisons);
  std::vector<void*> addresses;
  std::vector<GmRange> ranges;
  const auto add = [&](std::string name, void* data, uint64_t size_bytes, bool is_written = true) {
    addresses.push_back(data);
    const auto begin = reinterpret_cast<uint64_t>(data);
    ranges.push_back({begin, begin + size_bytes, is_written, std::move(name)});
  };
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    const opkit_tensor* given = call.given_input(i);
    if (given == nullptr) {
      add("", nullptr, 0);
      continue;
    }
    int64_t elements = 1;
    for (int32_t axis = 0; axis < given->rank; ++axis) elements *= given->shape[axis];
    add("input " + signature.inputs[i].name, given->data, size_in_bytes(elements, given->dtype));
  }
  const auto input_count = static_cast<std::ptrdiff_t>(addresses.size());
  for (size_t i = 0; i < signature.outputs.size(); ++i) {
    const uint64_t size_bytes = size_in_bytes(call.outputs()[i].GetShapeSize(), outputs[i].dtype);
    const auto is_same = [&](const void* address) { return address == outputs[i].data; };
    const bool is_in_place = std::any_of(addresses.begin(), addresses.begin() + input_count, is_same);
    if (poisons && size_bytes != 0 && !is_in_place) {
      std::memset(outputs[i].data, poison_byte(outputs[i].dtype), size_bytes);
    }
    const bool is_zeroed = tiling.needs_atomic && signature.outputs[i].is_zero_initialised;
    if (is_zeroed) std::memset(outputs[i].data, 0, size_bytes);
    add("output " + signature.outputs[i].name, outputs[i].data, size_bytes, is_in_place || is_zeroed);
  }
  add("the workspace", workspace.data(), tiling.workspace_bytes, false);
  add("the tiling data", tiling.data.data(), tiling.data.size());

  std::vector<void*> arguments;
  for (void*& address : addresses) arguments.push_back(&address);
  Launch launch;
  launch.kernel = kernel.name;
  launch.invoke = kernel.invoke;
  launch.arguments = arguments.data();
  launch.mode = kernel.mode;
  launch.block_dim = tiling.block_dim;
  launch.tiling_key = tiling.tiling_key;
  launch.gm = sorted_ranges(std::move(ranges));
  return Device::get().run(launch);
}

std::string fault_text(const FaultReport& report) {
  std::string text = report.message + " [" + fault_name(report.fault) + "]";
  const std::string source = report.file.empty() ? "" : report.file + ":" + std::to_string(report.line) + "      ";
  text += "\n  --> " + source + report.kernel + " block " + std::to_string(report.block) + " " + report.sub_core +
          ", pipe " + pipe_name(report.pipe) + ", instruction " + std::to_string(report.instruction);
  return report.help.empty() ? text : text + "\n  help: " + report.help;
}

}  // namespace opkit::host
