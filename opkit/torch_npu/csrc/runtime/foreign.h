/// Operators that programs have registered with td::OperatorRegistry, called with torch's tensors.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "opkit/operator_registry.h"

namespace opkit::npu {

/// The ge::DataType number of a type of torch; -1 for those that the chip has none for.
int32_t ge_type(c10::ScalarType type);

/// Serves the call on the stack, arguments replaced by the outputs; or leaves the stack and says why it cannot. Throws
/// what the implementation fails with. It serves forms with `out` tensors, which torch has made for it.
const char* serve_foreign(const opkit_operator& row, const c10::OperatorHandle& op, c10::Stack* stack);

}  // namespace opkit::npu
