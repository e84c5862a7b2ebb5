#include "debug/playback.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <new>
#include <tuple>

#include "isa/table.h"
#include "memory/bounds.h"

namespace opkit::debug {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr uint8_t kPoison = 0xff;

size_t whole_pages(size_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

uint8_t* map_memory(size_t bytes) {
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  madvise(mapped, bytes, MADV_HUGEPAGE);
  return static_cast<uint8_t*>(mapped);
}

bool is_control(Op op) { return row_of(op).family == Family::Control; }

/// Calls back with each piece of a memory record and its data.
template <typename Function>
void for_each_piece(uint8_t* at, Function&& function) {
  MemoryRecord record;
  std::memcpy(&record, at, sizeof(record));
  const uint8_t* piece_at = at + sizeof(record);
  uint8_t* data = at + sizeof(record) + record.piece_count * sizeof(MemoryPiece);
  for (uint32_t i = 0; i < record.piece_count; ++i, piece_at += sizeof(MemoryPiece)) {
    MemoryPiece piece;
    std::memcpy(&piece, piece_at, sizeof(piece));
    function(piece, data);
    data += piece.bytes;
  }
}

MemoryRecord::Kind kind_of(const uint8_t* at) {
  MemoryRecord record;
  std::memcpy(&record, at, sizeof(record));
  return record.kind;
}

bool has_nan(const uint8_t* data, uint64_t bytes, DType type, bool also_infinite) {
  const auto is_bad = [&](uint32_t bits, uint32_t exponent, uint32_t fraction) {
    return (bits & exponent) == exponent && ((bits & fraction) != 0 || also_infinite);
  };
  if (type == DType::F32) {
    for (uint64_t at = 0; at + 4 <= bytes; at += 4) {
      uint32_t bits;
      std::memcpy(&bits, data + at, 4);
      if (is_bad(bits, 0x7f800000u, 0x007fffffu)) return true;
    }
    return false;
  }
  const bool is_half = type == DType::F16;
  if (!is_half && type != DType::BF16) return false;
  for (uint64_t at = 0; at + 2 <= bytes; at += 2) {
    uint16_t bits;
    std::memcpy(&bits, data + at, 2);
    if (is_half ? is_bad(bits, 0x7c00u, 0x03ffu) : is_bad(bits, 0x7f80u, 0x007fu)) return true;
  }
  return false;
}

}  // namespace

const char* memory_name(Space space) { return space_name(space); }

Playback::Playback(std::shared_ptr<Recording> recording) : recording_(std::move(recording)) {
  const size_t cores = recording_->cores.size();
  core_steps_.resize(cores);
  checkpoints_.resize(cores);
  shells_.resize(cores);
  for (size_t i = 0; i < recording_->steps.size(); ++i) {
    core_steps_[recording_->steps[i].core].push_back(static_cast<uint32_t>(i));
  }
  for (const Checkpoint& checkpoint : recording_->checkpoints) checkpoints_[checkpoint.core].push_back(&checkpoint);
  launch_.kernel = recording_->kernel.c_str();
  launch_.block_dim = recording_->block_dim;
  state_.launch = &launch_;
  state_.core_count = static_cast<uint32_t>(cores);
  global_position_ = step_count();
}

/// Global memory as it is behind the last instruction. Made when it is first looked at.
void Playback::make_images() {
  if (has_images_) return;
  has_images_ = true;
  for (const RangeRecord& range : recording_->ranges) {
    Image image;
    const uint64_t offset = range.begin % kPageBytes;
    image.memory_bytes = whole_pages(offset + (range.end - range.begin) + kPageBytes);
    image.memory = map_memory(image.memory_bytes);
    image.base = reinterpret_cast<uint64_t>(image.memory) + offset;
    for (size_t i = 0; i < range.pieces.size(); ++i) {
      const MemoryPiece& piece = range.pieces[i];
      std::memcpy(reinterpret_cast<uint8_t*>(image.base + (piece.address - range.begin)),
                  recording_->arena.at(range.data[i]), piece.bytes);
    }
    images_.push_back(image);
    launch_.gm.push_back({image.base, image.base + (range.end - range.begin), range.is_written, range.name, nullptr});
  }
  std::sort(launch_.gm.begin(), launch_.gm.end(),
            [](const GmRange& one, const GmRange& other) { return one.begin < other.begin; });
}

Playback::~Playback() {
  // What is swapped stays as it was recorded: another playback may follow.
  if (has_images_) move_global(step_count());
  for (const auto& shell : shells_) {
    if (shell != nullptr) munmap(shell->memory, shell->memory_bytes);
  }
  if (asking_ != nullptr) munmap(asking_->memory, asking_->memory_bytes);
  for (const Image& image : images_) munmap(image.memory, image.memory_bytes);
}

Playback::Shell& Playback::shell_of(uint32_t index) {
  std::unique_ptr<Shell>& shell = shells_[index];
  if (shell != nullptr) return *shell;
  shell = make_shell();
  become(shell->running.core, index);
  load(*shell, checkpoint_at(index, 0));
  return *shell;
}

std::unique_ptr<Playback::Shell> Playback::make_shell() {
  auto shell = std::make_unique<Shell>();
  const Chip& chip = *recording_->chip;
  for (const uint32_t bytes : chip.space_bytes) shell->memory_bytes += whole_pages(bytes);
  shell->memory = map_memory(shell->memory_bytes);
  Core& core = shell->running.core;
  core.chip = &chip;
  core.launch = &state_;
  core.block_count = recording_->block_dim;
  size_t offset = 0;
  for (uint32_t space = 1; space < 8; ++space) {
    core.space_base[space] = shell->memory + offset;
    core.space_bytes[space] = chip.space_bytes[space];
    offset += whole_pages(chip.space_bytes[space]);
  }
  return shell;
}

void Playback::become(Core& core, uint32_t index) const {
  const CoreRecord& record = recording_->cores[index];
  core.kind = record.kind;
  core.block = record.block;
  core.sub_block = record.sub_block;
  core.index = index;
}

/// The memories as a checkpoint has them; null: as every block begins.
void Playback::load(Shell& shell, const Checkpoint* checkpoint) {
  Core& core = shell.running.core;
  // A vector core has UB, and on some chips the way to L1; poisoning what it cannot reach costs more than the rest.
  const bool is_vector = core.kind == SubCore::AIV && !core.chip->traits().is_coupled;
  for (uint32_t space = 1; space < 8; ++space) {
    if (is_vector && static_cast<Space>(space) != Space::UB) continue;
    std::memset(core.space_base[space], recording_->is_poisoned ? kPoison : 0, core.space_bytes[space]);
  }
  core.sparse_indices.clear();
  core.unit_flags.clear();
  shell.position = 0;
  if (checkpoint == nullptr) return;
  shell.position = checkpoint->core_step;
  const Arena& arena = recording_->arena;
  for (uint32_t space = 1; space < 8; ++space) {
    if (checkpoint->bytes[space] == 0) continue;
    std::memcpy(core.space_base[space], arena.at(checkpoint->data[space]), checkpoint->bytes[space]);
  }
  const auto copy = [&](std::vector<uint8_t>& to, uint64_t from, uint32_t bytes) {
    if (bytes != 0) to.assign(arena.at(from), arena.at(from) + bytes);
  };
  copy(core.sparse_indices, checkpoint->sparse, checkpoint->sparse_bytes);
  copy(core.unit_flags, checkpoint->unit_flags, checkpoint->unit_flag_bytes);
}

const Checkpoint* Playback::checkpoint_at(uint32_t core, uint64_t position) const {
  const std::vector<const Checkpoint*>& all = checkpoints_[core];
  const auto next =
      std::upper_bound(all.begin(), all.end(), position,
                       [](uint64_t value, const Checkpoint* checkpoint) { return value < checkpoint->core_step; });
  return next == all.begin() ? nullptr : *(next - 1);
}

uint64_t Playback::position_of(uint32_t core, uint64_t step) const {
  const std::vector<uint32_t>& steps = core_steps_[core];
  return static_cast<uint64_t>(std::lower_bound(steps.begin(), steps.end(), step) - steps.begin());
}

void Playback::swap(const StepRecord& step) {
  if (step.memory == 0) return;
  uint8_t* at = recording_->arena.at(step.memory);
  if (kind_of(at) != MemoryRecord::Kind::Swap) return;
  for_each_piece(at, [&](const MemoryPiece& piece, uint8_t* data) {
    auto* memory = reinterpret_cast<uint8_t*>(translated(piece.address));
    std::swap_ranges(data, data + piece.bytes, memory);
  });
}

void Playback::move_global(uint64_t step) {
  make_images();
  // An instruction that faulted has kept what it would have written, which did not change.
  for (; global_position_ > step; --global_position_) swap(recording_->steps[global_position_ - 1]);
  for (; global_position_ < step; ++global_position_) swap(recording_->steps[global_position_]);
}

void Playback::move_core(Shell& shell, uint32_t core, uint64_t position) {
  const Checkpoint* nearest = checkpoint_at(core, position);
  const uint64_t begin = nearest == nullptr ? 0 : nearest->core_step;
  if (shell.position > position || shell.position < begin) load(shell, nearest);
  const std::vector<uint32_t>& steps = core_steps_[core];
  for (; shell.position < position; ++shell.position) {
    execute(shell, steps[shell.position]);
    // A checkpoint knows more than the instructions: what raw pointers wrote.
    const Checkpoint* reached = checkpoint_at(core, shell.position + 1);
    if (reached != nullptr && reached->core_step == shell.position + 1) {
      load(shell, reached);
      shell.position = reached->core_step - 1;
    }
  }
}

uint64_t Playback::translated(uint64_t address) const {
  const std::vector<RangeRecord>& ranges = recording_->ranges;
  const auto next = std::upper_bound(ranges.begin(), ranges.end(), address,
                                     [](uint64_t value, const RangeRecord& range) { return value < range.begin; });
  if (next == ranges.begin()) return address;
  const auto place = static_cast<size_t>(next - ranges.begin()) - 1;
  // One past the end is an operand's end.
  return address <= ranges[place].end ? images_[place].base + (address - ranges[place].begin) : address;
}

Instr Playback::instruction(uint64_t step, std::vector<Operand>& list) const {
  Instr instr = recorded(step);
  const auto translate = [&](Operand& operand) {
    if (operand.space != Space::GM) return;
    operand.address = translated(operand.address);
    operand.begin = translated(operand.begin);
    operand.end = translated(operand.end);
  };
  translate(instr.dst);
  for (Operand& operand : instr.src) translate(operand);
  list.assign(instr.list, instr.list + instr.list_count);
  for (Operand& operand : list) translate(operand);
  instr.list = list.data();
  return instr;
}

void Playback::set_registers(Core& core, const Registers& registers) const {
  core.mask_mode = registers.mask_mode;
  std::copy(std::begin(registers.mask), std::end(registers.mask), core.mask);
  std::copy(std::begin(registers.compare_mask), std::end(registers.compare_mask), core.compare_mask);
  core.deq_scale_bits = registers.deq_scale_bits;
  core.pad_value_bits = registers.pad_value_bits;
  core.atomic_op = registers.atomic_op;
  core.atomic_dtype = registers.atomic_dtype;
  core.deq_scale = registers.deq_scale;
  core.saturates_floats = registers.saturates_floats;
  core.saturates_casts = registers.saturates_casts;
  core.matrix = registers.matrix;
  if (!registers.has_unit_flags) core.unit_flags.clear();
}

Core& Playback::core_before(uint64_t step) {
  const StepRecord& record = recording_->steps[step];
  if (asking_ == nullptr) asking_ = make_shell();
  Core& core = asking_->running.core;
  become(core, record.core);
  set_registers(core, recording_->registers[record.registers]);
  core.issued = record.number;
  return core;
}

void Playback::execute(Shell& shell, uint64_t step) {
  const StepRecord& record = recording_->steps[step];
  if (!record.is_complete) return;
  Core& core = shell.running.core;
  if (record.memory != 0) {
    uint8_t* at = recording_->arena.at(record.memory);
    if (kind_of(at) == MemoryRecord::Kind::New) {
      for_each_piece(at, [&](const MemoryPiece& piece, const uint8_t* data) {
        std::memcpy(core.at(piece.space, piece.address), data, piece.bytes);
      });
      return;
    }
  }
  if (is_control(record.op)) return;
  make_images();
  std::vector<Operand> list;
  const Instr instr = instruction(step, list);
  const bool takes_unit_flags = instr.fixpipe != nullptr && instr.fixpipe->unit_flag != 0;
  if (instr.dst.space == Space::GM && !takes_unit_flags) return;  // its bytes come by move_global
  const bool uses_global = instr.dst.space == Space::GM || (instr.source_count > 0 && instr.src[0].space == Space::GM);
  if (uses_global) move_global(step);
  set_registers(core, recording_->registers[record.registers]);
  core.issued = record.number;
  // Fixpipe with a unit flag is executed for the flags that it takes; the bytes are those that move_global() brings.
  std::vector<uint8_t> before;
  const auto for_each_written = [&](auto&& function) {
    if (instr.dst.space != Space::GM || record.memory == 0) return;
    for_each_piece(recording_->arena.at(record.memory), [&](const MemoryPiece& piece, const uint8_t*) {
      function(reinterpret_cast<uint8_t*>(translated(piece.address)), piece.bytes);
    });
  };
  for_each_written([&](const uint8_t* memory, uint32_t bytes) { before.insert(before.end(), memory, memory + bytes); });
  set_running_core(&shell.running);
  row_of(record.op).execute(core, instr);
  set_running_core(nullptr);
  size_t at = 0;
  for_each_written([&](uint8_t* memory, uint32_t bytes) {
    std::memcpy(memory, before.data() + at, bytes);
    at += bytes;
  });
}

std::vector<uint8_t> Playback::read(uint64_t step, uint32_t core, Space space, uint64_t address, uint64_t bytes) {
  step = std::min(step, step_count());
  if (space == Space::GM) {
    make_images();
    const GmRange* range = range_at(launch_.gm, translated(address));
    if (range == nullptr || translated(address) + bytes > range->end) return {};
    move_global(step);
    const auto* memory = reinterpret_cast<const uint8_t*>(translated(address));
    return {memory, memory + bytes};
  }
  if (core >= shells_.size()) return {};
  Shell& shell = shell_of(core);
  const Core& state = shell.running.core;
  const auto place = static_cast<uint32_t>(space);
  if (place >= 8 || address > state.space_bytes[place] || bytes > state.space_bytes[place] - address) return {};
  move_core(shell, core, position_of(core, step));
  const uint8_t* memory = state.at(space, address);
  return {memory, memory + bytes};
}

bool Playback::is_sound(const Core& core, const Instr& instr) const {
  const auto holds = [&](const Operand& operand) {
    return operand.space == Space::GM || operand.address <= core.space_bytes[static_cast<uint32_t>(operand.space)];
  };
  return holds(instr.dst) && holds(instr.src[0]) && holds(instr.src[1]) && holds(instr.src[2]);
}

std::vector<Footprint> Playback::footprint(uint64_t step) {
  std::vector<Footprint> found;
  const StepRecord& record = recording_->steps[step];
  const Instr instr = recorded(step);
  const auto add = [&](const Operand& operand, uint32_t index, uint64_t begin, uint64_t bytes, bool is_write) {
    for (auto last = found.rbegin(); last != found.rend(); ++last) {
      if (last->operand != index || last->is_write != is_write) continue;
      if (last->begin + last->bytes != begin) break;
      last->bytes += bytes;
      return;
    }
    found.push_back({index, operand.space, operand.dtype, begin, bytes, is_write});
  };
  if (is_control(record.op)) {
    if (record.op == Op::SetValue) add(instr.dst, 0, instr.dst.address, size_bytes(instr.dst.dtype), true);
    if (record.op == Op::GetValue) add(instr.src[0], 1, instr.src[0].address, size_bytes(instr.src[0].dtype), false);
    return found;
  }
  // One that faulted may say anything of itself.
  if (!record.is_complete) return found;
  Core& core = core_before(step);
  if (!is_sound(core, instr)) return found;
  set_running_core(&asking_->running);
  for_each_range(core, instr, [&](const ByteRange& range) {
    if (range.operand <= 3) {
      add(range.operand == 0 ? instr.dst : instr.src[range.operand - 1], range.operand, range.begin, range.bytes,
          range.is_write);
    } else if (range.operand - 4 < instr.list_count) {
      add(instr.list[range.operand - 4], range.operand, range.begin, range.bytes, range.is_write);
    }
  });
  set_running_core(nullptr);
  if (row_of(record.op).has(trait::INDEXED) && instr.src[0].end > instr.src[0].begin) {
    add(instr.src[0], 1, instr.src[0].begin, instr.src[0].end - instr.src[0].begin, false);
  }
  return found;
}

const std::vector<Hull>& Playback::hulls() {
  if (!hulls_.empty() || step_count() == 0) return hulls_;
  hulls_.resize(step_count());
  for (uint64_t step = 0; step < step_count(); ++step) {
    Hull& hull = hulls_[step];
    if (is_control(recording_->steps[step].op) && recording_->steps[step].op != Op::SetValue) continue;
    for (const Footprint& piece : footprint(step)) {
      if (!piece.is_write) continue;
      if (hull.end == 0) hull = {piece.space, piece.begin, piece.begin + piece.bytes};
      hull.begin = std::min(hull.begin, piece.begin);
      hull.end = std::max(hull.end, piece.begin + piece.bytes);
    }
  }
  return hulls_;
}

uint64_t Playback::find_nan(uint64_t from, uint64_t to, int64_t core, Space space, uint64_t begin, uint64_t end,
                            bool also_infinite) {
  to = std::min(to, step_count());
  const std::vector<Hull>& all = hulls();
  for (uint64_t step = from; step < to; ++step) {
    const Hull& hull = all[step];
    const StepRecord& record = recording_->steps[step];
    if (hull.end == 0 || hull.space != space || hull.begin >= end || hull.end <= begin) continue;
    if (core >= 0 && record.core != core) continue;
    for (const Footprint& piece : footprint(step)) {
      if (!piece.is_write) continue;
      const uint64_t first = std::max(begin, piece.begin);
      const uint64_t last = std::min(end, piece.begin + piece.bytes);
      if (first >= last) continue;
      const auto data = read(step + 1, record.core, space, first, last - first);
      if (has_nan(data.data(), data.size(), piece.dtype, also_infinite)) return step;
    }
  }
  return step_count();
}

std::vector<Playback::Flag> Playback::flags(uint64_t step, uint32_t core) const {
  std::map<std::tuple<Pipe, Pipe, uint8_t>, uint32_t> counts;
  for (const uint32_t at : core_steps_[core]) {
    if (at >= step) break;
    const StepRecord& record = recording_->steps[at];
    if ((record.op != Op::SetFlag && record.op != Op::WaitFlag) || !record.is_complete) continue;
    const Instr instr = recorded(at);
    uint32_t& count = counts[{instr.pipe, instr.peer_pipe, instr.event_id}];
    count += record.op == Op::SetFlag ? 1u : ~0u;
  }
  std::vector<Flag> found;
  for (const auto& [key, count] : counts) {
    if (count != 0) found.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), count});
  }
  return found;
}

uint64_t Playback::count_differing_checkpoints() {
  uint64_t differing = 0;
  for (const Checkpoint& checkpoint : recording_->checkpoints) {
    if (checkpoint.core_step == 0) continue;
    Shell& shell = shell_of(checkpoint.core);
    // Up to one instruction before, then that one alone: move_core would take over the checkpoint itself.
    move_core(shell, checkpoint.core, checkpoint.core_step - 1);
    execute(shell, core_steps_[checkpoint.core][checkpoint.core_step - 1]);
    bool differs = false;
    for (uint32_t space = 1; space < 8; ++space) {
      differs |= checkpoint.bytes[space] != 0 &&
                 std::memcmp(shell.running.core.space_base[space], recording_->arena.at(checkpoint.data[space]),
                             checkpoint.bytes[space]) != 0;
    }
    differing += differs ? 1 : 0;
    load(shell, &checkpoint);
  }
  return differing;
}

}  // namespace opkit::debug
