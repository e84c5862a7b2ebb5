/// Flags and barriers between cores on the scoreboard: who may go on, and from when.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "observe/timing.h"
#include "observe/timing_record.h"

namespace opkit {

/// CrossCoreSetFlag's mode from one kind of core to the other inside a block.
constexpr uint8_t kBetweenKinds = 2;

/// Whether a call waits for other cores, and says nothing to them.
bool is_wait(Op op);

/// Follows the rules of sync/cross_core.cpp and sync/ordered.cpp, with times instead of counts.
class CrossReplay {
 public:
  /// `cores`: the sub-cores that issued anything; places in it stand for cores everywhere below.
  explicit CrossReplay(const std::vector<const CoreRecord*>& cores);

  /// What a call tells the others at `time`; once per call. Returns what may_pass() wants to know of it.
  uint64_t signal(size_t core, const CrossRecord& call, double time);
  /// Whether the call may end, and from when on; false until others have signalled. Takes the signal.
  bool may_pass(size_t core, const CrossRecord& call, uint64_t ticket, double& from);

  /// The core whose signal had this time, which may_pass() gave; kNoIndex where there is none.
  uint32_t sender_at(double time) const;

  /// Whether the flag of a core is one that cores of the other kind in its block set.
  bool is_of_other_kind(size_t core, uint32_t flag) const;

  /// Whether anything was signalled since the last look.
  bool take_news() { return std::exchange(has_news_, false); }

 private:
  static constexpr uint32_t kFlags = 16;
  struct Barrier {
    uint32_t arrived = 0;
    double latest = 0;
    std::vector<double> releases;  ///< by generation
  };
  struct Order {
    std::vector<uint64_t> notified;  ///< by vector core
    std::vector<double> turns;
  };
  struct Group {
    std::vector<std::vector<double>> arrivals;  ///< by place in the arriving group
    std::vector<uint64_t> waits;                ///< by place in the waiting group
  };

  std::deque<double>& cell(std::vector<std::deque<double>>& cells, size_t core, uint32_t flag) {
    // Most launches signal no other core: they do not pay for the cells.
    if (cells.empty()) cells.resize(cores_.size() * kFlags);
    return cells[core * kFlags + flag % kFlags];
  }
  std::vector<size_t> group_of(size_t core, uint8_t mode, SubCore kind) const;
  void set_flag(size_t core, const CrossRecord& call, double time);
  Order& order_of(const CrossRecord& call);

  const std::vector<const CoreRecord*>& cores_;
  std::map<uint32_t, uint32_t> set_by_vectors_;  ///< by block, a bit for each flag: in mode 2
  std::vector<uint32_t> vector_rank_;            ///< place among the vector cores
  uint32_t vector_count_ = 0;
  bool has_news_ = false;
  std::unordered_map<double, uint32_t> senders_;  ///< by the time of a signal, the last core that gave it
  std::vector<std::deque<double>> arrivals_;      ///< by core and flag: signals that their group has not completed
  std::vector<std::deque<double>> signals_;       ///< by core and flag: signals not waited for
  std::map<std::pair<uint32_t, uint32_t>, Barrier> barriers_;
  std::map<std::tuple<uint64_t, uint64_t, uint64_t>, std::deque<double>> words_;  ///< IBSet's
  std::map<uint64_t, Order> orders_;
  std::map<uint64_t, Group> groups_;
  /// By block and vector core: when each request was made, and each of their steps was done.
  std::map<std::pair<uint32_t, uint32_t>, std::vector<double>> requests_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<double>> steps_;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> served_;
};

}  // namespace opkit
