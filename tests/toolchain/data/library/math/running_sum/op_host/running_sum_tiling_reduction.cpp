#include "op_kernel/arch35/running_sum_graph.h"
#include "running_sum_tiling_registers.h"

ge::graphStatus ReductionTiling::run(gert::TilingContext* context) {
  return Ops::Base::Tiling4ReduceOp<RunningSumGraph>(context, key);
}
