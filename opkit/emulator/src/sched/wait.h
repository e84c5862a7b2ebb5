/// Waiting for another core: the fiber gives its thread back, and a wait that nothing will end is a Deadlock.
#pragma once

#include <string>

#include "core/core.h"

namespace opkit {

/// Returns once `ready(context)` is true; until then the thread runs other cores. `what` says what is waited for, as in
/// "SyncAll"; `instr` says where. Whoever makes it true calls signal_progress() after the change.
void wait_until(bool (*ready)(void*), void* context, const Instr& instr, std::string what);

/// Runs the thread's other cores first: the caller polls for something that one of them does.
void yield_core();

/// Lets every waiting core of this launch look again.
void signal_progress(LaunchState& launch);

}  // namespace opkit
