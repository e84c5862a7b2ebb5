// Mmad. Source: Ascend C API, matrix computation (ISASI), Mmad.
//
// The documents do not say in which order the hardware adds up k. Here it is rising k, one fused multiply-add a step in
// float; integer products are summed exactly and C saturates once an instruction.
#include <algorithm>
#include <cstring>

#include "core/names.h"
#include "isa/cube.h"
#include "isa/saturation.h"
#include "isa/table.h"
#include "memory/bounds.h"

namespace opkit {
namespace {

constexpr uint32_t kColumnBytes = kCubeSide * 4;  ///< a row of one block of C

bool is_mmad_integer(DType type) { return type == DType::S4 || type == DType::S8 || type == DType::U8; }

}  // namespace

ProductShape shape_of(const Instr& instr) {
  const MatrixProduct& product = *instr.product;
  ProductShape shape;
  shape.width = fractal_width(instr.src[0].dtype);
  shape.row_blocks = blocks_of(product.m, kCubeSide);
  shape.column_blocks = blocks_of(product.n, kCubeSide);
  const bool is_sparse = instr.op == Op::MmadWithSparse;
  shape.depth_blocks = blocks_of(product.k, shape.width);
  shape.right_depth_blocks = is_sparse ? blocks_of(product.k / 2, shape.width) : shape.depth_blocks;
  const bool is_padded = product.is_k_aligned_16 && instr.src[0].dtype == DType::F32;
  shape.left_across = is_padded ? (shape.depth_blocks + 1) / 2 * 2 : shape.depth_blocks;
  shape.is_vector = product.m == 1 && !is_sparse;
  return shape;
}

namespace {

void check_types(const Instr& instr) {
  const DType left = instr.src[0].dtype;
  const DType right = instr.src[1].dtype;
  const DType result = instr.dst.dtype;
  const bool is_pair = left == right || (left == DType::U8 && right == DType::S8);
  const bool is_result = result == (is_mmad_integer(left) ? DType::S32 : DType::F32);
  // half to half on 310P rounds in a way that the documents only call imprecise.
  OPKIT_CHECK(!(left == DType::F16 && right == DType::F16 && result == DType::F16), Unimplemented, &instr,
              "give the result in float", "Mmad from half to half");
  OPKIT_CHECK(is_pair && is_result, IllegalOperand, &instr, "`opkit isa` lists the types of each instruction",
              "Mmad does not multiply %s by %s into %s", dtype_code(left), dtype_code(right), dtype_code(result));
}

/// What MmadParams may ask of this chip. Source: Mmad, parameters.
void check_parameters(const Core& core, const Instr& instr) {
  const MatrixProduct& product = *instr.product;
  const char* name = row_of(instr.op).name;
  const char* chip = core.chip->name.c_str();
  const bool is_coupled = core.chip->traits().is_coupled;
  OPKIT_CHECK(product.unit_flag == 0 || product.unit_flag == 2 || product.unit_flag == 3, IllegalOperand, &instr,
              nullptr, "%s: unitFlag %u is not 0, 2 or 3", name, product.unit_flag);
  OPKIT_CHECK(!is_coupled || product.unit_flag == 0, IllegalOperand, &instr, "leave it 0", "%s: %s has no unitFlag",
              name, chip);
  OPKIT_CHECK(!is_coupled || product.initial != InitialC::BiasTable, IllegalOperand, &instr,
              "fill L0C with BroadCastVecToMM and set cmatrixInitVal to false", "%s: %s has no bias table", name, chip);
  OPKIT_CHECK(!is_coupled || !product.is_k_aligned_16, IllegalOperand, &instr, "leave it false",
              "%s: %s has no kDirectionAlign", name, chip);
  OPKIT_CHECK(instr.op != Op::MmadWithSparse || !product.is_k_aligned_16, IllegalOperand, &instr, "leave it false",
              "MmadWithSparse takes no kDirectionAlign");
}

void check_product(const Core& core, const Instr& instr) {
  const MatrixProduct& product = *instr.product;
  check_cube(core, instr, instr.src[0].dtype);
  check_types(instr);
  check_parameters(core, instr);
  OPKIT_CHECK(product.m <= kMaxMatrixSize && product.n <= kMaxMatrixSize && product.k <= kMaxMatrixSize, IllegalOperand,
              &instr, "split the product", "%s: m %u, n %u or k %u is over %u", row_of(instr.op).name, product.m,
              product.n, product.k, kMaxMatrixSize);
  check_place(instr, instr.dst, Space::L0C, 1024, "dst");
  check_place(instr, instr.src[0], Space::L0A, kFractalBytes, "fm");
  check_place(instr, instr.src[1], Space::L0B, kFractalBytes, "filter");
  if (product.initial == InitialC::BiasTable) {
    OPKIT_CHECK(instr.src[2].dtype == instr.dst.dtype, IllegalOperand, &instr, "give the bias in dst's type",
                "%s: the bias is %s and dst %s", row_of(instr.op).name, dtype_code(instr.src[2].dtype),
                dtype_code(instr.dst.dtype));
    check_place(instr, instr.src[2], Space::BT, 64, "bias");
  }
}

void check_extents(const Core& core, const Instr& instr) {
  const MatrixProduct& product = *instr.product;
  const ProductShape shape = shape_of(instr);
  const DType type = instr.src[0].dtype;
  const uint64_t left_bytes =
      shape.is_vector ? span_bytes(type, product.k)
                      : (uint64_t{shape.row_blocks - 1} * shape.left_across + shape.depth_blocks) * kFractalBytes;
  check_bounds(core, instr, instr.src[0], instr.src[0].address, left_bytes, false);
  check_bounds(core, instr, instr.src[1], instr.src[1].address,
               uint64_t{shape.right_depth_blocks} * shape.column_blocks * kFractalBytes, false);
  check_bounds(core, instr, instr.dst, instr.dst.address,
               (uint64_t{shape.column_blocks - 1} * shape.row_blocks * kCubeSide + product.m - 1) * kColumnBytes +
                   (product.n - (shape.column_blocks - 1) * kCubeSide) * 4,
               true);
  if (product.initial == InitialC::BiasTable) {
    check_bounds(core, instr, instr.src[2], instr.src[2].address, uint64_t{product.n} * 4, false);
  }
}

/// Gives every row of C its start value; Kept leaves them.
void start_result(const Core& core, const Instr& instr, const ProductShape& shape) {
  const MatrixProduct& product = *instr.product;
  if (product.initial == InitialC::Kept) return;
  uint8_t* result = core.at(instr.dst);
  for (uint32_t block = 0; block < shape.column_blocks; ++block) {
    const uint32_t columns = std::min(kCubeSide, product.n - block * kCubeSide);
    uint8_t* column = result + uint64_t{block} * shape.row_blocks * kCubeSide * kColumnBytes;
    if (product.initial == InitialC::Zero && columns == kCubeSide) {
      std::memset(column, 0, uint64_t{product.m} * kColumnBytes);
      continue;
    }
    for (uint32_t row = 0; row < product.m; ++row) {
      if (product.initial == InitialC::Zero) {
        std::memset(column + row * kColumnBytes, 0, columns * 4);
      } else {
        std::memcpy(column + row * kColumnBytes, core.at(instr.src[2]) + block * kColumnBytes, columns * 4);
      }
    }
  }
}

/// Infinities and NaN of C in the saturating mode. Source: Mmad, constraints, CTRL[48].
void saturate_result(const Core& core, const Instr& instr, const ProductShape& shape) {
  const MatrixProduct& product = *instr.product;
  for (uint32_t block = 0; block < shape.column_blocks; ++block) {
    const uint32_t columns = std::min(kCubeSide, product.n - block * kCubeSide);
    uint8_t* column = core.at(instr.dst) + uint64_t{block} * shape.row_blocks * kCubeSide * kColumnBytes;
    for (uint32_t row = 0; row < product.m; ++row) saturate_floats(DType::F32, column + row * kColumnBytes, columns);
  }
}

}  // namespace

void mmad_ranges(const Core&, const Instr& instr, RangeCallback callback, void* context) {
  const MatrixProduct& product = *instr.product;
  if (product.m == 0 || product.n == 0 || product.k == 0) return;
  const ProductShape shape = shape_of(instr);
  const uint64_t left = instr.src[0].address;
  if (shape.is_vector) {
    callback(context, {1, left, span_bytes(instr.src[0].dtype, product.k), false});
  } else {
    for (uint32_t row = 0; row < shape.row_blocks; ++row) {
      const uint32_t rows = std::min(kCubeSide, product.m - row * kCubeSide);
      for (uint32_t depth = 0; depth < shape.depth_blocks; ++depth) {
        const uint64_t fractal = left + (uint64_t{row} * shape.left_across + depth) * kFractalBytes;
        callback(context, {1, fractal, uint64_t{rows} * kBlockBytes, false});
      }
    }
  }
  for (uint32_t depth = 0; depth < shape.right_depth_blocks; ++depth) {
    for (uint32_t block = 0; block < shape.column_blocks; ++block) {
      const uint32_t columns = std::min(kCubeSide, product.n - block * kCubeSide);
      const uint64_t fractal = instr.src[1].address + (uint64_t{depth} * shape.column_blocks + block) * kFractalBytes;
      callback(context, {2, fractal, uint64_t{columns} * kBlockBytes, false});
    }
  }
  if (product.initial == InitialC::BiasTable) {
    callback(context, {3, instr.src[2].address, uint64_t{product.n} * 4, false});
  }
  const auto result = [&](bool is_write) {
    for (uint32_t block = 0; block < shape.column_blocks; ++block) {
      const uint32_t columns = std::min(kCubeSide, product.n - block * kCubeSide);
      const uint64_t column = instr.dst.address + uint64_t{block} * shape.row_blocks * kCubeSide * kColumnBytes;
      if (columns == kCubeSide) {
        callback(context, {0, column, uint64_t{product.m} * kColumnBytes, is_write});
        continue;
      }
      for (uint32_t row = 0; row < product.m; ++row) {
        callback(context, {0, column + row * kColumnBytes, columns * 4, is_write});
      }
    }
  };
  if (product.initial == InitialC::Kept) result(false);
  result(true);
}

void start_product(Core& core, const Instr& instr) {
  check_product(core, instr);
  check_extents(core, instr);
  const ProductShape shape = shape_of(instr);
  const MatrixProduct& product = *instr.product;
  for (uint32_t block = 0; product.unit_flag != 0 && block < shape.column_blocks; ++block) {
    const uint64_t column = instr.dst.address + uint64_t{block} * shape.row_blocks * kCubeSide * kColumnBytes;
    follow_unit_flags(core, instr, column, uint64_t{product.m} * kColumnBytes, product.unit_flag);
  }
  start_result(core, instr, shape);
}

void execute_mmad(Core& core, const Instr& instr) {
  const MatrixProduct& product = *instr.product;
  if (product.m == 0 || product.n == 0 || product.k == 0) return;
  start_product(core, instr);
  const ProductShape shape = shape_of(instr);
  if (is_mmad_integer(instr.src[0].dtype)) {
    multiply_integers(core, instr, shape);
  } else {
    multiply_floats(core, instr, shape);
    if (core.saturates_floats) saturate_result(core, instr, shape);
  }
}

}  // namespace opkit
