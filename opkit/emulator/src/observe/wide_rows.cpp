// One function over doubles for each elementwise row, expanded from the table's own text. The mathematics is libm's: a
// wider value is what results are measured by, never a result, and single precision polynomials would not do.
#include "observe/wide_rows.h"

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "opkit/isa/arch_rows.h"
#include "opkit/types.h"

namespace opkit {
namespace wide {
namespace {

double absolute(double a) { return std::fabs(a); }
double exp(double a) { return std::exp(a); }
double ln(double a) { return std::log(a); }
double sqrt(double a) { return std::sqrt(a); }
double rsqrt(double a) { return 1.0 / std::sqrt(a); }
double relu(double a) { return a <= 0 ? 0 : a; }
double leaky_relu(double a, double s) { return a >= 0 ? a : a * s; }
double maximum(double a, double b) { return a > b || a != a ? a : b; }
double minimum(double a, double b) { return a < b || a != a ? a : b; }

#include "isa/lanes/rows.inc"

template <class Row>
double apply(double a, double b, double d, double s, double t) {
  return Row::apply(a, b, d, s, t);
}

template <class Row>
constexpr WideRow make_row() {
  using namespace type_bits;
  WideRow row;
  if constexpr ((Row::kTypes & (F16 | F32)) != 0) row.apply = &apply<Row>;
  row.has_scalar = Row::kHasScalar;
  return row;
}

struct Table {
  WideRow rows[static_cast<size_t>(Op::kCount)];
};

constexpr Table make_table() {
  Table table;
#define OPKIT_ADD_ROW(name, ...) table.rows[static_cast<size_t>(Op::name)] = make_row<name>();
#define VEC_UNARY OPKIT_ADD_ROW
#define VEC_BINARY OPKIT_ADD_ROW
#define VEC_BINARY_SCALAR OPKIT_ADD_ROW
#include "opkit/isa/vec_unary.inc"
#include "opkit/isa/vec_binary.inc"
#include "opkit/isa/vec_binary_scalar.inc"
#undef VEC_UNARY
#undef VEC_BINARY
#undef VEC_BINARY_SCALAR
#undef OPKIT_ADD_ROW
  return table;
}

}  // namespace
}  // namespace wide

const WideRow& wide_row(Op op) {
  static constexpr wide::Table kTable = wide::make_table();
  return kTable.rows[static_cast<size_t>(op)];
}

}  // namespace opkit
