/// What orders the cores of a launch: clocks that their signals to each other advance. A signal is taken to cover all
/// that its core did before, also where it names one pipe: never an alarm too many.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/core.h"

namespace opkit {

/// A point in the program of one core.
struct Moment {
  uint32_t core = 0;
  uint32_t seen = 0;  ///< index into what the core had seen of the others
  uint64_t own = 0;   ///< its own time
};

class CoreClocks {
 public:
  void launch_begin(uint32_t core_count);

  /// Whether anything but one core takes part: nothing else needs an order.
  bool is_single() const { return states_.size() == 1; }

  /// The present of a core. Whatever it does from its next signal on comes later.
  Moment now(const Core& core) const {
    const State& state = states_[core.index];
    return {core.index, static_cast<uint32_t>(state.seen.size() - 1), state.own};
  }

  /// Before a signal, or a scalar write of a word, is executed.
  void release(const Core& core, const Instr& instr);
  void release_word(const Core& core, uint64_t address);

  /// After a wait, or a scalar read of a word, was executed.
  void acquire(const Core& core, const Instr& instr);
  /// Returns whether that told the core anything.
  bool acquire_word(const Core& core, uint64_t address);

  /// Whether what happened at the first moment is over for its core, and known to the other's at the second.
  bool is_before(const Moment& first, const Moment& second) const {
    if (first.core == second.core) return first.own < second.own;
    return (*states_[second.core].seen[second.seen])[first.core] >= first.own;
  }

 private:
  using Clock = std::vector<uint64_t>;  // by core index
  struct State {
    std::vector<std::shared_ptr<const Clock>> seen;  ///< times of the other cores; the last is the present one
    uint64_t own = 1;                                ///< advanced by each signal of its own
  };
  struct Barrier {
    uint64_t arrived = 0;
    std::vector<Clock> generations;
  };
  struct Signal {
    uint32_t mode;
    Clock clock;
  };
  /// A word of global memory as scalar code wrote it last.
  struct Word {
    uint32_t core = 0;
    uint64_t own = 0;  ///< the writer's time
    std::shared_ptr<const Clock> seen;
  };
  using FlagKey = std::pair<uint32_t, uint32_t>;     // core, flag
  using BarrierKey = std::pair<uint32_t, uint32_t>;  // mode, cores

  static void join(Clock& into, const Clock& from);
  static BarrierKey barrier_key(const Core& core, const Instr& instr);
  static uint64_t channel_of(const Core& core, const Instr& instr);
  Clock publish(const Core& core);
  void receive(const Core& core, const Clock& clock);
  uint64_t& rounds_of(uint32_t core, BarrierKey barrier);
  Clock signals_for(const Core& core, const Instr& instr);

  std::mutex lock_;  // of what cores share: barriers, signals, channels, words
  std::vector<State> states_;
  std::map<BarrierKey, Barrier> barriers_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint64_t> rounds_;
  std::map<FlagKey, std::vector<Signal>> sets_;
  std::map<FlagKey, uint64_t> waits_;
  std::map<uint64_t, Clock> channels_;
  std::unordered_map<uint64_t, Word> words_;
};

}  // namespace opkit
