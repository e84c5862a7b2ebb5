/// Which kernel serves an operator: rows of the process's registry (opkit/operator_registry.h) that know torch's calls.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace opkit::npu {

/// Serves the call on the stack, arguments replaced by results; or leaves the stack as it is and says why it cannot.
/// Or it has the call done by other operators, which are counted instead of it, and returns kDecomposed.
using Serve = std::function<const char*(const c10::OperatorHandle&, c10::Stack*)>;

inline constexpr const char kDecomposed[] = "done by other operators";

struct Kernel {
  std::string op;                        ///< such as aten::add.out
  std::string name;                      ///< of the kernel, for messages
  int priority = 0;                      ///< the highest that can serve a call does
  std::string device;                    ///< the chip that it is for; empty: any
  std::optional<c10::ScalarType> dtype;  ///< of the first tensor; none: any
  Serve serve;
};

/// Adds to the process's registry, which other programs' operators are in too. Throws where one of the same table and
/// priority is there: the message names both.
void add_kernel(Kernel kernel);

/// Registers a kernel of opkit for an operator of ATen, in the registry and with PyTorch's dispatcher. Arguments of
/// operators in meta_functions.inc are checked, and tensors of `out=` sized, before it runs.
void add_native(const std::string& op, const char* kernel, Serve serve);

/// What add_native has collected so far, without aten::.
const std::vector<std::string>& native_operators();

/// Registers what add_native has collected with the dispatcher: once, when the library starts.
void register_natives();

}  // namespace opkit::npu
