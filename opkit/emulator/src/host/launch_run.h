/// Launching the kernel of an operator.
#pragma once

#include <string>
#include <vector>

#include "opkit/direct_launch.h"
#include "bound_call.h"
#include "core/launch.h"
#include "tiling_run.h"

namespace opkit::host {

/// Runs `kernel` on the call's tensors; the record says how it went. Throws CallError when the kernel cannot be called.
/// `workspace`: at least as large as the tiling function asks for; one of its own when null. `poisons`: outputs and
/// workspace start out full of NaN patterns, so that what the kernel leaves unwritten shows. `computed`: gets the
/// shapes of the outputs whose shape the kernel writes, after a run without a fault.
LaunchRecord run_kernel(const KernelEntry& kernel, const BoundCall& call, const opkit_tensor* outputs,
                        TilingResult& tiling, void* workspace, bool poisons, std::vector<opkit_shape>& computed);

/// Sorted and without overlap: a tensor passed twice, or an output written in place, is one range.
std::vector<GmRange> sorted_ranges(std::vector<GmRange> ranges);

/// A fault as text: what happened, where, and what to do.
std::string fault_text(const FaultReport& report);

/// The fault of the last operator call on this thread that ended in OPKIT_FAULT.
OPKIT_API const FaultReport& last_fault();

/// Whether the last failure on this thread was the operator's host code, which takes no such call.
OPKIT_API bool last_call_was_refused();

/// Runs a launch on the caller's own addresses; `error` says what was wrong where the status is not OPKIT_OK.
opkit_status launch_direct(const opkit_direct_launch& given, std::string& error);

/// Inputs that the kernel of this thread's last operator call changed, by name, where launches are poisoned; those
/// that are outputs too are none.
OPKIT_API const std::vector<std::string>& last_changed_inputs();

/// Instructions of the last kernel call on this thread.
OPKIT_API uint64_t last_instruction_count();

}  // namespace opkit::host
