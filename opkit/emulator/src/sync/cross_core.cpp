// SyncAll, CrossCoreSetFlag, CrossCoreWaitFlag, IBSet, IBWait. Source: Ascend C API, synchronisation between cores.
#include "sync/cross_core.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "core/launch_state.h"
#include "core/names.h"
#include "isa/table.h"
#include "memory/bounds.h"
#include "sched/wait.h"

namespace opkit {
namespace {

/// The cores of a launch that take part in a signal of one mode, as a range of indices with a kind.
struct Group {
  uint32_t first;
  uint32_t last;
  bool has_aic;
  bool has_aiv;

  bool holds(const LaunchState& launch, uint32_t index) const {
    return launch.kind_of(index) == SubCore::AIC ? has_aic : has_aiv;
  }
};

Group group_of(const Core& core, uint32_t mode, SubCore kind) {
  const LaunchState& launch = *core.launch;
  const bool is_aic = kind == SubCore::AIC;
  if (mode == 0) return {0, launch.core_count, is_aic, !is_aic};
  const uint32_t first = core.block * launch.cores_per_block;
  return {first, first + launch.cores_per_block, is_aic, !is_aic};
}

uint8_t& cell(std::vector<uint8_t>& cells, const LaunchState& launch, uint32_t core, uint32_t flag) {
  if (cells.empty()) cells.resize(size_t{launch.core_count} * kCrossCoreFlags);
  return cells[size_t{core} * kCrossCoreFlags + flag];
}

/// True, and one arrival of each taken, when every core of the group has signalled.
bool take_arrivals(LaunchState& launch, const Group& group, uint32_t flag) {
  CrossCoreState& state = launch.cross_core;
  for (uint32_t i = group.first; i < group.last; ++i) {
    if (group.holds(launch, i) && cell(state.arrivals, launch, i, flag) == 0) return false;
  }
  for (uint32_t i = group.first; i < group.last; ++i) {
    if (group.holds(launch, i)) --cell(state.arrivals, launch, i, flag);
  }
  return true;
}

void check_flag(const Core& core, const Instr& instr) {
  OPKIT_CHECK(instr.event_id < kCrossCoreFlags, IllegalOperand, &instr, "use ids 0 to 15",
              "%s: flag id %u is not one of 0 to %u", row_of(instr.op).name, instr.event_id, kCrossCoreFlags - 1);
  OPKIT_CHECK(instr.op == Op::CrossCoreWaitFlag || instr.mode <= 2, IllegalOperand, &instr,
              "this chip has modes 0, 1 and 2", "%s: mode %u", row_of(instr.op).name, instr.mode);
  OPKIT_CHECK(instr.op == Op::CrossCoreWaitFlag || instr.mode == 0 || core.launch->cores_per_block > 1, IllegalOperand,
              &instr, "give the kernel __mix__(1, 1) or __mix__(1, 2), or KERNEL_TYPE_MIX_AIC_1_2",
              "%s: mode %u orders the sub-cores of one block, and this kernel's blocks have one", row_of(instr.op).name,
              instr.mode);
  if (instr.op == Op::CrossCoreWaitFlag) return;
  OPKIT_CHECK(instr.mode != 1 || core.kind == SubCore::AIV, IllegalOperand, &instr, "guard it with ASCEND_IS_AIV",
              "CrossCoreSetFlag: mode 1 orders the vector cores of a block, and this is a cube core");
  OPKIT_CHECK(instr.pipe != Pipe::S && instr.pipe != Pipe::ALL, IllegalOperand, &instr,
              "name the pipe whose instructions the others wait for", "CrossCoreSetFlag: pipe %s cannot set a flag",
              pipe_name(instr.pipe));
}

struct BarrierWait {
  LaunchState* launch;
  const CrossCoreState::Barrier* barrier;
  uint64_t generation;
};

bool is_past(void* context) {
  const auto& wait = *static_cast<BarrierWait*>(context);
  std::lock_guard<std::mutex> guard(wait.launch->wait_lock);
  return wait.barrier->generation != wait.generation;
}

struct FlagWait {
  LaunchState* launch;
  uint32_t core;
  uint32_t flag;
};

bool take_signal(void* context) {
  const auto& wait = *static_cast<FlagWait*>(context);
  std::lock_guard<std::mutex> guard(wait.launch->wait_lock);
  uint8_t& signals = cell(wait.launch->cross_core.signals, *wait.launch, wait.core, wait.flag);
  if (signals == 0) return false;
  --signals;
  return true;
}

struct FlagSet {
  LaunchState* launch;
  const Core* core;
  uint32_t mode;
  uint32_t flag;
  bool is_complete;  ///< the receivers were signalled
};

/// False, and nothing done, while a receiver's counter is full. On the chip the other cores run at the same time and
/// take signals meanwhile; here the core gives way to them.
bool send_signal(void* context) {
  auto& set = *static_cast<FlagSet*>(context);
  LaunchState& launch = *set.launch;
  std::lock_guard<std::mutex> guard(launch.wait_lock);
  CrossCoreState& state = launch.cross_core;
  const SubCore kind = set.core->kind;
  const SubCore other = kind == SubCore::AIC ? SubCore::AIV : SubCore::AIC;
  const Group senders = group_of(*set.core, set.mode, kind);
  const Group receivers = group_of(*set.core, set.mode, set.mode == 2 ? other : kind);
  for (uint32_t i = receivers.first; i < receivers.last; ++i) {
    if (receivers.holds(launch, i) && cell(state.signals, launch, i, set.flag) >= kCrossCoreFlagLimit) return false;
  }
  ++cell(state.arrivals, launch, set.core->index, set.flag);
  set.is_complete = take_arrivals(launch, senders, set.flag);
  for (uint32_t i = receivers.first; set.is_complete && i < receivers.last; ++i) {
    if (receivers.holds(launch, i)) ++cell(state.signals, launch, i, set.flag);
  }
  return true;
}

/// Takes a core among those that have used words of signals, and faults where the first of them finds no zeros.
/// Returns whether it is the core's first use. Source: SyncAll, IBSet, constraints: the values have to be 0 before.
bool use_signals(const Core& core, const Instr& instr, const SignalWords& words) {
  LaunchState& launch = *core.launch;
  bool is_first_of_all = false;
  {
    std::lock_guard<std::mutex> guard(launch.wait_lock);
    auto& users = launch.cross_core.signal_users[words.begin];
    is_first_of_all = users.empty();
    if (!users.insert(core.index).second) return false;
  }
  for (uint64_t at = words.begin; is_first_of_all && at < words.begin + words.bytes; at += sizeof(int32_t)) {
    const int32_t value = reinterpret_cast<std::atomic<int32_t>*>(core.at(Space::GM, at))->load();
    OPKIT_CHECK(value == 0, IllegalOperand, &instr,
                "clear the workspace before each launch: what is left there is taken for a signal",
                "%s: its workspace in global memory must be zeros before the first signal, and byte %llu holds %d",
                row_of(instr.op).name, static_cast<unsigned long long>(at - instr.dst.address), value);
  }
  return true;
}

/// The software form's workspaces hold 32 bytes a block; a core writes 1 to its own place and waits for those of the
/// others. How later calls of the same launch go on from there is not documented. Source: SyncAll, constraints
void use_workspaces(const Core& core, const Instr& instr) {
  const SignalWords words = signal_words(core, instr);
  check_bounds(core, instr, instr.dst, words.begin, words.bytes, true);
  check_bounds(core, instr, instr.src[0], instr.src[0].address, words.bytes, true);
  if (!use_signals(core, instr, words)) return;
  reinterpret_cast<std::atomic<int32_t>*>(core.at(Space::GM, words.begin + uint64_t{core.block} * kBlockBytes))
      ->store(1);
}

/// The word that IBSet writes and IBWait reads.
std::atomic<int32_t>* block_flag(const Core& core, const Instr& instr) {
  const SignalWords word = signal_words(core, instr);
  check_bounds(core, instr, instr.dst, word.begin, word.bytes, instr.op == Op::IBSet);
  check_bounds(core, instr, instr.src[0], instr.src[0].address, kBlockBytes, true);
  use_signals(core, instr, word);
  return reinterpret_cast<std::atomic<int32_t>*>(core.at(Space::GM, word.begin));
}

bool take_block_flag(void* context) {
  int32_t expected = 1;
  return static_cast<std::atomic<int32_t>*>(context)->compare_exchange_strong(expected, 0);
}

}  // namespace

SignalWords signal_words(const Core& core, const Instr& instr) {
  if (instr.op == Op::SyncAll && instr.dst.space == Space::GM) {
    return {instr.dst.address, uint64_t{core.block_count} * kBlockBytes};
  }
  if (instr.op != Op::IBSet && instr.op != Op::IBWait) return {0, 0};
  return {instr.dst.address + (core.block_count * instr.scalar_bits[1] + instr.scalar_bits[0]) * kBlockBytes,
          sizeof(int32_t)};
}

void check_residence(const Core& core, const Instr& instr) {
  const KernelMode mode = core.launch->launch->mode;
  uint32_t at_once = ~0u;
  if (cube_cores(mode) > 0) at_once = core.chip->aic_count / cube_cores(mode);
  if (vector_cores(mode) > 0) at_once = std::min(at_once, core.chip->aiv_count / vector_cores(mode));
  OPKIT_CHECK(core.block_count <= at_once, Deadlock, &instr,
              "launch as many blocks as the platform says that there are cores, and let each loop over its share",
              "%s: the launch has %u blocks, of which this chip runs %u at a time: the others start when these have "
              "ended, and these wait for them",
              row_of(instr.op).name, core.block_count, at_once);
}

/// mode 1: the vector cores only; count: how many cores, 0 for all; dst, src[0]: the software form's workspaces.
void execute_sync_all(Core& core, const Instr& instr) {
  LaunchState& launch = *core.launch;
  const bool is_vector_only = instr.mode == 1;
  if (is_vector_only && core.kind == SubCore::AIC) return;
  // Source: SyncAll, constraints: in a kernel of vector cores alone isAIVOnly has to be true, or it hangs.
  OPKIT_CHECK(is_vector_only || cube_cores(launch.launch->mode) > 0, Deadlock, &instr, "call SyncAll<true>()",
              "SyncAll<false> waits for cube cores, and this kernel runs on vector cores alone");
  check_residence(core, instr);
  uint32_t taking_part = 0;
  for (uint32_t i = 0; i < launch.core_count; ++i) {
    taking_part += is_vector_only ? launch.kind_of(i) == SubCore::AIV : 1;
  }
  OPKIT_CHECK(instr.count <= taking_part, IllegalOperand, &instr, "pass as many cores as the launch has, or none",
              "SyncAll: usedCores is %u, this launch has %u cores", instr.count, taking_part);
  if (instr.dst.space == Space::GM) use_workspaces(core, instr);
  const uint32_t expected = instr.count == 0 ? taking_part : instr.count;
  CrossCoreState::Barrier* barrier = nullptr;
  BarrierWait wait{&launch, nullptr, 0};
  bool is_last = false;
  {
    std::lock_guard<std::mutex> guard(launch.wait_lock);
    barrier = &launch.cross_core.barriers[{instr.mode, expected}];
    wait.barrier = barrier;
    wait.generation = barrier->generation;
    is_last = ++barrier->arrived == expected;
    if (is_last) {
      barrier->arrived = 0;
      ++barrier->generation;
    }
  }
  if (is_last) {
    signal_progress(launch);
    return;
  }
  wait_until(is_past, &wait, instr, "SyncAll");
}

void execute_cross_core_set(Core& core, const Instr& instr) {
  check_flag(core, instr);
  if (instr.mode == 0) check_residence(core, instr);
  FlagSet set{core.launch, &core, instr.mode, instr.event_id, false};
  if (!send_signal(&set)) {
    wait_until(send_signal, &set, instr,
               "CrossCoreSetFlag " + std::to_string(instr.event_id) + ", which was signalled " +
                   std::to_string(kCrossCoreFlagLimit + 1) + " times without a wait");
  }
  if (set.is_complete) signal_progress(*core.launch);
}

void execute_cross_core_wait(Core& core, const Instr& instr) {
  check_flag(core, instr);
  FlagWait wait{core.launch, core.index, instr.event_id};
  wait_until(take_signal, &wait, instr, "CrossCoreWaitFlag " + std::to_string(instr.event_id));
  signal_progress(*core.launch);  // a core that found this flag's counter full may go on
}

void execute_ib_set(Core& core, const Instr& instr) {
  check_residence(core, instr);
  block_flag(core, instr)->store(1);
  signal_progress(*core.launch);
}

void execute_ib_wait(Core& core, const Instr& instr) {
  check_residence(core, instr);
  wait_until(
      take_block_flag, block_flag(core, instr), instr,
      "IBWait of block " + std::to_string(instr.scalar_bits[0]) + ", event " + std::to_string(instr.scalar_bits[1]));
}

}  // namespace opkit
