/// Observers watch instructions; they never change a result.
#pragma once

#include <functional>
#include <optional>

#include "core/core.h"
#include "core/launch.h"
#include "core/reorder.h"

namespace opkit {

struct LaunchInfo {
  const char* kernel = "";
  const Chip* chip = nullptr;
  uint32_t block_dim = 0;
  uint32_t core_count = 0;  ///< sub-cores that take part
  const Launch* launch = nullptr;
};

/// Runs the launch that has just ended once more, in the order given, alone and with poisoned local memories. Global
/// memory is as the caller has left it. Tells the fault that it ended with.
using Rerun = std::function<FaultReport(const ReplayOrder&)>;

/// What a kernel asks of its queues and event ids.
struct ResourceEvent {
  enum class Action : uint8_t {
    PlaceBuffer,
    AllocateTensor,
    EnQueTensor,
    DeQueTensor,
    FreeTensor,
    AllocateEvent,
    ReleaseEvent
  };

  Action action = Action::AllocateTensor;
  const void* queue = nullptr;  ///< of a tensor
  Space space = Space::UB;      ///< of a tensor or a buffer
  uint32_t address = 0;         ///< of a tensor: the start of its buffer
  uint32_t bytes = 0;           ///< of its buffer
  Pipe first = Pipe::S;         ///< of an event: the pipe that signals
  Pipe second = Pipe::S;        ///< and the one that waits
  int8_t event_id = -1;
  bool is_queues = false;  ///< of an event: whether a queue uses it, not the kernel itself
  Where where = {"", 0};
};

/// Called from several host threads at once, but for one core from one thread at a time and in program order, so an
/// observer keeps its state by `core.index` and joins it in launch_end.
struct Observer {
  virtual ~Observer() = default;
  virtual void launch_begin(const LaunchInfo& info) = 0;
  /// Before it executes; operands, mask and repeat are final. Also SetFlag, WaitFlag, PipeBarrier, GetValue, SetValue.
  virtual void before(const Core& core, const Instr& instr) = 0;
  /// Whether it reads what instructions read and write. Where no observer does, instructions may wait in a core's
  /// chain: they execute after `before` and `after` have been called for them.
  virtual bool reads_values() const { return true; }
  /// After it executed, where an observer reads values.
  virtual void after(const Core& core, const Instr& instr) { (void)core, (void)instr; }
  /// After a queue or event call has succeeded; what it signals comes before or after it as an instruction.
  virtual void resource(const Core& core, const ResourceEvent& event) { (void)core, (void)event; }
  virtual void block_end(const Core& core) = 0;
  /// What the chip's system counter shows the core now; none where the observer knows no times.
  virtual std::optional<uint64_t> system_cycle(const Core& core) const {
    (void)core;
    return std::nullopt;
  }
  /// Whether a division of whole numbers by zero, behind which the chip goes on, is to end the launch: a finding.
  virtual bool ends_at_division_by_zero() const { return false; }
  /// The fault that ended the launch, before launch_end.
  virtual void launch_fault(const FaultReport& report) { (void)report; }
  virtual void launch_end() = 0;
  /// After launch_end, for observers that want to see the launch again.
  virtual void launch_again(const Rerun& rerun) { (void)rerun; }
  /// After all that: what lay in global memory from one address on has been copied to another, for the launch's caller.
  virtual void memory_moved(uint64_t from, uint64_t to, uint64_t bytes) { (void)from, (void)to, (void)bytes; }
};

}  // namespace opkit
