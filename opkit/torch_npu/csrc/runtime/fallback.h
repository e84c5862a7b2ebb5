/// Operators that no kernel serves: the CPU computes them on the device's own memory, and each is counted.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>

namespace opkit::npu {

/// Runs `op` on the CPU with the tensors of the stack seen as tensors of the CPU: nothing is copied, results move into
/// tensors of the device. `reason` says why no kernel served it.
void run_on_cpu(const c10::OperatorHandle& op, c10::Stack* stack, const char* reason);

/// A tensor of the CPU on the same memory.
at::Tensor as_cpu(const at::Tensor& tensor);

/// Counts a call that a kernel has served.
void count_native(const c10::OperatorHandle& op);
void count_native(const std::string& name);

/// Warns of a call that the CPU is about to serve, or refuses it, as OPKIT_FALLBACK says.
void announce_fallback(const std::string& name, const char* reason);
/// Counts a call that the CPU has served.
void count_fallback(const std::string& name, const std::string& reason, double took_us);

/// What was counted so far, as JSON.
std::string counts_json();
void reset_counts();

/// What a profile hears of: a launch, before it begins, and a call that the CPU has served.
enum class CallKind : int { Launch = 0, Fallback = 1 };
using CallListener = void (*)(int kind, const char* name, double took_us);
void tell_listener(CallKind kind, const char* name, double took_us);

/// What a fallback does: 0 nothing, 1 a warning once an operator, 2 an error.
void set_fallback_mode(int mode);

}  // namespace opkit::npu
