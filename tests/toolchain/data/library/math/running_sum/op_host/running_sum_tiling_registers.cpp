#include "running_sum_tiling_registers.h"

#include "op_kernel/arch35/running_sum_graph.h"

ge::graphStatus RegisterTiling::Run(gert::TilingContext* context) {
  Ops::Base::ElewiseBaseTiling tiling(context);
  return tiling.DoTiling<RunningSumGraph>(*data_);
}
