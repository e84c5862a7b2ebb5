#pragma once

#include "atvoss/elewise/elewise_tiling.h"
#include "op_common/atvoss/broadcast/broadcast_tiling.h"
#include "op_common/atvoss/reduce/reduce_tiling.h"
#include "register/op_impl_registry.h"

/// For chips whose kernels compute in vector registers.
class RegisterTiling {
 public:
  ge::graphStatus Run(gert::TilingContext* context);

 private:
  Ops::Base::EleBaseTilingDataV2* data_ = nullptr;
};

/// Host code of several chips says it with the vendor's key in it.
struct ReductionTiling {
  Ops::Base::ReduceTilingKey key;
  ge::graphStatus run(gert::TilingContext* context);
};
