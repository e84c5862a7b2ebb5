/// The instruction table at run time: one OpRow for each row of include/opkit/isa/*.inc.
#pragma once

#include "core/core.h"
#include "isa/footprint.h"
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

/// What observers need to know of an instruction beyond the bytes it touches.
namespace trait {
constexpr uint32_t PLAIN = 0;
constexpr uint32_t LANES = 1;         ///< lane i of the result comes from lane i of each source
constexpr uint32_t MOVES = 2;         ///< results are elements of the sources, unchanged
constexpr uint32_t SUMS = 4;          ///< results are sums of elements
constexpr uint32_t APART = 8;         ///< the destination may lie over no source at all
constexpr uint32_t INDEXED = 16;      ///< which bytes of src[0] it reads depends on data: they are not in its ranges
constexpr uint32_t ACCUMULATES = 32;  ///< results may gather up in src1: one of the two stays at its place
}  // namespace trait

/// Of one instruction. Source: SIMD compute, high-dimensional tiling.
constexpr uint32_t kMaxRepeat = 255;

struct OpRow {
  const char* name;
  Family family;
  uint32_t types;  ///< bits of the element types accepted where an architecture says no others
  Cost cost;
  uint32_t traits;        ///< bits of namespace trait
  const char* semantics;  ///< the row's own text
  void (*execute)(Core& core, const Instr& instr);
  /// Calls back for each range of bytes that it reads or writes (see footprint.h).
  void (*ranges)(const Core& core, const Instr& instr, RangeCallback callback, void* context);

  bool has(uint32_t trait) const { return (traits & trait) != 0; }
};

OPKIT_API const OpRow& row_of(Op op);
/// The element types that an architecture (its index in kArchs) accepts; none: it lacks the instruction.
OPKIT_API uint32_t types_of(size_t arch, Op op);
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
