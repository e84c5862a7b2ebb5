// Launching a kernel: its arguments, its workspace and the global memory that it may touch.
#include "launch_run.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <list>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dtypes.h"
#include "staging.h"
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

/// Tensors as a kernel's ListTensorDesc reads them. Source: ListTensorDesc, its data structure.
template <typename ShapeOf, typename DataOf>
std::vector<uint64_t> tensor_list(size_t start, size_t count, const ShapeOf& shape_of, const DataOf& data_of) {
  std::vector<uint64_t> words(1);
  for (size_t i = 0; i < count; ++i) {
    const gert::Shape& shape = shape_of(start + i);
    words.push_back(uint64_t{i} << 32 | shape.GetDimNum());
    for (size_t axis = 0; axis < shape.GetDimNum(); ++axis) words.push_back(static_cast<uint64_t>(shape[axis]));
  }
  words[0] = words.size() * sizeof(uint64_t);
  for (size_t i = 0; i < count; ++i) words.push_back(reinterpret_cast<uint64_t>(data_of(start + i)));
  return words;
}

/// The shapes that a kernel writes: for each such output a rank and 8 dimensions. Source: programming guide, output
/// shapes that depend on the computation.
class ComputedShapes {
 public:
  explicit ComputedShapes(const BoundCall& call) : call_(call) {
    for (size_t i = 0; i < call.outputs().size(); ++i) {
      if (call.output_param(i).is_shape_computed) outputs_.push_back(i);
    }
    // What no kernel writes.
    words_.assign(outputs_.size() * kWords, UINT64_MAX);
  }

  bool is_empty() const { return outputs_.empty(); }
  void* data() { return words_.data(); }
  uint64_t size_bytes() const { return words_.size() * sizeof(uint64_t); }

  /// Throws CallError where the kernel wrote no shape, or one that the tensor has no room for.
  void read_into(std::vector<opkit_shape>& shapes) const {
    for (size_t k = 0; k < outputs_.size(); ++k) {
      const uint64_t* words = words_.data() + k * kWords;
      opkit_shape& shape = shapes[outputs_[k]];
      if (words[0] == UINT64_MAX) refuse(k, "writes no shape of");
      const uint64_t rank = words[0] & ~kDimsOf64Bits;
      if (rank >= kWords) refuse(k, "writes the rank " + std::to_string(rank) + ", of at most 8, for");
      gert::Shape written;
      for (uint64_t axis = 0; axis < rank; ++axis) written.AppendDim(static_cast<int64_t>(words[1 + axis]));
      const gert::Shape& room = call_.outputs()[outputs_[k]].GetOriginShape();
      const int64_t elements = written.GetShapeSize();
      if (elements < 0 || elements > room.GetShapeSize()) {
        refuse(k, "writes the shape " + shape_text(written) + ", where " + shape_text(room) + " has room, for");
      }
      shape.rank = static_cast<int32_t>(rank);
      for (uint64_t axis = 0; axis < rank; ++axis) shape.dims[axis] = written[axis];
    }
  }

 private:
  static constexpr size_t kWords = 9;
  static constexpr uint64_t kDimsOf64Bits = uint64_t{1} << 31;

  [[noreturn]] void refuse(size_t k, const std::string& what) const {
    fail(OPKIT_FAULT, "[" + call_.entry().type + "] its kernel " + what + " output \"" +
                          call_.output_param(outputs_[k]).name + "\"");
  }

  const BoundCall& call_;
  std::vector<size_t> outputs_;
  std::vector<uint64_t> words_;
};

/// What lies behind a tensor, up to a whole block: NaN as a float.
constexpr int kPaddingByte = 0xff;

/// What an output holds before its kernel writes it: NaN in floats, a large number in whole numbers.
int poison_byte(int32_t dtype) {
  switch (dtype) {
    case ge::DT_FLOAT:
    case ge::DT_FLOAT16:
    case ge::DT_BF16:
    case ge::DT_COMPLEX32:
    case ge::DT_COMPLEX64:
    case ge::DT_DOUBLE: return 0xff;
    default: return 0x7f;
  }
}

/// What InitValue says of an output; of several values that of its data type, which is the same in each combination.
const InitialValue* initial_value(const Param& output, int32_t dtype) {
  if (output.initial_values.size() < 2) return output.initial_values.empty() ? nullptr : output.initial_values.data();
  const auto found = std::find(output.dtypes.begin(), output.dtypes.end(), dtype);
  return found == output.dtypes.end() ? nullptr : &output.initial_values[found - output.dtypes.begin()];
}

void fill(void* data, uint64_t size_bytes, const InitialValue& value) {
  auto* bytes = static_cast<uint8_t*>(data);
  for (uint64_t at = 0; at < size_bytes; at += value.size_bytes) {
    std::memcpy(bytes + at, &value.bits, std::min<uint64_t>(value.size_bytes, size_bytes - at));
  }
}

/// Inputs that the last poisoned or watched launch on this thread has written to, by name.
thread_local std::vector<std::string> changed_inputs;

/// What an input holds before a launch.
struct InputBytes {
  InputBytes(std::string input_name, const void* memory, uint64_t size_bytes)
      : name(std::move(input_name)), data(static_cast<const uint8_t*>(memory)) {
    if (data != nullptr) before.assign(data, data + size_bytes);
  }
  bool is_changed() const { return !before.empty() && std::memcmp(before.data(), data, before.size()) != 0; }

  std::string name;
  const uint8_t* data;
  std::vector<uint8_t> before;
};

}  // namespace

std::vector<GmRange> sorted_ranges(std::vector<GmRange> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const GmRange& a, const GmRange& b) { return a.begin < b.begin; });
  std::vector<GmRange> out;
  out.reserve(ranges.size());
  for (GmRange& range : ranges) {
    if (range.begin == range.end) continue;
    if (!out.empty() && range.begin < out.back().end) {
      const bool ends_later = range.end - range.padding_bytes > out.back().end - out.back().padding_bytes;
      const uint64_t data_end =
          ends_later ? range.end - range.padding_bytes : out.back().end - out.back().padding_bytes;
      out.back().end = std::max(out.back().end, range.end);
      out.back().padding_bytes = out.back().end - data_end;
      out.back().is_written = out.back().is_written || range.is_written;
      out.back().is_output = out.back().is_output || range.is_output;
    } else {
      out.push_back(std::move(range));
    }
  }
  return out;
}

bool is_untouched(const void* data, uint64_t size_bytes, int poison) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  return size_bytes != 0 && std::all_of(bytes, bytes + size_bytes, [poison](uint8_t byte) { return byte == poison; });
}

/// A kernel that did nothing at all: an #if, a tiling key or a count of cores has left its body out.
FaultReport empty_launch(const KernelEntry& kernel, const std::string& output) {
  FaultReport report;
  report.fault = Fault::UninitializedRead;
  report.message = "the kernel has issued no instruction, and nothing has written " + output;
  report.help = "look for a condition that leaves its body out: an #if, the tiling key, or the loop's bounds";
  report.kernel = kernel.name;
  return report;
}

LaunchRecord run_kernel(const KernelEntry& kernel, const BoundCall& call, const opkit_tensor* outputs,
                        TilingResult& tiling, void* workspace, bool poisons, std::vector<opkit_shape>& computed) {
  const Signature& signature = call.signature();
  ComputedShapes written_shapes(call);
  const size_t wanted = signature.inputs.size() + signature.outputs.size() + (written_shapes.is_empty() ? 2 : 3);
  if (kernel.argument_count != wanted) {
    fail(OPKIT_USAGE, "[" + call.entry().type + "] its kernel " + kernel.name + " has " +
                          std::to_string(kernel.argument_count) + " parameters; it is called with " +
                          std::to_string(wanted) + ": " + std::to_string(signature.inputs.size()) + " inputs, " +
                          std::to_string(signature.outputs.size()) + " outputs, " +
                          (written_shapes.is_empty() ? "" : "their shapes, ") + "workspace, tiling");
  }
  std::vector<void*> addresses;
  std::vector<GmRange> ranges;
  addresses.reserve(kernel.argument_count);
  ranges.reserve(call.inputs().size() + call.outputs().size() + kernel.argument_count);
  const auto touch = [&](std::string name, void* data, uint64_t size_bytes, bool is_written, uint64_t padding = 0) {
    const auto begin = reinterpret_cast<uint64_t>(data);
    ranges.push_back({begin, begin + size_bytes, is_written, std::move(name), nullptr, padding});
  };
  const auto add = [&](std::string name, void* data, uint64_t size_bytes, bool is_written = true) {
    addresses.push_back(data);
    touch(std::move(name), data, size_bytes, is_written);
  };
  // Dynamic params are passed as one list each; these keep them alive.
  std::list<std::vector<uint64_t>> lists;
  const auto add_param = [&](const Param& param, const gert::AnchorInstanceInfo& info, const auto& shape_of,
                             const auto& data_of) {
    const size_t start = info.GetInstanceStart();
    if (param.presence == Presence::Dynamic) {
      auto& words = lists.emplace_back(tensor_list(start, info.GetInstanceNum(), shape_of, data_of));
      return add("the list of " + param.name, words.data(), words.size() * sizeof(uint64_t));
    }
    addresses.push_back(info.GetInstanceNum() == 0 ? nullptr : data_of(start));
  };
  const gert::ComputeNodeInfo& node = call.node();
  const auto input_shape = [&](size_t i) -> const gert::Shape& { return call.inputs()[i].GetOriginShape(); };
  const auto output_shape = [&](size_t i) -> const gert::Shape& { return call.outputs()[i].GetOriginShape(); };
  std::vector<void*> input_data;
  Staging staging(Device::get().config().chip_bounds ? kAllocatorBlock : kDataBlock);
  input_data.reserve(call.inputs().size());
  staging.reserve(call.inputs().size() + call.outputs().size());
  for (size_t i = 0; i < call.inputs().size(); ++i) {
    const uint64_t size_bytes = tensor_bytes(input_shape(i).GetShapeSize(), call.inputs()[i].GetDataType());
    input_data.push_back(call.input_data(i));
    if (const std::optional<size_t> output = call.in_place_output(i)) {
      // One name, one tensor: it is the output's memory, which begins as the input.
      if (outputs[*output].data != input_data[i] && size_bytes != 0) {
        std::memcpy(outputs[*output].data, input_data[i], size_bytes);
      }
      input_data[i] = outputs[*output].data;
    }
    staging.add(input_data[i], size_bytes);
  }
  std::vector<bool> begins_written;
  for (size_t i = 0; i < call.outputs().size(); ++i) {
    const uint64_t size_bytes = tensor_bytes(output_shape(i).GetShapeSize(), outputs[i].dtype);
    const bool is_in_place = std::find(input_data.begin(), input_data.end(), outputs[i].data) != input_data.end();
    if (poisons && size_bytes != 0 && !is_in_place) {
      std::memset(outputs[i].data, poison_byte(outputs[i].dtype), size_bytes);
    }
    const InitialValue* initial = initial_value(call.output_param(i), outputs[i].dtype);
    const bool is_filled = tiling.needs_atomic && initial != nullptr;
    if (is_filled) fill(outputs[i].data, size_bytes, *initial);
    begins_written.push_back(is_in_place || is_filled);
    staging.add(outputs[i].data, size_bytes);
  }
  staging.copy_in(kPaddingByte);
  for (size_t i = 0; i < input_data.size(); ++i) {
    const uint64_t size_bytes = tensor_bytes(input_shape(i).GetShapeSize(), call.inputs()[i].GetDataType());
    const uint64_t room = staging.size_bytes(input_data[i], size_bytes);
    touch("input " + call.input_param(i).name, staging.address(input_data[i]), room, true, room - size_bytes);
  }
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    add_param(signature.inputs[i], *node.GetInputInstanceInfo(i), input_shape,
              [&](size_t index) { return staging.address(input_data[index]); });
  }
  for (size_t i = 0; i < call.outputs().size(); ++i) {
    const uint64_t size_bytes = tensor_bytes(output_shape(i).GetShapeSize(), outputs[i].dtype);
    const uint64_t room = staging.size_bytes(outputs[i].data, size_bytes);
    touch("output " + call.output_param(i).name, staging.address(outputs[i].data), room, begins_written[i],
          room - size_bytes);
    ranges.back().is_output = true;
  }
  for (size_t i = 0; i < signature.outputs.size(); ++i) {
    add_param(signature.outputs[i], *node.GetOutputInstanceInfo(i), output_shape,
              [&](size_t index) { return staging.address(outputs[index].data); });
  }
  if (!written_shapes.is_empty()) add("the shapes of outputs", written_shapes.data(), written_shapes.size_bytes());
  const Workspace own(workspace == nullptr ? tiling.workspace_bytes : 0, poisons);
  add("the workspace", workspace == nullptr ? own.data() : workspace, tiling.workspace_bytes, false);
  add("the tiling data", tiling.data.data(), tiling.data.size());

  std::vector<void*> arguments;
  arguments.reserve(addresses.size());
  for (void*& address : addresses) arguments.push_back(&address);
  Launch launch;
  launch.kernel = kernel.name;
  launch.invoke = kernel.invoke;
  launch.arguments = arguments.data();
  launch.mode = kernel.mode;
  launch.system_workspace = static_cast<uint8_t*>(workspace == nullptr ? own.data() : workspace);
  launch.block_dim = tiling.block_dim;
  launch.tiling_key = tiling.tiling_key;
  launch.chooses_branch = true;
  launch.gm = sorted_ranges(std::move(ranges));
  // Launches that a verdict is made of are poisoned or watched: only they pay for the copies.
  const bool keeps_inputs = poisons || Device::get().is_watched();
  std::vector<InputBytes> inputs_before;
  for (size_t i = 0; keeps_inputs && i < input_data.size(); ++i) {
    const bool is_output = std::any_of(call.outputs().begin(), call.outputs().end(), [&](const auto& output) {
      return outputs[&output - call.outputs().data()].data == input_data[i];
    });
    if (is_output) continue;
    const uint64_t size_bytes = tensor_bytes(input_shape(i).GetShapeSize(), call.inputs()[i].GetDataType());
    inputs_before.emplace_back(call.input_param(i).name, staging.address(input_data[i]), size_bytes);
  }
  LaunchRecord record = Device::get().run(launch);
  changed_inputs.clear();
  for (const InputBytes& input : inputs_before) {
    if (input.is_changed()) changed_inputs.push_back(input.name);
  }
  for (size_t i = 0; i < call.outputs().size(); ++i) staging.copy_out(outputs[i].data);
  const bool is_empty = record.fault.fault == Fault::None && record.instructions == 0;
  for (size_t i = 0; poisons && is_empty && i < call.outputs().size(); ++i) {
    const uint64_t size_bytes = tensor_bytes(output_shape(i).GetShapeSize(), outputs[i].dtype);
    if (begins_written[i] || !is_untouched(outputs[i].data, size_bytes, poison_byte(outputs[i].dtype))) continue;
    record.fault = empty_launch(kernel, "output " + call.output_param(i).name);
    break;
  }
  staging.each_copy(
      [](const uint8_t* from, const uint8_t* to, uint64_t bytes) { Device::get().tell_moved(from, to, bytes); });
  if (record.fault.fault == Fault::None) written_shapes.read_into(computed);
  return record;
}

const std::vector<std::string>& last_changed_inputs() { return changed_inputs; }

std::string fault_text(const FaultReport& report) {
  std::string text = report.message + " [" + fault_id(report.fault) + "]";
  const std::string source = report.file.empty() ? "" : report.file + ":" + std::to_string(report.line) + "      ";
  text += "\n  --> " + source + report.kernel + " block " + std::to_string(report.block) + " " + report.sub_core +
          ", pipe " + pipe_name(report.pipe) + ", instruction " + std::to_string(report.instruction);
  return report.help.empty() ? text : text + "\n  help: " + report.help;
}

}  // namespace opkit::host
