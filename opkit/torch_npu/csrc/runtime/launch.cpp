#include "runtime/launch.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <vector>

#include "runtime/device.h"
#include "runtime/fallback.h"
#include "runtime/faults.h"
#include "opkit/direct_launch.h"
#include "opkit/kernel_entry.h"
#include "aten/parts.h"

namespace opkit::npu {
namespace {

using kernels::kMaxOperands;
using kernels::kOuter;
using kernels::VectorProgram;

struct KernelTables {
  std::map<std::string, KernelEntry> entries;
  KernelEntry vector_program{};
};
std::atomic<const KernelTables*> tables{nullptr};

void run(const KernelEntry& entry, const char* name, void* const* arguments, const opkit_gm_range* ranges,
         size_t range_count, uint32_t blocks, c10::DeviceIndex device) {
  opkit_direct_launch launch{};
  launch.kernel = name;
  launch.invoke = entry.invoke;
  launch.arguments = arguments;
  launch.mode = static_cast<uint32_t>(entry.mode);
  launch.block_dim = blocks;
  launch.ranges = ranges;
  launch.range_count = range_count;
  // Whoever catches KeyboardInterrupt goes on with tensors that are written or not, as on the CPU, and never in part.
  launch.ends_before_interrupt = 1;
  opkit_status status = OPKIT_OK;
  tell_listener(CallKind::Launch, name, 0);
  {
    const StreamTimer timer(device);
    status = opkit_launch_direct(&launch);
  }
  if (status != OPKIT_OK) report_fault(device, c10::str(name, " on npu: ", opkit_last_error()));
}

uint32_t bytes_of(kernels::Kind kind) {
  using kernels::Kind;
  switch (kind) {
    case Kind::S64: return 8;
    case Kind::F32:
    case Kind::S32: return 4;
    case Kind::F16:
    case Kind::BF16:
    case Kind::S16: return 2;
    default: return 1;
  }
}

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

/// What a launch tells the kernel of a program, whatever it runs on: one element in each dim.
void describe(const Program& program, c10::ArrayRef<Number> numbers, kernels::Fold fold, VectorProgram& data) {
  std::memset(&data, 0, offsetof(VectorProgram, steps));
  data.bytes = sizeof(data);
  data.fold = fold;
  data.register_count = program.register_count;
  data.body_count = program.body_count;
  data.step_count = static_cast<uint32_t>(program.steps.size());
  data.fold_reg = program.fold_register;
  data.acc_reg = program.folded_register;
  std::memcpy(data.steps, program.steps.data(), program.steps.size() * sizeof(kernels::Instruction));
  for (const NumberSlot& slot : program.slots) {
    data.steps[slot.step].value = static_cast<float>(numbers[slot.number].real);
    data.steps[slot.step].whole = numbers[slot.number].whole;
  }
  for (uint32_t d = 0; d < kOuter; ++d) data.outer[d] = data.fold_outer[d] = 1;
}

/// Cycles of the vector unit for 64 elements, about: what is no instruction of its own is some twenty of them.
double cycles_of(kernels::Step step) {
  using kernels::Step;
  switch (step) {
    case Step::Div:
    case Step::Sigmoid:
    case Step::RowSum:
    case Step::RowMax:
    case Step::RowMin: return 8;
    case Step::Exp:
    case Step::Ln:
    case Step::Sqrt:
    case Step::Select:
    case Step::Lt:
    case Step::Le:
    case Step::Gt:
    case Step::Ge:
    case Step::Eq:
    case Step::Ne: return 2;
    case Step::FloorDiv:
    case Step::Remainder:
    case Step::Fmod:
    case Step::Power: return 20;
    default: return step >= Step::Sin && step <= Step::Log10 ? 20 : 1;
  }
}

/// The vector cores that a launch over so many elements is worth.
int64_t fair_cores(const Program& program, const VectorProgram& data, double elements) {
  opkit_core_work work{};
  double cycles = 0;
  for (const kernels::Instruction& step : program.steps) cycles += cycles_of(step.step);
  for (uint32_t i = 0; i < data.operand_count; ++i) {
    const kernels::Operand& operand = data.operands[i];
    if (operand.kind != kernels::Kind::F32) cycles += 1;
    if (operand.row_stride == 0) continue;
    (operand.is_output ? work.written_bytes : work.read_bytes) += elements * bytes_of(operand.kind);
  }
  work.vector_cycles = elements * cycles / 64;
  return opkit_fair_cores(&work);
}

/// Where the cores that share a fold leave their parts' values.
at::Tensor meeting_place(int64_t blocks, VectorProgram& data) {
  at::Tensor space = empty({blocks * kernels::kPartFloats}, at::kFloat);
  data.space = reinterpret_cast<uint64_t>(space.data_ptr());
  return space;
}

/// Elements of a tile of one line, or of several that the cores share.
uint32_t tile_for(const Program& program, int64_t elements, int64_t cores) {
  const int64_t limit = std::min<int64_t>(program.tile_limit, 8192);
  const int64_t fair = round_up((elements + cores - 1) / cores, 64);
  const int64_t tile = std::min(limit, std::max<int64_t>(std::min<int64_t>(fair, limit), 2048));
  return static_cast<uint32_t>(std::min(tile, round_up(elements, 64)));
}

}  // namespace

bool has_kernels() { return tables.load(std::memory_order_acquire) != nullptr; }

std::string load_kernels(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::string("the npu device's kernels cannot be loaded: ") + dlerror();
  const auto* table = static_cast<const KernelTable*>(dlsym(library, "opkit_kernel_table"));
  if (table == nullptr || !is_compatible(*table)) return std::string(path) + " was built by another opkit";
  auto* made = new KernelTables();
  for (uint32_t i = 0; i < table->count; ++i) made->entries[table->entries[i].name] = table->entries[i];
  made->vector_program = made->entries.at("vector_program");
  tables.store(made, std::memory_order_release);
  return "";
}

std::optional<kernels::Kind> kind_of(at::ScalarType type) {
  using kernels::Kind;
  switch (type) {
    case at::kFloat: return Kind::F32;
    case at::kHalf: return Kind::F16;
    case at::kBFloat16: return Kind::BF16;
    case at::kInt: return Kind::S32;
    case at::kShort: return Kind::S16;
    case at::kChar: return Kind::S8;
    case at::kByte: return Kind::U8;
    case at::kBool: return Kind::Bool;
    case at::kLong: return Kind::S64;
    default: return std::nullopt;
  }
}

uint32_t vector_cores() {
  static const uint32_t count = std::max(1u, opkit_core_count(1));
  return count;
}
uint32_t cube_cores() {
  static const uint32_t count = std::max(1u, opkit_core_count(0));
  return count;
}

void launch(const char* kernel, const char* name, c10::ArrayRef<void*> pointers, c10::ArrayRef<Range> touched,
            const void* plan, size_t plan_bytes, uint32_t blocks, c10::DeviceIndex device) {
  const KernelTables* loaded = tables.load(std::memory_order_acquire);
  c10::SmallVector<void*, 8> addresses(pointers.begin(), pointers.end());
  addresses.push_back(const_cast<void*>(plan));
  c10::SmallVector<void*, 8> arguments;
  for (void*& address : addresses) arguments.push_back(&address);
  c10::SmallVector<opkit_gm_range, 8> ranges;
  for (const Range& range : touched) ranges.push_back({range.data, range.bytes, nullptr, range.is_written});
  ranges.push_back({plan, plan_bytes, "the plan", 1});
  run(loaded->entries.at(kernel), name, arguments.data(), ranges.data(), ranges.size(), blocks, device);
}

const char* run_program(const Program& program, const MapCall& call, c10::DeviceIndex device) {
  const KernelTables* loaded = tables.load(std::memory_order_acquire);
  c10::SmallVector<std::pair<const Argument*, uint8_t>, kMaxOperands> operands;
  // An input that the formula does not read has no register: loading it would overwrite another's.
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (program.is_input_used[i]) operands.emplace_back(&call.inputs[i], program.input_registers[i]);
  }
  const size_t input_count = operands.size();
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    operands.emplace_back(&call.outputs[i], program.output_registers[i]);
  }
  const size_t operand_count = operands.size();
  if (operand_count > kMaxOperands) return "more operands than the kernel takes";
  const int dims = static_cast<int>(call.shape.size());
  VectorProgram data;
  describe(program, call.numbers, call.fold, data);
  data.is_whole = call.is_whole;
  data.row = dims > 0 ? call.shape[0] : 1;
  data.fold_row = dims > 0 && (call.folded & 1) != 0;
  uint32_t kept = 0;
  uint32_t folded = 0;
  int kept_dims[kOuter] = {};
  int folded_dims[kOuter] = {};
  for (int d = 1; d < dims; ++d) {
    const bool is_folded = (call.folded >> d & 1) != 0;
    uint32_t& count = is_folded ? folded : kept;
    if (count == kOuter) return "more dims than the kernel takes";
    (is_folded ? data.fold_outer : data.outer)[count] = call.shape[d];
    (is_folded ? folded_dims : kept_dims)[count] = d;
    ++count;
  }
  void* addresses[kMaxOperands + 1];
  opkit_gm_range ranges[kMaxOperands + 2];
  uint32_t least_bytes = 8;
  for (size_t i = 0; i < operand_count; ++i) {
    const Argument& from = *operands[i].first;
    kernels::Operand& operand = data.operands[i];
    const bool is_output = i >= input_count;
    operand.kind = from.kind;
    operand.is_output = is_output;
    operand.reg = operands[i].second;
    operand.row_stride = dims > 0 ? from.strides[0] : 0;
    if (data.row == 1) operand.row_stride = 1;
    if (operand.row_stride != 0 && operand.row_stride != 1) return "elements of a row do not lie side by side";
    for (uint32_t k = 0; k < kept; ++k) operand.strides[k] = from.strides[kept_dims[k]];
    for (uint32_t k = 0; k < folded; ++k) data.fold_strides[i][k] = from.strides[folded_dims[k]];
    addresses[i] = from.data;
    ranges[i] = {from.data, from.extent_bytes, nullptr, !is_output};
    least_bytes = std::min(least_bytes, bytes_of(from.kind));
  }
  data.operand_count = static_cast<uint32_t>(operand_count);

  // Rows that are short share a tile; rows that are long are cut, unless a step goes over the whole of them.
  const int64_t limit = std::min<int64_t>(program.tile_limit, 8192);
  const int64_t pitch = round_up(data.row, std::max<int64_t>(8, 32 / least_bytes));
  int64_t outer = 1;
  for (uint32_t d = 0; d < kOuter; ++d) outer *= data.outer[d];
  int64_t folded_lines = 1;
  for (uint32_t d = 0; d < kOuter; ++d) folded_lines *= data.fold_outer[d];
  const auto elements = static_cast<double>(outer * folded_lines * data.row);
  // Whole numbers are the scalar unit's: so many of them that the launch's own time counts for little.
  const int64_t cores = call.is_whole ? vector_cores() : fair_cores(program, data, elements);
  if (pitch <= limit / 2 && data.outer[0] > 1 && !call.is_whole) {
    int64_t rows = std::min<int64_t>(limit / pitch, data.outer[0]);
    // A part for each core, where there is enough for a part.
    const int64_t fair = std::max<int64_t>(1, (outer + cores - 1) / cores);
    rows = std::min<int64_t>(rows, std::max<int64_t>(fair, std::max<int64_t>(1, 2048 / pitch)));
    // A store's gap between rows cannot be negative.
    for (size_t i = input_count; i < operand_count; ++i) {
      if (data.operands[i].strides[0] < (data.operands[i].row_stride == 0 ? 1 : data.row)) rows = 1;
    }
    data.rows = static_cast<uint32_t>(std::min<int64_t>(rows, 4095));
    data.pitch = static_cast<uint32_t>(pitch);
    data.tile = static_cast<uint32_t>(round_up(pitch * data.rows, 64));
    if (data.tile == data.pitch) data.tile += 64;
  } else if (program.has_rows) {
    if (pitch >= limit) return "a row is longer than the core's memory takes";
    data.rows = 1;
    data.pitch = static_cast<uint32_t>(pitch);
    data.tile = static_cast<uint32_t>(round_up(pitch + 1, 64));
  } else {
    data.tile = tile_for(program, data.row, cores);
    data.rows = 1;
    data.pitch = data.tile;
  }
  const int64_t tiles = data.pitch < data.tile || data.fold_row ? 1 : (data.row + data.tile - 1) / data.tile;
  const int64_t items = tiles * ((data.outer[0] + data.rows - 1) / data.rows) * (outer / data.outer[0]);
  const int64_t work = outer * data.row * (call.is_whole ? 64 : 1);
  auto blocks = static_cast<uint32_t>(std::max<int64_t>(1, std::min<int64_t>({items, cores, (work + 4095) / 4096})));
  at::Tensor space;
  if (data.fold_row && data.rows == 1 && !call.is_whole) {
    const int64_t parts = std::min(cores / items, folded_lines * ((data.row + data.tile - 1) / data.tile));
    if (parts > 1) {
      data.parts = static_cast<uint32_t>(parts);
      blocks = static_cast<uint32_t>(items * parts);
      space = meeting_place(blocks, data);
    }
  }

  const VectorProgram* address = &data;
  void* arguments[kMaxOperands + 1];
  for (size_t i = operand_count; i < kMaxOperands; ++i) addresses[i] = nullptr;
  for (size_t i = 0; i < kMaxOperands; ++i) arguments[i] = &addresses[i];
  arguments[kMaxOperands] = &address;
  ranges[operand_count] = {&data, sizeof(data), "the program", 1};
  size_t range_count = operand_count + 1;
  if (space.defined()) ranges[range_count++] = {space.data_ptr(), space.nbytes(), nullptr, 0};
  run(loaded->vector_program, call.name, arguments, ranges, range_count, blocks, device);
  return nullptr;
}

const char* run_list(const Program& program, const ListCall& call, c10::DeviceIndex device) {
  const size_t given = call.kinds.size(), inputs = program.input_registers.size();
  VectorProgram data;
  describe(program, call.numbers, call.fold, data);
  data.fold_row = call.fold != kernels::Fold::None;
  int64_t elements = 0;
  for (const int64_t size : call.sizes) elements += size;
  data.rows = 1;
  data.row = elements;
  // An input that the formula does not read has no register, and is no operand.
  c10::SmallVector<size_t, kMaxOperands> operands;
  for (size_t i = 0; i < given; ++i) {
    if (i >= inputs || program.is_input_used[i]) operands.push_back(i);
  }
  if (operands.size() > kMaxOperands) return "more operands than the kernel takes";
  data.operand_count = static_cast<uint32_t>(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    const bool is_output = operands[i] >= inputs;
    kernels::Operand& operand = data.operands[i];
    operand.kind = call.kinds[operands[i]];
    operand.is_output = is_output;
    operand.reg = is_output ? program.output_registers[operands[i] - inputs] : program.input_registers[operands[i]];
    operand.row_stride = is_output && data.fold_row ? 0 : 1;
  }
  const int64_t cores = fair_cores(program, data, static_cast<double>(elements));
  data.tile = data.pitch = tile_for(program, elements, cores);
  std::vector<kernels::ListEntry> entries(call.sizes.size());
  std::vector<Range> ranges;
  int64_t tiles = 0;
  for (size_t e = 0; e < entries.size(); ++e) {
    entries[e].size = call.sizes[e];
    for (size_t i = 0; i < operands.size(); ++i) {
      char* const address = call.data[e * given + operands[i]];
      entries[e].addresses[i] = reinterpret_cast<uint64_t>(address);
      const int64_t count = data.operands[i].row_stride == 0 ? 1 : call.sizes[e];
      ranges.push_back(
          {address, static_cast<uint64_t>(count) * bytes_of(data.operands[i].kind), data.operands[i].is_output == 0});
    }
    tiles += data.fold_row ? 1 : (call.sizes[e] + data.tile - 1) / data.tile;
  }
  const auto count = static_cast<uint32_t>(entries.size());
  auto blocks = static_cast<uint32_t>(std::clamp<int64_t>(std::min(tiles, (elements + 4095) / 4096), 1, cores));
  at::Tensor space;
  if (data.fold_row && 2 * tiles <= cores) {
    // Each line has cores by its length, and one at least.
    blocks = 0;
    for (kernels::ListEntry& entry : entries) {
      const int64_t fair = (cores - tiles + 1) * entry.size / elements, most = (entry.size + data.tile - 1) / data.tile;
      entry.first_block = blocks;
      entry.parts = static_cast<uint32_t>(std::clamp<int64_t>(std::min(fair, most), 1, cores));
      blocks += entry.parts;
    }
    data.parts = 1;
    space = meeting_place(blocks, data);
    ranges.push_back({space.data_ptr(), space.nbytes(), false});
  }
  ranges.push_back({entries.data(), entries.size() * sizeof(entries[0]), true});
  ranges.push_back({&count, sizeof(count), true});
  launch("vector_list", call.name, {entries.data(), const_cast<uint32_t*>(&count)}, ranges, &data, sizeof(data), blocks,
         device);
  return nullptr;
}

}  // namespace opkit::npu

extern "C" __attribute__((visibility("default"))) const char* opkit_npu_kernels(const char* path) {
  static thread_local std::string error;
  error = opkit::npu::load_kernels(path);
  return error.empty() ? nullptr : error.c_str();
}
