/// What a race costs: the launch in the order that loses, compared with the order of the program.
#pragma once

#include <vector>

#include "observe/finding.h"
#include "observe/observer.h"

namespace opkit {

/// Keeps the launch's global memory as it was before, to run the launch from there again.
class Witnesses {
 public:
  void launch_begin(const LaunchInfo& info);

  /// Runs the launch in the losing order of each finding that is a race, and says what differs in global memory. Leaves
  /// global memory as the launch itself did.
  void show(const std::vector<Finding*>& races, bool has_auto_sync, const Rerun& rerun);

 private:
  using Memory = std::vector<std::vector<uint8_t>>;  // by range of the launch

  struct Result {
    Memory memory;
    FaultReport fault;
  };

  Memory read() const;
  void write(const Memory& memory) const;
  Result run(const ReplayOrder& order, const Rerun& rerun) const;
  void compare(Finding& race, const Result& expected, const Result& actual) const;

  const Launch* launch_ = nullptr;
  uint32_t core_count_ = 0;
  Memory before_;
};

}  // namespace opkit
