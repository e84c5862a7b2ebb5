// All lanes for one target. Compiled once per target with OPKIT_LANE_TARGET set to its name (cmake/lanes.cmake).
#include "isa/lanes/cast.h"
#include "isa/lanes/chain.h"
#include "isa/lanes/elementwise.h"
#include "isa/lanes/matmul.h"
#include "isa/lanes/matmul_bfloat16.h"
#include "isa/lanes/matmul_integers.h"
#include "isa/lanes/reduce.h"
#include "isa/lanes/select.h"

#define OPKIT_TEXT_OF(name) #name
#define OPKIT_TEXT(name) OPKIT_TEXT_OF(name)

namespace opkit::lanes {
namespace {

constexpr LaneTable make_table() {
  LaneTable table = {};
  table.target = OPKIT_TEXT(OPKIT_LANE_TARGET);
  add_elementwise(table);
  add_chain(table);
  add_casts(table);
  add_selects(table);
  add_reduces(table);
  add_matmul(table);
  add_bfloat16_matmul(table);
  add_integer_matmul(table);
  return table;
}

constexpr LaneTable kTable = make_table();

}  // namespace

namespace OPKIT_LANE_TARGET {
const LaneTable& lane_table() { return kTable; }
}  // namespace OPKIT_LANE_TARGET

}  // namespace opkit::lanes
