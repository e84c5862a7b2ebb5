#include "opkit/fault.h"

#include <cstdarg>
#include <cstdio>
#include <stdexcept>

#include "core/launch_state.h"

namespace opkit {

const char* fault_name(Fault fault) {
  static constexpr const char* kNames[] = {
      "None", "OutOfBounds", "Misaligned", "UninitializedRead", "IllegalOperand", "QueueMisuse", "Race",    "Deadlock",
      "Leak", "Assertion",   "Crash",      "Unimplemented",     "Unspecified",    "Interrupted", "Internal"};
  static_assert(sizeof(kNames) / sizeof(kNames[0]) == static_cast<size_t>(Fault::kCount), "a name for each fault");
  return kNames[static_cast<size_t>(fault)];
}

void raise_fault(Fault fault, const Instr* instr, const char* help, const char* format, ...) {
  char message[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(message, sizeof(message), format, arguments);
  va_end(arguments);

  RunningCore* running = running_core();
  if (running == nullptr) throw std::logic_error(std::string("an Ascend C call outside a kernel: ") + message);

  const Core& core = running->core;
  LaunchState& launch = *core.launch;
  {
    std::lock_guard<std::mutex> guard(launch.fault_lock);
    if (launch.fault.fault == Fault::None || core.block < launch.fault.block) {
      FaultReport& report = launch.fault;
      report.fault = fault;
      report.message = message;
      report.help = help == nullptr ? "" : help;
      report.kernel = launch.launch->kernel;
      report.file = instr == nullptr ? "" : instr->where.file;
      report.line = instr == nullptr ? 0 : instr->where.line;
      report.block = core.block;
      report.sub_core = core.kind == SubCore::AIC ? "aic" : "aiv";
      report.pipe = instr == nullptr ? Pipe::S : instr->pipe;
      report.instruction = core.issued;
      launch.stop_above.store(core.block, std::memory_order_relaxed);
    }
  }
  abandon_fiber();
}

}  // namespace opkit
