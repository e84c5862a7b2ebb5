/// What matrix instructions say beside their operands: plain data, distances in bytes.
#pragma once

#include <cstdint>

#include "opkit/types.h"

namespace opkit {

constexpr uint32_t kFractalBytes = 512;  ///< 16 rows (L0A) or columns (L0B) of 32 bytes
constexpr uint32_t kCubeSide = 16;       ///< rows and columns of C that a fractal has
constexpr uint32_t kMaxMatrixSize = 4095;
constexpr uint32_t kSparseIndexBytes = kFractalBytes / 4;  ///< of a fractal of int8_t: two bits an element

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

/// LoadData3D: windows of an image of c1 planes of h x w pixels, a row of the matrix each.
struct ImageLoad {
  uint16_t height = 0;
  uint16_t width = 0;
  uint8_t padding[4] = {0, 0, 0, 0};  ///< left, right, top, bottom
  uint64_t padding_bits = 0;          ///< the value of pixels in the padding
  uint32_t channels = 0;
  uint32_t rows = 0;  ///< what is loaded, per repeat, and from where on
  uint32_t columns = 0;
  uint32_t first_row = 0;
  uint32_t first_column = 0;
  uint32_t stride_w = 1;
  uint32_t stride_h = 1;
  uint32_t filter_w = 1;
  uint32_t filter_h = 1;
  uint32_t dilation_w = 1;
  uint32_t dilation_h = 1;
  bool is_transposed = false;
  uint32_t repeat = 1;
  uint32_t repeat_step = 0;  ///< rows or columns between two repeats
  bool repeats_columns = false;
  uint32_t boundary = 0;  ///< bytes of L1 behind which addresses begin at 0 again; 0: none
};

/// InitConstValue, BroadCastVecToMM: `repeat` times `blocks` blocks.
struct MatrixFill {
  uint32_t repeat = 0;
  uint32_t blocks = 0;
  uint32_t block_bytes = 0;
  uint64_t dst_stride = 0;
  uint64_t src_stride = 0;  ///< BroadCastVecToMM
  uint64_t value_bits = 0;  ///< InitConstValue
};

/// Where C begins before the products are added.
enum class InitialC : uint8_t { Zero, Kept, BiasTable };

/// Where a float in the middle of two HF32 numbers goes. The first two are HF32TransMode's.
enum class HalfwayTo : uint8_t { Even, Zero, Infinity };

/// Mmad: C of m x n, A of m x k, B of k x n.
struct MatrixProduct {
  uint32_t m = 0;
  uint32_t n = 0;
  uint32_t k = 0;
  InitialC initial = InitialC::Zero;
  uint8_t unit_flag = 0;
  bool is_hf32 = false;  ///< F32 only: inputs are rounded to HF32 first
  HalfwayTo hf32_halfway = HalfwayTo::Even;
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

/// Whether each column has a parameter of its own.
constexpr bool is_vector(Quantisation quantisation) {
  return quantisation == Quantisation::VS32ToF16 || quantisation == Quantisation::VF32ToB8 ||
         quantisation == Quantisation::VS32ToB8;
}

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
