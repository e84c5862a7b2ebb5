/// Flags and barriers between the cores of one launch.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/core.h"
#include "sync/cube_service.h"

namespace opkit {

constexpr uint32_t kCrossCoreFlags = 16;      ///< ids 0 to 15. Source: CrossCoreSetFlag, range of flagId
constexpr uint32_t kCrossCoreFlagLimit = 15;  ///< signals a flag can hold before it is waited for

/// Shared by the cores of a launch; every access holds LaunchState::wait_lock.
struct CrossCoreState {
  struct Barrier {
    uint32_t arrived = 0;
    uint64_t generation = 0;
  };

  std::vector<uint8_t> signals;   ///< by core index and flag: how many waits it can end
  std::vector<uint8_t> arrivals;  ///< by core index and flag: its own signals not yet consumed
  std::map<std::pair<uint32_t, uint32_t>, Barrier> barriers;  ///< by who takes part and how many

  std::map<uint64_t, std::set<uint32_t>> signal_users;  ///< by their address: the cores that have used these words

  /// Cores that go on one after another: InitDetermineComputeWorkspace, WaitPreBlock, NotifyNextBlock.
  struct Order {
    uint64_t turns = 0;              ///< NotifyNextBlock calls so far
    std::vector<uint64_t> notified;  ///< by block index: its own
  };
  std::map<uint64_t, Order> orders;  ///< by the workspace's address

  std::map<uint32_t, CubeService> services;  ///< by block

  /// GroupBarrier: who has arrived and waited how often.
  struct GroupRounds {
    std::vector<uint64_t> arrivals;
    std::vector<uint64_t> waits;
  };
  std::map<uint64_t, GroupRounds> groups;  ///< by the workspace's address
};

/// Where in global memory an instruction signals other cores through words of the kernel's own, which must be zeros
/// before; no bytes where it does not: the software form of SyncAll, IBSet, IBWait.
struct SignalWords {
  uint64_t begin;
  uint64_t bytes;
};
SignalWords signal_words(const Core& core, const Instr& instr);

/// Faults Deadlock where blocks wait for others that do not run at the same time. Source: SyncAll, IBSet, IBWait,
/// WaitPreBlock, NotifyNextBlock, constraints: with more blocks than cores the kernel hangs.
void check_residence(const Core& core, const Instr& instr);

void execute_sync_all(Core& core, const Instr& instr);
void execute_cross_core_set(Core& core, const Instr& instr);
void execute_cross_core_wait(Core& core, const Instr& instr);
void execute_ib_set(Core& core, const Instr& instr);
void execute_ib_wait(Core& core, const Instr& instr);

void execute_wait_pre_block(Core& core, const Instr& instr);
void execute_notify_next_block(Core& core, const Instr& instr);
void execute_group_arrive(Core& core, const Instr& instr);
void execute_group_wait(Core& core, const Instr& instr);

}  // namespace opkit
