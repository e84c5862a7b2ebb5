// Cores that go on one after another, and groups that wait for groups. Source: Ascend C API, synchronisation between
// cores, WaitPreBlock and NotifyNextBlock; group management, GroupBarrier.
#include <algorithm>
#include <mutex>

#include "core/launch_state.h"
#include "memory/bounds.h"
#include "opkit/api/cache.h"
#include "sched/wait.h"
#include "sync/cross_core.h"

namespace opkit {
namespace {

constexpr uint64_t kGroupMessageBytes = 512;  // of each waiting core. Source: GroupBarrier GetWorkspaceLen

struct Turn {
  LaunchState* launch;
  const CrossCoreState::Order* order;
  uint64_t turn;
};

bool is_turn(void* context) {
  const auto& wait = *static_cast<Turn*>(context);
  std::lock_guard<std::mutex> guard(wait.launch->wait_lock);
  return wait.order->turns >= wait.turn;
}

struct GroupRound {
  LaunchState* launch;
  const CrossCoreState::GroupRounds* rounds;
  uint64_t round;
};

bool has_arrived(void* context) {
  const auto& wait = *static_cast<GroupRound*>(context);
  std::lock_guard<std::mutex> guard(wait.launch->wait_lock);
  const auto& arrivals = wait.rounds->arrivals;
  return !arrivals.empty() && *std::min_element(arrivals.begin(), arrivals.end()) >= wait.round;
}

uint32_t vector_core_count(const LaunchState& launch) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < launch.core_count; ++i) count += launch.kind_of(i) == SubCore::AIV;
  return count;
}

uint32_t block_index() { return static_cast<uint32_t>(running_core()->variables.block_index); }

CrossCoreState::Order& order_of(LaunchState& launch, const Instr& instr) {
  CrossCoreState::Order& order = launch.cross_core.orders[instr.dst.address];
  if (order.notified.empty()) order.notified.resize(vector_core_count(launch));
  return order;
}

void check_order(const Core& core, const Instr& instr) {
  OPKIT_CHECK(core.kind == SubCore::AIV, IllegalOperand, &instr, "call it on vector cores only",
              "WaitPreBlock and NotifyNextBlock order vector cores, and this is a cube core");
  check_residence(core, instr);
  const uint64_t bytes = uint64_t{core.block_count} * kBlockBytes;
  check_bounds(core, instr, instr.dst, instr.dst.address, bytes, true);
  check_bounds(core, instr, instr.src[0], instr.src[0].address, bytes + kBlockBytes, true);
}

/// scalar_bits: the place in the group and the size of the arriving group; repeat: the size of the waiting group.
void check_group(const Core& core, const Instr& instr, uint64_t size) {
  OPKIT_CHECK(instr.scalar_bits[0] < size, IllegalOperand, &instr, "count the cores of each group from 0",
              "GroupBarrier: core %llu of a group of %llu", static_cast<unsigned long long>(instr.scalar_bits[0]),
              static_cast<unsigned long long>(size));
  OPKIT_CHECK(instr.dst.address % kGroupMessageBytes == 0, Misaligned, &instr, "align the workspace to 512 bytes",
              "GroupBarrier: its workspace at 0x%llx is not a multiple of 512 bytes",
              static_cast<unsigned long long>(instr.dst.address));
  check_bounds(core, instr, instr.dst, instr.dst.address, uint64_t{instr.repeat} * kGroupMessageBytes, true);
}

}  // namespace

void execute_wait_pre_block(Core& core, const Instr& instr) {
  check_order(core, instr);
  LaunchState& launch = *core.launch;
  Turn wait{&launch, nullptr, 0};
  {
    std::lock_guard<std::mutex> guard(launch.wait_lock);
    const CrossCoreState::Order& order = order_of(launch, instr);
    wait.order = &order;
    wait.turn = order.notified[block_index()] * order.notified.size() + block_index();
  }
  wait_until(is_turn, &wait, instr, "WaitPreBlock");
}

void execute_notify_next_block(Core& core, const Instr& instr) {
  check_order(core, instr);
  LaunchState& launch = *core.launch;
  {
    std::lock_guard<std::mutex> guard(launch.wait_lock);
    CrossCoreState::Order& order = order_of(launch, instr);
    ++order.notified[block_index()];
    ++order.turns;
  }
  signal_progress(launch);
}

void execute_group_arrive(Core& core, const Instr& instr) {
  check_group(core, instr, instr.scalar_bits[1]);
  LaunchState& launch = *core.launch;
  {
    std::lock_guard<std::mutex> guard(launch.wait_lock);
    CrossCoreState::GroupRounds& rounds = launch.cross_core.groups[instr.dst.address];
    rounds.arrivals.resize(instr.scalar_bits[1]);
    ++rounds.arrivals[instr.scalar_bits[0]];
  }
  signal_progress(launch);
}

void execute_group_wait(Core& core, const Instr& instr) {
  check_group(core, instr, instr.repeat);
  LaunchState& launch = *core.launch;
  GroupRound wait{&launch, nullptr, 0};
  {
    std::lock_guard<std::mutex> guard(launch.wait_lock);
    CrossCoreState::GroupRounds& rounds = launch.cross_core.groups[instr.dst.address];
    rounds.waits.resize(instr.repeat);
    wait.rounds = &rounds;
    wait.round = ++rounds.waits[instr.scalar_bits[0]];
  }
  wait_until(has_arrived, &wait, instr, "GroupBarrier::Wait");
}

void yield_to_other_cores(Where where) {
  (void)where;
  if (require_running_core().core.launch->core_count > 1) yield_core();
}

}  // namespace opkit
