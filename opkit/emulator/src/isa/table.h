/// The instruction table at run time: one OpRow for each row of include/opkit/isa/*.inc.
#pragma once

#include "core/core.h"
#include "opkit/instr.h"

namespace opkit {

enum class Family : uint8_t { VecUnary, VecBinary, VecBinaryScalar, VecSpecial, DataCopy, Cube, Control };

/// What the timing model charges by; chips/*.json has timing.cost.<name>.* for each.
enum class Cost : uint8_t {
#define OPKIT_COST(name, issue) name,
#include "isa/costs.inc"
#undef OPKIT_COST
  kCount
};

struct OpRow {
  const char* name;
  Family family;
  uint32_t types_a2;    ///< bit per DType: element types accepted on arch 2201
  uint32_t types_310p;  ///< on arch 2002
  Cost cost;
  const char* semantics;  ///< the row's own text
  void (*execute)(Core& core, const Instr& instr);
};

OPKIT_API const OpRow& row_of(Op op);
OPKIT_API const char* family_name(Family family);
OPKIT_API const char* cost_name(Cost cost);
/// The middle of chips/*.json's timing.scalar.<issue>_cycles, which issuing an instruction of this class costs.
const char* issue_name(Cost cost);
/// Whether instructions of this class run on V, charged by repeats.
bool is_vector(Cost cost);

/// Whether a copy converts half to float: to the bias table. It writes twice as many bytes as it reads.
inline bool copy_widens(const Instr& instr) {
  return instr.op == Op::DataCopy && instr.src[0].dtype == DType::F16 && instr.dst.dtype == DType::F32;
}

}  // namespace opkit
