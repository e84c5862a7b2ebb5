// The register that says how the DMA writes to global memory.
#include "core/launch_state.h"
#include "opkit/api/atomic.h"

namespace opkit {

void set_atomic_operation(uint8_t operation) {
  require_running_core().core.atomic_op = static_cast<AtomicOp>(operation);
}
void set_atomic_dtype(DType dtype) { require_running_core().core.atomic_dtype = dtype; }

void get_atomic(uint8_t& operation, DType& dtype) {
  const Core& core = require_running_core().core;
  operation = static_cast<uint8_t>(core.atomic_op);
  dtype = core.atomic_dtype;
}

}  // namespace opkit
