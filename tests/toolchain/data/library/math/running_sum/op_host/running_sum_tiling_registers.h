#pragma once

#include "atvoss/elewise/elewise_tiling.h"
#include "register/op_impl_registry.h"

/// For chips whose kernels compute in vector registers.
class RegisterTiling {
 public:
  ge::graphStatus Run(gert::TilingContext* context);

 private:
  Ops::Base::EleBaseTilingDataV2* data_ = nullptr;
};
