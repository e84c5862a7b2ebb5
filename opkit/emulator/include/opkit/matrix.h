/// What matrix instructions say beside their operands: plain data, distances in bytes.
#pragma once

#include <cstdint>

#include "opkit/types.h"

namespace opkit {

constexpr uint32_t kFractalBytes = 512;  ///< 16 rows (L0A) or columns (L0B) of 32 bytes
constexpr uint32_t kCubeSide = 16;       ///< rows and columns of C that a fractal has
constexpr uint32_t kMaxMatrixSize = 4095;

/// Elements of a fractal's row: k of one fractal in L0A and L0B.
constexpr uint32_t fractal_width(DType type) { return type == DType::S4 ? 64 : 32 / size_bytes(type); }

/// LoadData2D, LoadDataWithTranspose: `repeat` squares of `fractals` fractals each.
struct FractalLoad {
  uint32_t repeat = 0;
  uint32_t fractals = 1;
  bool is_transposed = false;
  int64_t src_stride = 0;   ///< from square to square; negative where addresses fall
  int64_t dst_stride = 0;   ///< from the first fractal of a square to that of the next
  int64_t dst_fractal = 0;  ///< from fractal to fractal inside a square
};

/// Where C begins before the products are added.
enum class InitialC : uint8_t { Zero, Kept, BiasTable };

/// Mmad: C of m x n, A of m x k, B of k x n.
struct MatrixProduct {
  uint32_t m = 0;
  uint32_t n = 0;
  uint32_t k = 0;
  InitialC initial = InitialC::Zero;
  uint8_t unit_flag = 0;
  bool is_k_aligned_16 = false;  ///< F32 only: rows of A's fractals are an even number of fractals long
};

/// How Fixpipe changes elements on the way. Values are those of QuantMode_t. The V forms have a parameter a column.
enum class Quantisation : uint8_t {
  None = 0,
  F32ToF16,
  F32ToBF16,
  S32ToF16,
  VS32ToF16,
  F32ToB8,
  VF32ToB8,
  S32ToB8,
  VS32ToB8,
};

/// Fixpipe: `matrices` of m x n elements, columns of 16 in L0C.
struct FixpipeCopy {
  uint32_t m = 0;
  uint32_t n = 0;
  uint32_t matrices = 1;
  bool is_nd = true;              ///< to rows; else to columns of 16 elements, 32 of 8 bits
  bool is_channel_split = false;  ///< F32 to F32 columns of 8
  bool has_relu = false;
  bool has_clip = false;  ///< min(value, clip) behind the ReLU
  uint8_t unit_flag = 0;
  Quantisation quantisation = Quantisation::None;
  uint16_t clip_bits = 0;       ///< a half
  uint64_t parameter_bits = 0;  ///< scalar quantisation
  uint64_t src_stride = 0;      ///< from column to column
  uint64_t dst_stride = 0;      ///< ND: from row to row; NZ: from column to column
  uint64_t src_matrix_stride = 0;
  uint64_t dst_matrix_stride = 0;
};

}  // namespace opkit
