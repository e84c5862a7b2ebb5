#include "observe/timing_cross.h"

#include <algorithm>

namespace opkit {
namespace {

constexpr uint32_t kClients = 2;      // vector cores of a block
constexpr uint32_t kTicketBits = 32;  // for each of them

}  // namespace

bool is_wait(Op op) {
  switch (op) {
    case Op::CrossCoreWaitFlag:
    case Op::IBWait:
    case Op::WaitPreBlock:
    case Op::CubeServe:
    case Op::CubeAwait:
    case Op::GroupWait: return true;
    default: return false;
  }
}

CrossReplay::CrossReplay(const std::vector<const CoreRecord*>& cores) : cores_(cores) {
  for (const CoreRecord* core : cores) {
    vector_rank_.push_back(core->kind == SubCore::AIV ? vector_count_++ : 0);
    if (core->kind != SubCore::AIV) continue;
    for (const CrossRecord& call : core->crosses) {
      const bool is_to_cube = call.op == Op::CrossCoreSetFlag && call.mode == kBetweenKinds;
      if (is_to_cube) set_by_vectors_[core->block] |= uint32_t{1} << call.flag % kFlags;
    }
  }
}

bool CrossReplay::is_of_other_kind(size_t core, uint32_t flag) const {
  const auto found = set_by_vectors_.find(cores_[core]->block);
  return found != set_by_vectors_.end() && (found->second >> flag % kFlags & 1) != 0;
}

std::vector<size_t> CrossReplay::group_of(size_t core, uint8_t mode, SubCore kind) const {
  std::vector<size_t> result;
  for (size_t i = 0; i < cores_.size(); ++i) {
    const bool is_near = mode == 0 || cores_[i]->block == cores_[core]->block;
    if (is_near && cores_[i]->kind == kind) result.push_back(i);
  }
  return result;
}

/// Mode 0: all cores of the kind; 1: the vector cores of the block; 2: from one kind to the other inside the block.
void CrossReplay::set_flag(size_t core, const CrossRecord& call, double time) {
  const SubCore kind = cores_[core]->kind;
  const SubCore other = kind == SubCore::AIC ? SubCore::AIV : SubCore::AIC;
  cell(arrivals_, core, call.flag).push_back(time);
  const std::vector<size_t> senders = group_of(core, call.mode, kind);
  double latest = 0;
  for (size_t sender : senders) {
    const std::deque<double>& own = cell(arrivals_, sender, call.flag);
    if (own.empty()) return;
    latest = std::max(latest, own.front());
  }
  for (size_t sender : senders) cell(arrivals_, sender, call.flag).pop_front();
  for (size_t receiver : group_of(core, call.mode, call.mode == kBetweenKinds ? other : kind)) {
    cell(signals_, receiver, call.flag).push_back(latest);
  }
  has_news_ = true;
}

CrossReplay::Order& CrossReplay::order_of(const CrossRecord& call) {
  Order& order = orders_[call.address];
  order.notified.resize(vector_count_);
  return order;
}

uint32_t CrossReplay::sender_at(double time) const {
  const auto found = senders_.find(time);
  return found == senders_.end() ? kNoIndex : found->second;
}

uint64_t CrossReplay::signal(size_t core, const CrossRecord& call, double time) {
  if (!is_wait(call.op)) senders_[time] = static_cast<uint32_t>(core);
  switch (call.op) {
    case Op::SyncAll: {
      const bool is_vector_only = call.mode == 1;
      if (is_vector_only && cores_[core]->kind == SubCore::AIC) return 0;
      const uint32_t all = is_vector_only ? vector_count_ : static_cast<uint32_t>(cores_.size());
      const uint32_t expected = call.count == 0 ? all : call.count;
      Barrier& barrier = barriers_[{call.mode, expected}];
      barrier.latest = std::max(barrier.latest, time);
      const uint64_t generation = barrier.releases.size();
      if (++barrier.arrived == expected) {
        barrier.releases.push_back(barrier.latest);
        barrier.arrived = 0;
        has_news_ = true;
      }
      return (uint64_t{expected} << 40) | generation;
    }
    case Op::CrossCoreSetFlag: set_flag(core, call, time); return 0;
    case Op::IBSet:
      words_[{call.address, call.numbers[0], call.numbers[1]}].push_back(time);
      has_news_ = true;
      return 0;
    case Op::WaitPreBlock: {
      const uint32_t rank = vector_rank_[core];
      return order_of(call).notified[rank] * vector_count_ + rank;
    }
    case Op::NotifyNextBlock: {
      Order& order = order_of(call);
      ++order.notified[vector_rank_[core]];
      order.turns.push_back(std::max(time, order.turns.empty() ? 0 : order.turns.back()));
      has_news_ = true;
      return 0;
    }
    case Op::GroupArrive: {
      Group& group = groups_[call.address];
      group.arrivals.resize(std::max<size_t>(group.arrivals.size(), call.numbers[1]));
      group.arrivals[call.numbers[0]].push_back(time);
      has_news_ = true;
      return 0;
    }
    case Op::CubePost:
      requests_[{cores_[core]->block, cores_[core]->sub_block}].push_back(time);
      has_news_ = true;
      return 0;
    case Op::CubeServe: {
      // One number for each vector core whose request it is: how many of its requests came before, and one.
      uint64_t ticket = 0;
      for (uint32_t client = 0; client < kClients; ++client) {
        if ((call.numbers[0] >> client & 1) == 0) continue;
        ticket |= ++served_[{cores_[core]->block, client}] << (client * kTicketBits);
      }
      return ticket;
    }
    case Op::CubeFinish:
      for (uint32_t client = 0; client < kClients; ++client) {
        if ((call.numbers[0] >> client & 1) != 0) steps_[{cores_[core]->block, client}].push_back(time);
      }
      has_news_ = true;
      return 0;
    case Op::GroupWait: {
      Group& group = groups_[call.address];
      group.waits.resize(std::max<size_t>(group.waits.size(), call.count));
      return ++group.waits[call.numbers[0]];
    }
    default: return 0;
  }
}

bool CrossReplay::may_pass(size_t core, const CrossRecord& call, uint64_t ticket, double& from) {
  const auto take = [&](std::deque<double>& times) {
    if (times.empty()) return false;
    from = times.front();
    times.pop_front();
    return true;
  };
  switch (call.op) {
    case Op::SyncAll: {
      if (call.mode == 1 && cores_[core]->kind == SubCore::AIC) return true;
      const std::vector<double>& releases = barriers_[{call.mode, static_cast<uint32_t>(ticket >> 40)}].releases;
      const uint64_t generation = ticket & ((1ull << 40) - 1);
      if (releases.size() <= generation) return false;
      from = releases[generation];
      return true;
    }
    case Op::CrossCoreWaitFlag: return take(cell(signals_, core, call.flag));
    case Op::IBWait: return take(words_[{call.address, call.numbers[0], call.numbers[1]}]);
    case Op::WaitPreBlock: {
      const std::vector<double>& turns = order_of(call).turns;
      if (turns.size() < ticket) return false;
      from = ticket == 0 ? 0 : turns[ticket - 1];
      return true;
    }
    case Op::CubeServe:
      for (uint32_t client = 0; client < kClients; ++client) {
        const uint64_t number = ticket >> (client * kTicketBits) & ((uint64_t{1} << kTicketBits) - 1);
        if (number == 0) continue;
        const std::vector<double>& requests = requests_[{cores_[core]->block, client}];
        if (requests.size() < number) return false;
        from = std::max(from, requests[number - 1]);
      }
      return true;
    case Op::CubeAwait: {
      const std::vector<double>& steps = steps_[{cores_[core]->block, cores_[core]->sub_block}];
      if (call.numbers[0] == 0) return true;
      if (steps.size() < call.numbers[0]) return false;
      from = steps[call.numbers[0] - 1];
      return true;
    }
    case Op::GroupWait:
      for (const std::vector<double>& arrivals : groups_[call.address].arrivals) {
        if (arrivals.size() < ticket) return false;
        from = std::max(from, arrivals[ticket - 1]);
      }
      return !groups_[call.address].arrivals.empty();
    default: return true;
  }
}

}  // namespace opkit
