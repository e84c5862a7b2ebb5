#include "observe/timing_costs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string>

#include "isa/table.h"

namespace opkit {
namespace {

constexpr uint32_t kTypeCount = static_cast<uint32_t>(DType::kCount);
constexpr uint32_t kMostBankGroups = 64;
constexpr uint32_t kMostBankBytes = 1024;
constexpr uint32_t kOpCount = static_cast<uint32_t>(Op::kCount);

/// Key suffixes by DType: the names that opkit/dtypes.py uses.
constexpr const char* kTypeKeys[] = {"float16", "bfloat16", "float32", "int8",   "uint8", "int16",   "uint16",
                                     "int32",   "uint32",   "int64",   "uint64", "bool",  "float64", "int4"};
static_assert(sizeof(kTypeKeys) / sizeof(kTypeKeys[0]) == kTypeCount, "one key for each DType");

/// Key suffixes by LibraryWork.
constexpr const char* kLibraryWorkKeys[] = {"start",        "block",        "step",        "copy",
                                            "static_start", "static_block", "static_step", "static_copy"};
static_assert(sizeof(kLibraryWorkKeys) / sizeof(kLibraryWorkKeys[0]) == static_cast<size_t>(LibraryWork::kCount),
              "one key for each LibraryWork");

/// The chip's numbers, some of them replaced.
struct Numbers {
  const Chip& chip;
  const std::vector<std::pair<std::string, double>>& replaced;

  double number(const std::string& key) const {
    for (const auto& [name, value] : replaced) {
      if (name == key) return value;
    }
    return chip.number(key);
  }
  bool has_number(const std::string& key) const { return chip.has_number(key); }

  /// A whole number from 1 to `most`.
  uint32_t count(const std::string& key, uint32_t most) const {
    const double value = number(key);
    if (value >= 1 && value <= most && value == std::floor(value)) return static_cast<uint32_t>(value);
    throw std::out_of_range("chip " + chip.name + ": " + key + " is " + std::to_string(value) +
                            ", and the timing model takes whole numbers from 1 to " + std::to_string(most));
  }
};

/// The most specific number: of the instruction, else of its cost class; for the type, else for any type.
double repeat_number(const Numbers& chip, const OpRow& row, uint32_t type) {
  const std::string op = std::string("timing.op.") + row.name + ".";
  const std::string cost = std::string("timing.cost.") + cost_name(row.cost) + ".";
  for (const std::string& stem : {op, cost}) {
    if (chip.has_number(stem + kTypeKeys[type])) return chip.number(stem + kTypeKeys[type]);
    if (chip.has_number(stem + "any")) return chip.number(stem + "any");
  }
  return chip.number(cost + "any");
}

CopyCosts read_copy(const Numbers& chip, const std::string& stem) {
  CopyCosts copy;
  copy.startup_cycles = chip.number(stem + "startup_cycles");
  copy.instruction_cycles = chip.number(stem + "instruction_cycles");
  copy.burst_cycles = chip.number(stem + "burst_cycles");
  copy.bytes_per_cycle = chip.number(stem + "bytes_per_cycle");
  copy.unaligned_rate = chip.number(stem + "unaligned_rate");
  copy.partial_block_cycles = chip.number(stem + "partial_block_cycles");
  return copy;
}

void read_cube(const Numbers& chip, TimingCosts& costs) {
  const auto optional = [&chip](const char* key) { return chip.has_number(key) ? chip.number(key) : 0; };
  const double load_startup = chip.number("timing.mte1.load_2d_startup_cycles");
  costs.load_3d_startup = chip.number("timing.mte1.load_3d_startup_cycles");
  const double load_issue = chip.number("timing.mte1.load_2d_instruction_cycles");
  costs.load_l0a = {load_startup, load_issue, chip.number("timing.mte1.l0a_bytes_per_cycle")};
  costs.load_l0b = {load_startup, load_issue, chip.number("timing.mte1.l0b_bytes_per_cycle")};
  costs.bias_table = {optional("timing.mte1.bias_table_startup_cycles"), 0,
                      optional("timing.mte1.bias_table_bytes_per_cycle")};
  costs.fixpipe.startup_cycles = chip.number("timing.fixpipe.startup_cycles");
  costs.fixpipe.bytes_per_cycle = optional("timing.fixpipe.to_gm_bytes_per_cycle");
  costs.fixpipe_elements_per_cycle = optional("timing.fixpipe.to_gm_elements_per_cycle");
  costs.fixpipe_to_l1 = {costs.fixpipe.startup_cycles, 0, optional("timing.fixpipe.to_l1_fp16_bytes_per_cycle")};
  costs.fixpipe_b8_rate = optional("timing.fixpipe.to_l1_int8_bytes_per_cycle");
  costs.cube_startup = chip.number("timing.cube.startup_cycles");
  costs.cube_startup_idle = chip.number("timing.cube.startup_idle_cycles");
  costs.cube_macs.assign(kTypeCount, 0.0f);
  const auto macs = [&](DType type, const char* key) {
    costs.cube_macs[static_cast<uint32_t>(type)] = static_cast<float>(optional(key));
  };
  macs(DType::F16, "timing.cube.macs_per_cycle.fp16");
  macs(DType::BF16, "timing.cube.macs_per_cycle.fp16");
  macs(DType::F32, "timing.cube.macs_per_cycle.fp32");
  costs.cube_hf32_macs = static_cast<float>(optional("timing.cube.macs_per_cycle.hf32"));
  macs(DType::S8, "timing.cube.macs_per_cycle.int8");
  macs(DType::U8, "timing.cube.macs_per_cycle.int8");
  macs(DType::S4, "timing.cube.macs_per_cycle.int4");
}

/// Bytes over a rate that the chip may not have: then it lacks the path as well.
double cycles_of(uint64_t bytes, double rate) { return rate > 0 ? static_cast<double>(bytes) / rate : 0; }

uint32_t widest_element(const Instr& instr) {
  uint32_t bytes = size_bytes(instr.dst.dtype);
  for (uint32_t i = 0; i < instr.source_count; ++i) bytes = std::max(bytes, size_bytes(instr.src[i].dtype));
  return bytes;
}

uint64_t repeats_of(const Core& core, const Instr& instr) {
  uint64_t elements = instr.count;
  if (instr.mask_form != MaskForm::Count) {
    const bool has_no_mask = instr.op == Op::Compare || instr.op == Op::CompareScalar;
    if (core.mask_mode != MaskMode::Counter || has_no_mask) return instr.repeat;
    elements = instr.mask_form == MaskForm::Register ? core.mask[0] : instr.mask[0];
  }
  return (elements * widest_element(instr) + kRepeatBytes - 1) / kRepeatBytes;
}

/// Elements of the destination; with mask and repeat, those that the mask lets through.
uint64_t elements_of(const Core& core, const Instr& instr, uint64_t repeats) {
  if (instr.mask_form == MaskForm::Count) return instr.count;
  const bool is_register = instr.mask_form == MaskForm::Register;
  if (core.mask_mode == MaskMode::Counter) return is_register ? core.mask[0] : instr.mask[0];
  if (instr.mask_form == MaskForm::Prefix) return instr.mask[0] * repeats;
  const uint64_t* bits = is_register ? core.mask : instr.mask;
  return repeats * static_cast<uint64_t>(__builtin_popcountll(bits[0]) + __builtin_popcountll(bits[1]));
}

bool is_contiguous(const Instr& instr, const Operand& operand) {
  return instr.mask_form == MaskForm::Count || (operand.block_stride == 1 && operand.repeat_stride == kBlocksPerRepeat);
}

// Banks come in powers of two, and these laws are asked at each instruction: no division where a shift will do.
uint64_t quotient(uint64_t value, uint64_t divisor) {
  return (divisor & (divisor - 1)) == 0 ? value >> __builtin_ctzll(divisor) : value / divisor;
}
uint64_t remainder(uint64_t value, uint64_t divisor) {
  return (divisor & (divisor - 1)) == 0 ? value & (divisor - 1) : value % divisor;
}

/// Most accesses that one bank group gets from `operands` in one repeat.
uint32_t accesses_per_group(const TimingCosts& costs, const Instr& instr, const Operand* operands, uint32_t count,
                            uint64_t repeat) {
  std::array<uint8_t, kMostBankGroups> accesses{};
  uint32_t most = 1;
  for (uint32_t i = 0; i < count; ++i) {
    const Operand& operand = operands[i];
    if (operand.space != Space::UB) continue;
    const bool contiguous = is_contiguous(instr, operand);
    const uint64_t block_stride = contiguous ? 1 : operand.block_stride;
    const uint64_t repeat_stride = contiguous ? kBlocksPerRepeat : operand.repeat_stride;
    const uint64_t first = quotient(operand.address, costs.bank_bytes) + repeat * repeat_stride;
    // Blocks at stride 0 are one block, read once.
    const uint32_t blocks = block_stride == 0 ? 1 : kBlocksPerRepeat;
    for (uint32_t block = 0; block < blocks; ++block) {
      const uint32_t group = static_cast<uint32_t>(remainder(first + block * block_stride, costs.bank_groups));
      most = std::max<uint32_t>(most, ++accesses[group]);
    }
  }
  return most;
}

/// Cycles per repeat that bank groups alone ask for: reads compete with reads, writes with writes.
double bank_cycles(const TimingCosts& costs, const Instr& instr) {
  bool all_contiguous = is_contiguous(instr, instr.dst);
  for (uint32_t i = 0; i < instr.source_count; ++i) all_contiguous &= is_contiguous(instr, instr.src[i]);
  if (all_contiguous && instr.source_count < 2) return 1;
  if (all_contiguous && instr.source_count == 2 && instr.src[0].space == Space::UB && instr.src[1].space == Space::UB) {
    const uint64_t rows = quotient(instr.src[1].address - instr.src[0].address, costs.bank_bytes);
    const uint64_t distance = remainder(rows, costs.bank_groups);
    // Eight neighbouring groups each: they miss each other only at a distance of eight in both directions.
    return distance >= kBlocksPerRepeat && costs.bank_groups - distance >= kBlocksPerRepeat ? 1 : 2;
  }
  double cycles = 0;
  // Repeats alternate between the two halves of the bank groups; two of them show every pattern of aligned strides.
  const uint32_t repeats = all_contiguous ? 1 : 2;
  for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
    const uint32_t reads = accesses_per_group(costs, instr, instr.src, instr.source_count, repeat);
    const uint32_t writes = accesses_per_group(costs, instr, &instr.dst, 1, repeat);
    cycles += std::max(reads, writes);
  }
  return cycles / repeats;
}

constexpr uint64_t kBankRows = 128;

/// Banks that one repeat of an operand takes, a bit for each; `first_row` is where its first repeat begins.
uint64_t banks_of(const TimingCosts& costs, const Instr& instr, const Operand& operand, uint64_t first_row,
                  uint64_t repeat) {
  const bool contiguous = is_contiguous(instr, operand);
  const uint64_t block_stride = contiguous ? 1 : operand.block_stride;
  const uint64_t repeat_stride = contiguous ? kBlocksPerRepeat : operand.repeat_stride;
  const uint64_t first = first_row + repeat * repeat_stride;
  const uint64_t group = remainder(first, costs.bank_groups);
  const uint64_t plane_rows = uint64_t{costs.bank_groups} * kBankRows;
  // What nearly every operand is: neighbouring groups of one plane, known without a look at each block.
  if (block_stride == 1 && group + kBlocksPerRepeat <= costs.bank_groups) {
    constexpr uint64_t kNeighbours = (uint64_t{1} << kBlocksPerRepeat) - 1;
    const uint64_t shift = (quotient(first, plane_rows) * costs.bank_groups + group) % 64;
    if (shift + kBlocksPerRepeat <= 64) return kNeighbours << shift;
  }
  uint64_t banks = 0;
  for (uint64_t block = 0; block < kBlocksPerRepeat; ++block) {
    const uint64_t row = first + block * block_stride;
    const uint64_t plane = quotient(row, plane_rows);
    banks |= uint64_t{1} << ((plane * costs.bank_groups + remainder(row, costs.bank_groups)) % 64);
  }
  return banks;
}

/// Share of repeats that write a bank while the next one reads it.
double read_write_conflicts(const TimingCosts& costs, const Instr& instr, uint64_t repeats) {
  if (repeats < 2 || instr.dst.space != Space::UB || costs.read_write_conflict <= 0) return 0;
  const uint64_t target = quotient(instr.dst.address, costs.bank_bytes);
  const uint64_t written[2] = {banks_of(costs, instr, instr.dst, target, 0),
                               banks_of(costs, instr, instr.dst, target, 1)};
  // Repeats alternate between the two halves of the bank groups: two neighbours show both.
  bool met[2] = {};
  for (uint32_t i = 0; i < instr.source_count; ++i) {
    const Operand& source = instr.src[i];
    if (source.space != Space::UB) continue;
    const uint64_t first = quotient(source.address, costs.bank_bytes);
    for (uint64_t repeat = 0; repeat < 2; ++repeat) {
      met[repeat] |= (banks_of(costs, instr, source, first, repeat + 1) & written[repeat]) != 0;
    }
  }
  return (met[0] + met[1]) / 2.0;
}

}  // namespace

double TimingCosts::launch_us(uint32_t block_dim, SubCore kind) const {
  const uint32_t limit = core_limit[static_cast<uint32_t>(kind)];
  const uint32_t cores = std::min(std::max(block_dim, 1u), limit);
  if (limit <= 1) return launch_one_core_us;
  return launch_one_core_us + (launch_all_cores_us - launch_one_core_us) * (cores - 1) / (limit - 1);
}

TimingCosts read_costs(const Chip& real_chip, const TimingOptions& options) {
  const Numbers chip{real_chip, options.numbers};
  TimingCosts costs;
  costs.clock_mhz = options.clock_mhz > 0 ? options.clock_mhz : real_chip.clock_mhz;
  const double cycles_per_second = costs.clock_mhz * 1e6;
  costs.vector_startup = chip.number("timing.vector.startup_cycles");
  costs.bank_groups = chip.count("memory.ub_bank_groups", kMostBankGroups);
  costs.bank_bytes = chip.count("memory.ub_bank_bytes", kMostBankBytes);
  costs.mte2 = read_copy(chip, "timing.mte2.");
  costs.hbm_read_bytes_per_cycle[0] = chip.number("timing.mte2.aic_bytes_per_cycle");
  costs.hbm_read_bytes_per_cycle[1] = costs.mte2.bytes_per_cycle;
  costs.l2_hit_bytes_per_cycle[0] = chip.number("timing.mte2.l2_hit_aic_bytes_per_cycle");
  costs.l2_hit_bytes_per_cycle[1] = chip.number("timing.mte2.l2_hit_aiv_bytes_per_cycle");
  costs.posted_bytes = chip.number("timing.mte3.posted_bytes");
  costs.nd_to_nz_unaligned_bytes_per_cycle = chip.number("timing.mte2.nd_to_nz_unaligned_bytes_per_cycle");
  costs.same_address_cycles = chip.number("timing.l2.same_address_cycles");
  costs.same_address_others = static_cast<uint32_t>(chip.number("timing.l2.same_address_others"));
  costs.l2_hit_startup = chip.number("timing.mte2.l2_hit_startup_cycles");
  costs.mte3 = read_copy(chip, "timing.mte3.");
  costs.local_copy_bytes_per_cycle = chip.number("timing.local_copy.bytes_per_cycle");
  costs.local_copy_startup = chip.number("timing.local_copy.startup_cycles");
  read_cube(chip, costs);
  costs.alignment_bytes = static_cast<uint32_t>(chip.number("timing.gm.alignment_bytes"));
  costs.hbm_bytes_per_cycle = chip.number("timing.hbm.bytes_per_second") / cycles_per_second;
  costs.hbm_burst_bytes = chip.number("timing.hbm.burst_overhead_bytes");
  costs.hbm_joint_exponent = chip.number("timing.hbm.joint_exponent");
  costs.drift_share = chip.number("timing.hbm.drift_share");
  costs.drift_variation = chip.number("timing.hbm.drift_variation");
  costs.write_bytes_per_cycle = chip.number("timing.mte3.all_cores_bytes_per_second") / cycles_per_second;
  costs.l2_bytes = static_cast<uint64_t>(chip.number("memory.l2_bytes"));
  costs.has_inputs_in_l2 = chip.number("timing.l2.has_inputs") != 0;
  costs.l0c_bytes = static_cast<uint64_t>(chip.number("memory.l0c_bytes"));
  costs.launch_one_core_us = chip.number("timing.launch.one_core_us");
  costs.launch_all_cores_us = chip.number("timing.launch.all_cores_us");
  costs.scalar_wake_cycles = chip.number("timing.scalar.wake_cycles");
  costs.system_counter_mhz = chip.number("timing.system_counter_mhz");
  costs.entry_cycles = chip.number("timing.launch.entry_cycles");
  costs.cross_core_cycles = chip.number("timing.cross_core.signal_cycles");
  costs.message_cycles = chip.number("timing.matmul.message_cycles");
  costs.read_write_conflict = chip.number("timing.vector.read_write_conflict_cycles");
  costs.queue_instructions = static_cast<uint32_t>(chip.number("timing.queue.instructions"));
  costs.queue_share_of_library = chip.number("timing.matmul.queue_share");
  for (const char* work : kLibraryWorkKeys) {
    costs.library_cycles.push_back(static_cast<float>(chip.number(std::string("timing.matmul.") + work + "_cycles")));
  }
  costs.core_limit[0] = std::max(1u, real_chip.aic_count);
  costs.core_limit[1] = std::max(1u, real_chip.aiv_count);

  costs.repeat_cycles.assign(kOpCount * kTypeCount, 0.0f);
  costs.issue_cycles.assign(kOpCount, 0.0f);
  for (uint32_t index = 0; index < kOpCount; ++index) {
    const OpRow& row = row_of(static_cast<Op>(index));
    if (is_vector(row.cost)) {
      for (uint32_t type = 0; type < kTypeCount; ++type) {
        costs.repeat_cycles[index * kTypeCount + type] = static_cast<float>(repeat_number(chip, row, type));
      }
    }
    const double issue = chip.number(std::string("timing.scalar.") + issue_name(row.cost) + "_cycles");
    costs.issue_cycles[index] = static_cast<float>(issue);
  }
  return costs;
}

VectorWork vector_work(const TimingCosts& costs, const Core& core, const Instr& instr) {
  VectorWork work;
  work.repeats = repeats_of(core, instr);
  work.elements = elements_of(core, instr, work.repeats);
  const DType type = instr.source_count > 0 ? instr.src[0].dtype : instr.dst.dtype;
  const double law = costs.repeat_cycles_of(instr.op, type);
  double banks = bank_cycles(costs, instr);
  // Where reads wait for each other already, or the pipe for its arithmetic, a write finds its cycle.
  if (banks <= 1 && law <= 1) {
    banks = std::max(banks, law) + costs.read_write_conflict * read_write_conflicts(costs, instr, work.repeats);
  }
  work.cycles = static_cast<double>(work.repeats) * std::max(law, banks);
  work.conflict_cycles = static_cast<double>(work.repeats) * std::max(0.0, banks - law);
  return work;
}

LocalWork local_work(const TimingCosts& costs, const Instr& instr, uint64_t copy_bytes) {
  switch (row_of(instr.op).cost) {
    case Cost::mmad: {
      const MatrixProduct& product = *instr.product;
      const auto up = [](uint32_t value, uint32_t unit) { return uint64_t{(value + unit - 1) / unit} * unit; };
      const uint64_t macs =
          up(product.m, kCubeSide) * up(product.n, kCubeSide) * up(product.k, fractal_width(instr.src[0].dtype));
      const DType type = instr.src[0].dtype;
      const bool is_hf32 = type == DType::F32 && product.is_hf32;
      const double work =
          cycles_of(macs, is_hf32 ? costs.cube_hf32_macs : costs.cube_macs[static_cast<uint32_t>(type)]);
      return {work + costs.cube_startup, costs.cube_startup_idle - costs.cube_startup, 0,
              2 * uint64_t{product.m} * product.n * product.k};
    }
    case Cost::fill_l1: {
      const uint64_t bytes = uint64_t{instr.fill->repeat} * instr.fill->blocks * instr.fill->block_bytes;
      const LocalCosts& law = instr.dst.space == Space::L0B ? costs.load_l0b : costs.load_l0a;
      return {cycles_of(bytes, law.bytes_per_cycle), law.startup_cycles, bytes, 0};
    }
    case Cost::load_3d: {
      const ImageLoad& image = *instr.image;
      const uint64_t bytes =
          uint64_t{image.repeat} * ((image.rows + kCubeSide - 1) / kCubeSide) *
          ((image.columns + fractal_width(instr.src[0].dtype) - 1) / fractal_width(instr.src[0].dtype)) * kFractalBytes;
      const LocalCosts& law = instr.dst.space == Space::L0B ? costs.load_l0b : costs.load_l0a;
      // Unrolling begins anew with each instruction: published matrix products pay for both of theirs.
      return {costs.load_3d_startup + cycles_of(bytes, law.bytes_per_cycle), 0, bytes, 0};
    }
    case Cost::load_2d: {
      if (instr.fill != nullptr) {
        const uint64_t bytes = uint64_t{instr.fill->repeat} * instr.fill->blocks * instr.fill->block_bytes;
        return {cycles_of(bytes, costs.load_l0a.bytes_per_cycle), costs.load_l0a.startup_cycles, bytes, 0};
      }
      const uint64_t bytes = uint64_t{instr.load->repeat} * instr.load->fractals * kFractalBytes;
      const LocalCosts& law = instr.dst.space == Space::L0B ? costs.load_l0b : costs.load_l0a;
      return {law.instruction_cycles + cycles_of(bytes, law.bytes_per_cycle), law.startup_cycles, bytes, 0};
    }
    case Cost::fixpipe: {
      const uint32_t size = size_bytes(instr.dst.dtype);
      const uint64_t bytes = uint64_t{instr.fixpipe->m} * instr.fixpipe->n * size;
      const double rate = size == 1 ? costs.fixpipe_b8_rate : costs.fixpipe_to_l1.bytes_per_cycle;
      return {cycles_of(bytes, rate), costs.fixpipe_to_l1.startup_cycles, bytes, 0};
    }
    default: break;
  }
  const bool is_to_table = instr.dst.space == Space::BT || instr.dst.space == Space::FB;
  if (is_to_table) {
    return {cycles_of(copy_bytes, costs.bias_table.bytes_per_cycle), costs.bias_table.startup_cycles, copy_bytes, 0};
  }
  return {cycles_of(copy_bytes, costs.local_copy_bytes_per_cycle), costs.local_copy_startup, copy_bytes, 0};
}

Reach reach_of(const Instr& instr, const Operand& operand, uint64_t repeats) {
  const uint64_t begin = operand.address;
  if (instr.mask_form == MaskForm::Count) return {begin, begin + uint64_t{instr.count} * size_bytes(operand.dtype)};
  if (repeats == 0) return {begin, begin};
  const uint64_t pitch = operand.repeat_stride * uint64_t{kBlockBytes};
  const uint64_t width = ((kBlocksPerRepeat - 1) * operand.block_stride + 1) * uint64_t{kBlockBytes};
  return {begin, begin + (repeats - 1) * pitch + width, pitch > width ? pitch : 0, width};
}

}  // namespace opkit
