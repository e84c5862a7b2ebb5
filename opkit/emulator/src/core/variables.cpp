// The registers and variables of a core that the public templates read and write.
#include <chrono>
#include <optional>
#include <string>

#include "core/launch_state.h"
#include "memory/bounds.h"
#include "observe/observer.h"
#include "opkit/api/system.h"
#include "opkit/api/tiling.h"
#include "sched/signals.h"

namespace opkit {
RunningCore& require_running_core() {
  RunningCore* running = running_core();
  if (running == nullptr) raise_fault(Fault::Internal, nullptr, nullptr, "no kernel runs on this thread");
  const Core& core = running->core;
  // As at instructions: a loop that only prints, or asks for numbers of the core, has none.
  if (__builtin_expect(core.index >= core.launch->stop_from.load(std::memory_order_relaxed), 0)) {
    leave_stopped_launch(nullptr);
  }
  return *running;
}

Instr call_at(Where where) {
  Instr instr;
  instr.op = Op::PipeBarrier;
  instr.pipe = Pipe::S;
  instr.where = where;
  return instr;
}

void synchronises_by_hand() { require_running_core().core.has_auto_sync = false; }

const CoreVariables& core_variables() { return require_running_core().variables; }

uint8_t* local_memory(Space space) {
  Core& core = require_running_core().core;
  // Whoever has the address may read at any time.
  finish_chain(core);
  core.chain.is_open = false;
  return core.space_base[static_cast<uint32_t>(space)];
}
uint32_t local_memory_bytes(Space space) {
  return require_running_core().core.space_bytes[static_cast<uint32_t>(space)];
}

uint8_t* local_address(Space space, uint64_t byte, Where where) {
  const uint32_t limit = local_memory_bytes(space);
  if (byte > limit) {
    const Instr instr = call_at(where);
    raise_fault(Fault::OutOfBounds, &instr, "make the tiles smaller or use fewer buffers",
                "GetPhyAddr: byte %llu of %s, which has %u", static_cast<unsigned long long>(byte), space_name(space),
                limit);
  }
  return local_memory(space) + byte;
}

void set_kernel_pipe(void* pipe) { require_running_core().kernel_pipe = pipe; }
void* kernel_pipe() { return require_running_core().kernel_pipe; }

void set_mask_mode(bool is_counter) {
  require_running_core().core.mask_mode = is_counter ? MaskMode::Counter : MaskMode::Normal;
}

void set_vector_mask(uint64_t high, uint64_t low) {
  Core& core = require_running_core().core;
  core.mask[0] = low;
  core.mask[1] = high;
}

uint64_t gather_mask_count() { return require_running_core().core.gather_mask_count; }

/// The core, for a call that reads what its last instructions have computed.
static Core& require_results(const char* call) {
  Core& core = require_running_core().core;
  if (core.launch->uncomputed != nullptr) core.launch->uncomputed->read_register(call);
  return core;
}

uint64_t reduce_sum_bits() { return require_results("GetAccVal").reduce_sum_bits; }
uint64_t reduce_extreme_bits(uint32_t item) {
  return require_results("GetReduceMaxMinCount").reduce_max_min_bits[item];
}

MatrixRegisters& matrix_registers() { return require_running_core().core.matrix; }
void clear_unit_flags() { require_running_core().core.unit_flags.clear(); }

void merged_counts(uint16_t (&counts)[4], Where where) {
  const Core& core = require_results("GetMrgSortResult");
  if (!core.merge_stopped) illegal_operand("GetMrgSortResult: the last merge did not set ifExhaustedSuspension", where);
  for (uint32_t queue = 0; queue < 4; ++queue) counts[queue] = core.merged_counts[queue];
}

void set_deq_scale(uint64_t bits, DeqScale form) {
  Core& core = require_running_core().core;
  core.deq_scale_bits = bits;
  core.deq_scale = form;
}

namespace {
bool& saturation_of(Core& core, Saturation which) {
  return which == Saturation::Floats ? core.saturates_floats : core.saturates_casts;
}
}  // namespace

void set_saturation(Saturation which, bool is_on) { saturation_of(require_running_core().core, which) = is_on; }
bool saturation(Saturation which) { return saturation_of(require_running_core().core, which); }

uint64_t system_cycle(Where where) {
  const Core& core = require_running_core().core;
  Instr instr;
  instr.op = Op::GetSystemCycle;
  instr.pipe = Pipe::S;
  instr.where = where;
  issue(instr);
  for (const Observer* observer : core.launch->observers) {
    if (const std::optional<uint64_t> cycle = observer->system_cycle(core)) return *cycle;
  }
  // Nothing knows times in a launch that runs again for its results: it never falls there, and is the same every run.
  return core.issued;
}

void set_pad_value(uint64_t bits) { require_running_core().core.pad_value_bits = bits; }

void illegal_operand(const char* message, Where where) {
  const Instr instr = call_at(where);
  raise_fault(Fault::IllegalOperand, &instr, nullptr, "%s", message);
}

uint8_t* system_workspace() { return require_running_core().system_workspace; }
void set_system_workspace(uint8_t* workspace) { require_running_core().system_workspace = workspace; }

bool tiling_key_is(uint64_t key, Where where) {
  const RunningCore& running = require_running_core();
  LaunchState& launch = *running.core.launch;
  const bool is_chosen = running.variables.tiling_key == key;
  if (is_chosen) {
    launch.has_branch.store(true, std::memory_order_relaxed);
  } else if (!launch.has_branch.load(std::memory_order_relaxed)) {
    std::lock_guard<std::mutex> guard(launch.branch_lock);
    launch.missed_branches.insert(key);
    launch.last_branch = where;
  }
  return is_chosen;
}

}  // namespace opkit
