/// Observers watch instructions; they never change a result.
#pragma once

#include "core/core.h"

namespace opkit {

struct LaunchInfo {
  const char* kernel = "";
  const Chip* chip = nullptr;
  uint32_t block_dim = 0;
  uint32_t core_count = 0;  ///< sub-cores that take part
};

/// Called from several host threads at once, but for one core from one thread at a time and in program order, so an
/// observer keeps its state by `core.index` and joins it in launch_end.
struct Observer {
  virtual ~Observer() = default;
  virtual void launch_begin(const LaunchInfo& info) = 0;
  /// Before it executes; operands, mask and repeat are final. Also SetFlag, WaitFlag, PipeBarrier, GetValue, SetValue.
  virtual void before(const Core& core, const Instr& instr) = 0;
  /// After it executed.
  virtual void after(const Core& core, const Instr& instr) { (void)core, (void)instr; }
  virtual void block_end(const Core& core) = 0;
  virtual void launch_end() = 0;
};

}  // namespace opkit
