/// The byte ranges that an instruction reads and writes: what the sanitizer and the timing model look at.
#pragma once

#include "core/core.h"

namespace opkit {

struct ByteRange {
  uint32_t operand;  ///< 0: dst, 1 to 3: sources
  uint64_t begin;    ///< in the operand's memory
  uint64_t bytes;
  bool is_write;
};

using RangeCallback = void (*)(void* context, const ByteRange& range);

/// Calls back for every range of a vector instruction or a data copy; an operand that is read and written comes twice.
/// Data-dependent reads (Gather's src) are not among them. Call it before the instruction executes.
void for_each_range(const Core& core, const Instr& instr, RangeCallback callback, void* context);

template <class Function>
void for_each_range(const Core& core, const Instr& instr, Function&& function) {
  for_each_range(
      core, instr, [](void* context, const ByteRange& range) { (*static_cast<Function*>(context))(range); }, &function);
}

}  // namespace opkit
