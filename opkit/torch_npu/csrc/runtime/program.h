/// Formulas, such as "self * sigmoid(self)", as steps of the kernel `vector_program`.
///
/// A formula is assignments `name = expression;` and a last expression, which goes to the first output. Names are
/// inputs, numbers or outputs of the call. Functions are the steps of vector_ops.inc and the compiler's rows that
/// opkit/torch_npu/formulas.py names. `rsum`, `rmax` and `rmin` go over a row and fill it. `fold(x)` stands for
/// the value that a reduction leaves of x: what comes before is done on each tile, what comes after on the result.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vector_program.h"

namespace opkit::npu {

/// Where a step's constant comes from: the n-th number of the call, or the formula itself.
struct NumberSlot {
  uint32_t step;
  int32_t number;
};

/// One formula, ready to be launched.
struct Program {
  std::vector<kernels::Instruction> steps;
  std::vector<NumberSlot> slots;
  std::vector<uint8_t> input_registers;   ///< by input
  std::vector<uint8_t> output_registers;  ///< by output
  std::vector<bool> is_input_used;
  uint32_t register_count = 0;
  uint32_t body_count = 0;  ///< steps before the fold; all where there is none
  uint8_t fold_register = 0;
  uint8_t folded_register = 0;
  bool has_fold = false;
  bool has_rows = false;      ///< whether a step goes over rows
  bool has_lanes = false;     ///< whether a step tells how far an element is from its row's begin
  bool is_whole_able = true;  ///< whether every step is there for whole numbers
  uint32_t tile_limit = 0;    ///< floats of a register that UB has room for
};

/// Compiles a formula; throws c10::Error for a wrong one, which is our bug.
Program compile(std::string_view formula, const std::vector<std::string>& inputs,
                const std::vector<std::string>& numbers, const std::vector<std::string>& outputs);

/// A program by its formula, compiled once.
const Program& program_of(const char* formula, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& numbers, const std::vector<std::string>& outputs);

}  // namespace opkit::npu
