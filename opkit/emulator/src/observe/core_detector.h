/// What detectors share that look at each core by itself.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/core.h"
#include "observe/checks.h"

namespace opkit {

/// What is kept for a core; each detector adds what it needs.
struct CoreFindings {
  explicit CoreFindings(uint32_t only_block) : findings(only_block) {}

  FindingList findings;
};

/// Keeps a `State`, a CoreFindings, for each core of a launch. Only the thread that runs a core touches the core's.
template <typename State>
class CoreDetector : public Detector {
 public:
  explicit CoreDetector(const CheckOptions& options) : only_block_(options.only_block) {}

  void launch_begin(const LaunchInfo& info) override {
    states_.clear();
    states_.resize(info.core_count);
  }
  void launch_end() override {
    for (const std::unique_ptr<State>& state : states_) {
      if (state != nullptr) findings_.merge(std::move(state->findings));
    }
    states_.clear();
  }
  std::vector<Finding> take() override { return findings_.take(); }

 protected:
  /// The core's state, made where there is none.
  State& state_of(const Core& core) {
    std::unique_ptr<State>& state = states_[core.index];
    if (state == nullptr) state = std::make_unique<State>(only_block_);
    return *state;
  }
  /// The core's state; null where there is none.
  State* find_state(const Core& core) { return states_[core.index].get(); }

  void drop_states() { states_.clear(); }

 private:
  uint32_t only_block_;
  std::vector<std::unique_ptr<State>> states_;
  FindingList findings_;
};

}  // namespace opkit
