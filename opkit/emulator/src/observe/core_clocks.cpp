#include "observe/core_clocks.h"

#include <algorithm>

#include "core/launch_state.h"

namespace opkit {

void CoreClocks::launch_begin(uint32_t core_count) {
  states_.assign(core_count, State());
  const auto nothing = std::make_shared<const Clock>(core_count, 0);
  for (State& state : states_) state.seen.push_back(nothing);
  barriers_.clear();
  sets_.clear();
  waits_.clear();
  rounds_.clear();
  channels_.clear();
  words_.clear();
}

void CoreClocks::join(Clock& into, const Clock& from) {
  for (size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

/// The core's clock as of now; whatever it does later has a later one.
CoreClocks::Clock CoreClocks::publish(const Core& core) {
  State& state = states_[core.index];
  Clock published = *state.seen.back();
  published[core.index] = state.own++;
  return published;
}

void CoreClocks::receive(const Core& core, const Clock& clock) {
  State& state = states_[core.index];
  Clock next = *state.seen.back();
  join(next, clock);
  state.seen.push_back(std::make_shared<const Clock>(std::move(next)));
}

CoreClocks::BarrierKey CoreClocks::barrier_key(const Core& core, const Instr& instr) {
  const LaunchState& launch = *core.launch;
  uint32_t all = 0;
  for (uint32_t i = 0; i < launch.core_count; ++i) all += instr.mode != 1 || launch.kind_of(i) == SubCore::AIV;
  return {instr.mode, instr.count == 0 ? all : instr.count};
}

uint64_t CoreClocks::channel_of(const Core& core, const Instr& instr) {
  const SignalWords words = signal_words(core, instr);
  return words.bytes == 0 ? instr.dst.address : words.begin;
}

void CoreClocks::release(const Core& core, const Instr& instr) {
  if (instr.op == Op::CrossCoreWaitFlag || instr.op == Op::IBWait) return;
  if (instr.op == Op::SyncAll && instr.mode == 1 && core.kind == SubCore::AIC) return;
  Clock clock = publish(core);
  const std::lock_guard<std::mutex> guard(lock_);
  if (instr.op == Op::SyncAll) {
    const auto key = barrier_key(core, instr);
    Barrier& barrier = barriers_[key];
    const uint64_t generation = barrier.arrived++ / std::max(1u, key.second);
    if (barrier.generations.size() <= generation) barrier.generations.emplace_back(states_.size(), 0);
    join(barrier.generations[generation], clock);
    rounds_of(core.index, key) = generation;
  } else if (instr.op == Op::CrossCoreSetFlag) {
    sets_[{core.index, instr.event_id}].push_back({instr.mode, std::move(clock)});
  } else {
    Clock& channel = channels_[channel_of(core, instr)];
    channel.resize(states_.size());
    join(channel, clock);
  }
}

void CoreClocks::acquire(const Core& core, const Instr& instr) {
  if (instr.op == Op::CrossCoreSetFlag || instr.op == Op::IBSet) return;
  if (instr.op == Op::SyncAll && instr.mode == 1 && core.kind == SubCore::AIC) return;
  Clock clock(states_.size(), 0);
  {
    const std::lock_guard<std::mutex> guard(lock_);
    if (instr.op == Op::SyncAll) {
      const auto key = barrier_key(core, instr);
      clock = barriers_[key].generations[rounds_of(core.index, key)];
    } else if (instr.op == Op::CrossCoreWaitFlag) {
      clock = signals_for(core, instr);
    } else {
      join(clock, channels_[channel_of(core, instr)]);
    }
  }
  receive(core, clock);
}

/// Scalar code that writes a word may signal with it. Before it executes: whoever reads the new value finds it here.
void CoreClocks::release_word(const Core& core, uint64_t address) {
  State& state = states_[core.index];
  const std::lock_guard<std::mutex> guard(lock_);
  words_[address] = {core.index, state.own++, state.seen.back()};
}

/// Scalar code that reads a word which another core has written comes behind what that core did before.
bool CoreClocks::acquire_word(const Core& core, uint64_t address) {
  Word word;
  {
    const std::lock_guard<std::mutex> guard(lock_);
    const auto found = words_.find(address);
    if (found == words_.end() || found->second.core == core.index) return false;
    word = found->second;
  }
  if ((*states_[core.index].seen.back())[word.core] >= word.own) return false;
  Clock clock = *word.seen;
  clock[word.core] = word.own;
  receive(core, clock);
  return true;
}

uint64_t& CoreClocks::rounds_of(uint32_t core, BarrierKey barrier) {
  return rounds_[{core, barrier.first, barrier.second}];
}

/// The n-th wait of a flag follows the n-th signal of every core whose group signals it.
CoreClocks::Clock CoreClocks::signals_for(const Core& core, const Instr& instr) {
  const LaunchState& launch = *core.launch;
  const uint64_t round = waits_[{core.index, instr.event_id}]++;
  Clock clock(states_.size(), 0);
  for (uint32_t i = 0; i < launch.core_count; ++i) {
    const auto found = sets_.find({i, instr.event_id});
    if (found == sets_.end() || found->second.size() <= round) continue;
    const Signal& signal = found->second[round];
    const bool is_same_block = i / launch.cores_per_block == core.index / launch.cores_per_block;
    const bool is_same_kind = launch.kind_of(i) == core.kind;
    const bool is_for_us = signal.mode == 0 ? is_same_kind : is_same_block && is_same_kind == (signal.mode == 1);
    if (is_for_us) join(clock, signal.clock);
  }
  return clock;
}

}  // namespace opkit
