#include "isa/table.h"

#include <string_view>

#include "isa/execute.h"
#include "opkit/isa/type_bits.h"

namespace opkit {
namespace {

using namespace type_bits;  // the words of the rows' type columns

constexpr OpRow kRows[] = {
#define VEC_UNARY(name, a2, p310, cost, ...) \
  {#name, Family::VecUnary, a2, p310, Cost::cost, #__VA_ARGS__, execute_elementwise},
#include "opkit/isa/vec_unary.inc"
#undef VEC_UNARY
#define VEC_BINARY(name, a2, p310, cost, ...) \
  {#name, Family::VecBinary, a2, p310, Cost::cost, #__VA_ARGS__, execute_elementwise},
#include "opkit/isa/vec_binary.inc"
#undef VEC_BINARY
#define VEC_BINARY_SCALAR(name, a2, p310, cost, ...) \
  {#name, Family::VecBinaryScalar, a2, p310, Cost::cost, #__VA_ARGS__, execute_elementwise},
#include "opkit/isa/vec_binary_scalar.inc"
#undef VEC_BINARY_SCALAR
#define VEC_SPECIAL(name, a2, p310, cost, execute, text) \
  {#name, Family::VecSpecial, a2, p310, Cost::cost, text, execute},
#include "opkit/isa/vec_special.inc"
#undef VEC_SPECIAL
#define DATA_COPY(name, a2, p310, cost, text) {#name, Family::DataCopy, a2, p310, Cost::cost, text, execute_data_copy},
#include "opkit/isa/data_copy.inc"
#undef DATA_COPY
#define CUBE(name, a2, p310, cost, execute, text) {#name, Family::Cube, a2, p310, Cost::cost, text, execute},
#include "opkit/isa/cube.inc"
#undef CUBE
#define CONTROL(name, a2, p310, cost, text) {#name, Family::Control, a2, p310, Cost::cost, text, execute_control},
#include "opkit/isa/control.inc"
#undef CONTROL
    {"an instruction without a name", Family::Control, NONE, NONE, Cost::flag, "", nullptr},
};
static_assert(sizeof(kRows) / sizeof(kRows[0]) == static_cast<size_t>(Op::kCount) + 1,
              "rows.inc and this file include the same families in the same order");

}  // namespace

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
