/// What the parts of the Python module share.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "opkit/fault.h"

namespace opkit {

/// Raises opkit.errors.KernelFault.
[[noreturn]] void raise_kernel_fault(const FaultReport& report);

/// Raises opkit.errors.UsageError.
[[noreturn]] void raise_usage(const std::string& message);

/// Raises the exception for a status that this thread's last C function returned, with opkit_last_error() as its text.
void check_status(int status);

void bind_check(pybind11::module_& module);       ///< detectors and findings (bindings/check.cpp)
void bind_debug(pybind11::module_& module);       ///< recordings of launches (bindings/debug.cpp)
void bind_describe(pybind11::module_& module);    ///< what host libraries register (bindings/describe.cpp)
void bind_kernel(pybind11::module_& module);      ///< kernels of compiled images (bindings/kernel.cpp)
void bind_lanes(pybind11::module_& module);       ///< lane targets (bindings/lanes.cpp)
void bind_op_call(pybind11::module_& module);     ///< operator libraries (bindings/op_call.cpp)
void bind_optimisers(pybind11::module_& module);  ///< td's classes (bindings/optimisers.cpp)
void bind_process(pybind11::module_& module);     ///< log and state of this process (bindings/process.cpp)
void bind_timing(pybind11::module_& module);      ///< timelines (bindings/timing.cpp)
void bind_wide(pybind11::module_& module);        ///< the wider run (bindings/wide.cpp)

}  // namespace opkit
