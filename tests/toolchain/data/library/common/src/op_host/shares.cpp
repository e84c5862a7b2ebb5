#include "op_host/shares.h"

#include "op_common/op_host/util/math_util.h"

int64_t shares::per_core(int64_t count, int64_t cores) {
  return Ops::Base::CeilAlign(Ops::Base::CeilDiv(count, cores), int64_t{16});
}
