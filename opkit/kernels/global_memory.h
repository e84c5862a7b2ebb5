/// Single elements of global memory.
#pragma once

#include "kernel_operator.h"

namespace opkit::kernels {

/// A tensor that begins at an element of what lies at `base`.
template <typename T>
__aicore__ inline AscendC::GlobalTensor<T> global(GM_ADDR base, int64_t element) {
  AscendC::GlobalTensor<T> tensor;
  tensor.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(base) + element);
  return tensor;
}

}  // namespace opkit::kernels
