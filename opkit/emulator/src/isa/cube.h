/// What the matrix instructions share: where they may run, and the bytes that each touches.
#pragma once

#include <cstring>
#include <type_traits>
#include <vector>

#include "isa/footprint.h"

namespace opkit {

void execute_load_fractals(Core& core, const Instr& instr);
void execute_load_image(Core& core, const Instr& instr);
void execute_fill_matrix(Core& core, const Instr& instr);
void execute_broadcast(Core& core, const Instr& instr);
void execute_load_sparse(Core& core, const Instr& instr);
void execute_mmad(Core& core, const Instr& instr);
void execute_mmad_sparse(Core& core, const Instr& instr);
void execute_fixpipe(Core& core, const Instr& instr);

/// Bytes that a load of matrices moves.
struct ByteMove {
  uint64_t from;  ///< kNoSource: a constant
  uint64_t to;
  uint64_t bytes;
};
constexpr uint64_t kNoSource = ~0ull;
using MoveCallback = void (*)(void* context, const ByteMove& move);

/// Calls back for each run of bytes that stays together. Of two nibbles that meet in a byte only the first is told.
void for_each_move(const Instr& instr, MoveCallback callback, void* context);
void load_fractals_moves(const Instr& instr, MoveCallback callback, void* context);
void load_image_moves(const Instr& instr, MoveCallback callback, void* context);

template <class Function>
void for_each_move(const Instr& instr, Function&& function) {
  for_each_move(
      instr, [](void* context, const ByteMove& move) { (*static_cast<Function*>(context))(move); }, &function);
}

/// Footprints: a call for every range, reads before writes.
void load_fractals_ranges(const Core& core, const Instr& instr, RangeCallback callback, void* context);
void load_image_ranges(const Core& core, const Instr& instr, RangeCallback callback, void* context);
void load_sparse_ranges(const Core& core, const Instr& instr, RangeCallback callback, void* context);
void fill_ranges(const Core& core, const Instr& instr, RangeCallback callback, void* context);
void mmad_ranges(const Core& core, const Instr& instr, RangeCallback callback, void* context);
void fixpipe_ranges(const Core& core, const Instr& instr, RangeCallback callback, void* context);

/// Faults IllegalOperand on a vector core, and for element types that the row does not list for this chip.
void check_cube(const Core& core, const Instr& instr, DType type);

/// Faults IllegalOperand unless the operand lies in `space`, Misaligned unless it starts at a multiple of `alignment`.
void check_place(const Instr& instr, const Operand& operand, Space space, uint32_t alignment, const char* role);

constexpr uint32_t blocks_of(uint32_t count, uint32_t size) { return (count + size - 1) / size; }

/// Sizes in fractals.
struct ProductShape {
  uint32_t width;          ///< elements of k in a fractal
  uint32_t row_blocks;     ///< of A and C
  uint32_t column_blocks;  ///< of B and C
  uint32_t depth_blocks;   ///< fractals of A along k that are read
  uint32_t right_depth_blocks;
  uint32_t left_across;  ///< fractals between two rows of fractals of A
  bool is_vector;        ///< m = 1: A lies in one run. Source: Mmad, GEMV
};

ProductShape shape_of(const Instr& instr);

/// Memory for unpacked tiles; grows to the largest product that the thread has seen.
template <typename T>
T* scratch(std::vector<T>& buffer, size_t count) {
  constexpr size_t kAlignment = 64;
  if (buffer.size() < count + kAlignment) buffer.resize(count + kAlignment);
  const auto address = reinterpret_cast<uintptr_t>(buffer.data());
  return reinterpret_cast<T*>((address + kAlignment - 1) / kAlignment * kAlignment);
}

void multiply_integers(const Core& core, const Instr& instr, const ProductShape& shape);
void multiply_floats(const Core& core, const Instr& instr, const ProductShape& shape);

/// Runs a product of the lanes, whose sizes along m and n are filled in. What lies behind column n in the last block of
/// C stays as it is.
template <class Product>
void multiply_blocks(Product lanes, const MatrixProduct& product, const ProductShape& shape,
                     void (*multiply)(const Product&)) {
  lanes.c_stride = size_t{shape.row_blocks} * kCubeSide * kCubeSide;
  lanes.m = product.m;
  lanes.blocks = product.n / kCubeSide;
  multiply(lanes);
  const uint32_t columns = product.n % kCubeSide;
  if (columns == 0) return;
  using Sum = std::remove_pointer_t<decltype(lanes.c)>;
  static thread_local std::vector<Sum> buffer;
  Sum* last = scratch(buffer, lanes.c_stride);
  Sum* block = lanes.c + lanes.blocks * lanes.c_stride;
  const auto copy_columns = [&](Sum* to, const Sum* from) {
    for (uint32_t row = 0; row < product.m; ++row) {
      std::memcpy(to + row * kCubeSide, from + row * kCubeSide, columns * sizeof(Sum));
    }
  };
  copy_columns(last, block);
  lanes.b += lanes.blocks * lanes.b_stride;
  lanes.c = last;
  lanes.blocks = 1;
  multiply(lanes);
  copy_columns(block, last);
}

/// Checks a product and gives C its start values.
void start_product(Core& core, const Instr& instr);

/// Unit flags: a Mmad waits until the blocks of L0C have been carried out, a Fixpipe until they are filled. Here
/// instructions run in program order, so what would wait has to be ready; unitFlag 3 turns the blocks over. A Fixpipe
/// turns over whole fractals: public kernels fill fractals and carry out the rows of them that they need.
void follow_unit_flags(Core& core, const Instr& instr, uint64_t address, uint64_t bytes, uint8_t unit_flag);

}  // namespace opkit
