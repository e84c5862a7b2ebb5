/// A vector program: what one launch of the kernel `vector_program` computes, as data in global memory. The device's
/// host code writes it and the kernel reads it, so both include this file.
///
/// One kernel runs every element-wise function, row-wise function (softmax, norms) and reduction: it moves tiles of the
/// operands to UB, converts them to float, does the program's steps on registers of one tile each, and stores.
#pragma once

#include <cstdint>

#include "plans.h"

namespace opkit::kernels {

enum class Step : uint8_t {
#define OP(name, operands, whole) name,
#include "vector_ops.inc"
#undef OP
  kCount
};

constexpr uint32_t kMaxOperands = 10;
constexpr uint32_t kMaxSteps = 160;
constexpr uint32_t kMaxRegisters = 32;
constexpr uint32_t kPartFloats = 8;  ///< of what a core leaves of its part: a block of 32 bytes
constexpr uint32_t kOuter = 5;       ///< dims around the row

struct Instruction {
  Step step;
  uint8_t to;
  uint8_t a;
  uint8_t b;
  uint8_t c;
  uint8_t padding[3];
  float value;
  int64_t whole;
};

/// Strides count elements. The row is the innermost dim.
struct Operand {
  Kind kind;
  uint8_t reg;
  uint8_t is_output;
  uint8_t padding[5];
  int64_t row_stride;  ///< 0 or 1; 0 of an output: lane 0 of a row is its value
  int64_t strides[kOuter];
};

enum class Fold : uint8_t { None, Sum, Max, Min, Prod };

struct VectorProgram {
  uint32_t bytes;  ///< of this struct, for the kernel's own check
  uint32_t operand_count;
  uint32_t step_count;
  uint32_t body_count;  ///< Fold: the first so many steps run on each tile, the rest on the folded one
  uint32_t tile;        ///< floats of a register, a multiple of 64
  uint32_t register_count;
  uint32_t pitch;  ///< from row to row of a tile
  uint32_t rows;   ///< rows of a tile, of dim 0 of the outer ones
  uint32_t is_whole;
  Fold fold;
  uint8_t fold_row;  ///< whether the row itself is folded
  uint8_t fold_reg;  ///< what the body leaves, and where the folded value is
  uint8_t acc_reg;
  uint32_t parts;  ///< cores that share the fold of a row, each a part of it; of a list: whether they do. 0: none
  uint64_t space;  ///< where they meet: kPartFloats for each core
  int64_t row;     ///< elements
  int64_t outer[kOuter];       ///< sizes; [0] is the one that tiles batch rows of
  int64_t fold_outer[kOuter];  ///< sizes of the dims that are folded, 1 elsewhere; outer is 1 there
  int64_t fold_strides[kMaxOperands][kOuter];
  Operand operands[kMaxOperands];
  Instruction steps[kMaxSteps];
};

/// One of several lines of elements that a program of one line, or its fold, is run on in one launch.
struct ListEntry {
  int64_t size;          ///< elements
  uint32_t first_block;  ///< of the cores that share its fold, and how many these are
  uint32_t parts;
  uint64_t addresses[kMaxOperands];
};

}  // namespace opkit::kernels
