/// The elementwise rows of the instruction table in double precision.
#pragma once

#include "opkit/isa/ops.h"

namespace opkit {

struct WideRow {
  /// a, b: the sources; d: the destination's old value; s, t: the scalars. Null where no float type is accepted.
  double (*apply)(double a, double b, double d, double s, double t) = nullptr;
  bool has_scalar = false;
};

const WideRow& wide_row(Op op);

}  // namespace opkit
