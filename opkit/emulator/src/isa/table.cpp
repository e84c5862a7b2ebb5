#include "isa/table.h"

#include <string_view>

#include "isa/execute.h"
#include "opkit/isa/arch_rows.h"

namespace opkit {
namespace {

using namespace type_bits;  // the words of the rows' type columns

using namespace trait;  // and of their traits

constexpr OpRow kRows[] = {
#define LANE_ROW(name, family, types, cost, traits, text) \
  {#name, Family::family, types, Cost::cost, LANES | traits, text, execute_elementwise, ranges_of<elementwise_use>},
#define VEC_UNARY(name, types, cost, ...) LANE_ROW(name, VecUnary, types, cost, PLAIN, #__VA_ARGS__)
#include "opkit/isa/vec_unary.inc"
#undef VEC_UNARY
#define VEC_BINARY(name, types, cost, traits, ...) LANE_ROW(name, VecBinary, types, cost, traits, #__VA_ARGS__)
#include "opkit/isa/vec_binary.inc"
#undef VEC_BINARY
#define VEC_BINARY_SCALAR(name, types, cost, ...) LANE_ROW(name, VecBinaryScalar, types, cost, PLAIN, #__VA_ARGS__)
#include "opkit/isa/vec_binary_scalar.inc"
#undef VEC_BINARY_SCALAR
#undef LANE_ROW
#define VEC_SPECIAL(name, types, cost, traits, execute, ranges, text) \
  {#name, Family::VecSpecial, types, Cost::cost, traits, text, execute, ranges},
#include "opkit/isa/vec_special.inc"
#undef VEC_SPECIAL
#define DATA_COPY(name, types, cost, ranges, text) \
  {#name, Family::DataCopy, types, Cost::cost, PLAIN, text, execute_data_copy, ranges},
#include "opkit/isa/data_copy.inc"
#undef DATA_COPY
#define CUBE(name, types, cost, execute, ranges, text) \
  {#name, Family::Cube, types, Cost::cost, PLAIN, text, execute, ranges},
#include "opkit/isa/cube.inc"
#undef CUBE
#define CONTROL(name, types, cost, text) \
  {#name, Family::Control, types, Cost::cost, PLAIN, text, execute_control, no_ranges},
#include "opkit/isa/control.inc"
#undef CONTROL
    {"an instruction without a name", Family::Control, NONE, Cost::flag, PLAIN, "", nullptr, no_ranges},
};
static_assert(sizeof(kRows) / sizeof(kRows[0]) == static_cast<size_t>(Op::kCount) + 1,
              "rows.inc and this file include the same families in the same order");

}  // namespace

uint32_t types_of(size_t arch, Op op) { return types_on(arch, op, row_of(op).types); }

const OpRow& row_of(Op op) { return kRows[static_cast<size_t>(op)]; }

const char* family_name(Family family) {
  static constexpr const char* kNames[] = {"vec_unary", "vec_binary", "vec_binary_scalar", "vec_special", "data_copy",
                                           "cube",      "control"};
  return kNames[static_cast<size_t>(family)];
}

const char* cost_name(Cost cost) {
  static constexpr const char* kNames[] = {
#define OPKIT_COST(name, issue) #name,
#include "isa/costs.inc"
#undef OPKIT_COST
      "none"};
  return kNames[static_cast<size_t>(cost)];
}

const char* issue_name(Cost cost) {
  static constexpr const char* kNames[] = {
#define OPKIT_COST(name, issue) #issue,
#include "isa/costs.inc"
#undef OPKIT_COST
  };
  return kNames[static_cast<size_t>(cost)];
}

bool is_vector(Cost cost) { return std::string_view(issue_name(cost)) == "vector_issue"; }

}  // namespace opkit
