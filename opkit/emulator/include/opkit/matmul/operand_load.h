/// One operand of the multiplication on its way: GM to L1 block by block, L1 to L0A or L0B. Source of the layouts:
/// Ascend C API, matrix computation (ISASI), LoadData and LoadDataWithTranspose; L0A is Zz, L0B is Zn.
#pragma once

#include <type_traits>

#include "kernel_operator.h"
#include "opkit/matmul/cube_context.h"
#include "opkit/matmul/state.h"

namespace opkit::matmul {

/// A block in L1.
struct Block {
  uint32_t address = 0;      ///< byte
  uint32_t index = 0;        ///< byte of a sparse block's indices
  int32_t column_rows = 0;   ///< rows from one column of data blocks to the next
  int32_t outer_offset = 0;  ///< where the tile begins in it, in rows or columns of C
  int32_t k_offset = 0;      ///< and along K
  bool is_line = false;      ///< one row of A without gaps
};

/// How an operand lies in memory: `is_direct` as [M or N, K], else as [K, M or N].
struct Matrix {
  uint64_t address = 0;  ///< GM, or byte in L1
  int32_t row = 0;       ///< ND: elements from row to row; NZ: rows of the whole matrix
  bool is_direct = true;
};

template <typename TYPE, bool is_left>
class OperandLoad {
 public:
  using T = typename TYPE::T;
  static constexpr bool kIsInt4 = std::is_same<T, AscendC::int4b_t>::value;
  static constexpr bool kIsWord = sizeof(T) == 4;
  static constexpr int32_t kWidth = block_elements<T>();
  /// Elements of a square that LoadDataWithTranspose turns; with 16 bits a fractal is one.
  static constexpr int32_t kSquare = kIsInt4 ? 64 : (sizeof(T) == 1 ? 32 : 16);
  static constexpr AscendC::TPosition kL1 = is_left ? AscendC::TPosition::A1 : AscendC::TPosition::B1;
  static constexpr AscendC::TPosition kL0 = is_left ? AscendC::TPosition::A2 : AscendC::TPosition::B2;
  static constexpr bool kIsLocal = is_in_l1(TYPE::pos);
  static constexpr bool kIsNz = TYPE::format == CubeFormat::NZ;

  OperandLoad(const Matrix& matrix, bool checks_rows, Where where)
      : matrix_(matrix), checks_rows_(checks_rows), where_(where) {}

  /// Bytes of a block of `outer` x `k` elements.
  static uint32_t block_bytes(int32_t outer, int32_t k) {
    return static_cast<uint32_t>(bytes<T>(int64_t{align_up(outer, std::max(16, kSquare))} *
                                          align_up(k, std::max(std::max(16, kWidth), kSquare))));
  }

  /// What a block of `outer` x `k` elements looks like in L1.
  Block placed(uint32_t address, int32_t outer, int32_t k) const {
    Block block;
    block.address = address;
    block.is_line = is_left && matrix_.is_direct && outer == 1 && !kIsNz;
    const int32_t rows = matrix_.is_direct ? outer : k;
    block.column_rows = block.is_line ? 1 : align_up(rows, matrix_.is_direct || sizeof(T) == 2 ? 16 : kSquare);
    return block;
  }

  /// Copies [outer_begin, + outer) x [k_begin, + k) to `address` in L1.
  Block to_l1(uint32_t address, int32_t outer_begin, int32_t outer, int32_t k_begin, int32_t k) const {
    const int32_t rows = matrix_.is_direct ? outer : k;
    const int32_t columns = matrix_.is_direct ? k : outer;
    const int64_t first_row = matrix_.is_direct ? outer_begin : k_begin;
    const int64_t first_column = matrix_.is_direct ? k_begin : outer_begin;
    const Block block = placed(address, outer, k);
    if (!matrix_.is_direct && kIsWord) {
      for (int32_t row = 0; row < rows; row += 16) {
        const auto slab = static_cast<uint32_t>(address + bytes<T>(int64_t{row} * align_up(columns, 16)));
        copy(slab, first_row + row, first_column, std::min(16, rows - row), columns, 16);
      }
      return block;
    }
    copy(address, first_row, first_column, rows, columns, block.column_rows);
    return block;
  }

  /// A block of a tensor that the kernel itself has put into L1, whole.
  Block in_l1(int32_t outer_begin, int32_t k_begin) const {
    Block block;
    block.address = static_cast<uint32_t>(matrix_.address);
    block.column_rows = align_up(matrix_.row, 16);
    block.outer_offset = outer_begin;
    block.k_offset = k_begin;
    return block;
  }

  /// Copies `outer` x `k` elements from `block`, `k_begin` elements into it, to L0A or L0B.
  void to_l0(uint32_t address, const Block& block, int32_t k_begin, int32_t outer, int32_t k) const {
    if (block.is_line) return line_to_l0(address, block, k_begin, k);
    const int32_t from_k = block.k_offset + k_begin;
    if (matrix_.is_direct) return direct_to_l0(address, block, from_k, outer, k);
    if constexpr (sizeof(T) == 2) {
      turned_fractals_to_l0(address, block, from_k, outer, k);
    } else {
      turned_squares_to_l0(address, block, from_k, outer, k);
    }
  }

  /// Indices lie as the fractals of B do: 128 bytes for each. Copies those of the block to `block.index`.
  void index_to_l1(const Block& block, uint64_t index, int32_t org_n, int32_t n_begin, int32_t n, int32_t k_begin,
                   int32_t k) const {
    const int32_t all_rows = align_up(org_n, 16);
    const int32_t columns = ceil_div(k, kWidth);
    AscendC::GlobalTensor<uint8_t> source;
    source.SetGlobalBuffer(reinterpret_cast<uint8_t*>(index) +
                           (int64_t{k_begin / kWidth} * all_rows + n_begin) * kIndexRowBytes);
    AscendC::DataCopyParams params;
    params.blockCount = static_cast<uint16_t>(columns);
    params.blockLen = static_cast<uint16_t>(align_up(n, 16) * kIndexRowBytes / kBlockBytes);
    params.srcStride = static_cast<uint16_t>((all_rows - align_up(n, 16)) * kIndexRowBytes / kBlockBytes);
    AscendC::DataCopy(indices(block.index), source, params, where_);
  }
  /// Fractals with their indices.
  void sparse_to_l0(uint32_t address, const Block& block, int32_t k_begin, int32_t n, int32_t k) const {
    const int32_t n_fractals = ceil_div(n, 16);
    for (int32_t i = 0; i < ceil_div(k, kWidth); ++i) {
      const int64_t rows = int64_t{k_begin / kWidth + i} * block.column_rows;
      AscendC::LoadData2dParams params;
      params.repeatTimes = static_cast<uint8_t>(n_fractals);
      AscendC::LoadDataWithSparse(to(address, i * n_fractals), from(block.address, rows * kWidth),
                                  indices(block.index + static_cast<uint32_t>(rows * kIndexRowBytes)), params, where_);
    }
  }

  /// Whether the rows of A's fractals end at 16 elements where 8 would do.
  bool is_k_padded() const { return kIsWord && !matrix_.is_direct; }

 private:
  static constexpr int32_t kIndexRowBytes = 8;  ///< two bits for each of a row's 32 elements

  AscendC::LocalTensor<uint8_t> indices(uint32_t address) const {
    return AscendC::LocalTensor<uint8_t>(kL1, address, local_memory_bytes(Space::L1) - address);
  }

  // Two elements of 4 bits travel as one byte.
  using Carried = std::conditional_t<kIsInt4, int8_t, T>;
  static constexpr int32_t kPacked = kIsInt4 ? 2 : 1;

  AscendC::LocalTensor<Carried> l1(uint32_t address, int32_t rows, int32_t columns) const {
    return AscendC::LocalTensor<Carried>(
        kL1, address, static_cast<uint32_t>(align_up(rows, 16) * align_up(columns, kWidth) / kPacked));
  }

  void copy(uint32_t address, int64_t first_row, int64_t first_column, int32_t rows, int32_t columns,
            int32_t column_rows) const {
    const auto target = l1(address, column_rows, columns);
    AscendC::GlobalTensor<Carried> source;
    if constexpr (kIsNz) {
      const int64_t start = first_column / kWidth * (int64_t{matrix_.row} * kWidth) + first_row * kWidth;
      source.SetGlobalBuffer(reinterpret_cast<Carried*>(matrix_.address + bytes<T>(start)));
      AscendC::DataCopyParams params;
      params.blockCount = static_cast<uint16_t>(ceil_div(columns, kWidth));
      params.blockLen = static_cast<uint16_t>(rows);
      params.srcStride = static_cast<uint16_t>(matrix_.row - rows);
      params.dstStride = static_cast<uint16_t>(column_rows - rows);
      AscendC::DataCopy(target, source, params, where_);
    } else {
      const int64_t start = first_row * matrix_.row + first_column;
      source.SetGlobalBuffer(reinterpret_cast<Carried*>(matrix_.address + bytes<T>(start)));
      AscendC::Nd2NzParams params;
      params.ndNum = 1;
      params.nValue = static_cast<uint16_t>(rows);
      params.dValue = static_cast<uint16_t>(columns / kPacked);
      params.srcDValue = static_cast<uint32_t>(matrix_.row / kPacked);
      params.dstNzC0Stride = static_cast<uint16_t>(column_rows);
      params.dstNzNStride = 1;
      if (matrix_.row <= 65535 || rows == 1) {
        AscendC::DataCopy(target, source, params, where_);
        return;
      }
      if (!checks_rows_) {
        illegal_operand("Matmul: a row of the matrix is longer than 65535 elements; set intrinsicsCheck", where_);
      }
      params.nValue = 1;
      for (int32_t row = 0; row < rows; ++row) {
        AscendC::DataCopy(target[static_cast<uint32_t>(row * kWidth / kPacked)],
                          source[static_cast<uint64_t>(row) * params.srcDValue], params, where_);
      }
    }
  }

  AscendC::LocalTensor<T> from(uint32_t address, int64_t elements) const {
    const auto first = static_cast<uint32_t>(address + bytes<T>(elements));
    return AscendC::LocalTensor<T>(kL1, first, (local_memory_bytes(Space::L1) - first) / sizeof(T) * kPacked);
  }
  AscendC::LocalTensor<T> to(uint32_t address, int32_t fractal) const {
    const uint32_t first = address + static_cast<uint32_t>(fractal) * 512;
    const uint32_t limit = local_memory_bytes(is_left ? Space::L0A : Space::L0B);
    return AscendC::LocalTensor<T>(kL0, first, (limit - first) / sizeof(T) * kPacked);
  }

  void load(const AscendC::LocalTensor<T>& dst, const AscendC::LocalTensor<T>& src, int32_t repeat, int32_t src_stride,
            int32_t dst_gap, bool is_turned) const {
    AscendC::LoadData2DParams params;
    params.srcStride = static_cast<uint16_t>(src_stride);
    params.dstGap = static_cast<uint16_t>(dst_gap);
    params.ifTranspose = is_turned;
    constexpr int32_t kMost = 255;
    for (int32_t done = 0; done < repeat; done += kMost) {
      params.repeatTimes = static_cast<uint8_t>(std::min(kMost, repeat - done));
      const auto fractal_elements = static_cast<uint32_t>(16 * kWidth);
      AscendC::LoadData(dst[static_cast<uint32_t>(done * (dst_gap + 1)) * fractal_elements],
                        src[static_cast<uint32_t>(done * src_stride) * fractal_elements], params, where_);
    }
  }

  void line_to_l0(uint32_t address, const Block& block, int32_t k_begin, int32_t k) const {
    const auto fractals = static_cast<int32_t>((bytes<T>(k) + 511) / 512);
    load(to(address, 0), from(block.address, k_begin), fractals, 1, 0, false);
  }

  void direct_to_l0(uint32_t address, const Block& block, int32_t k_begin, int32_t outer, int32_t k) const {
    const int32_t outer_fractals = ceil_div(outer, 16);
    const int32_t k_fractals = ceil_div(k, kWidth);
    const auto at = [&](int32_t k_fractal, int32_t outer_fractal) {
      const int64_t column = k_begin / kWidth + k_fractal;
      return from(block.address, (column * block.column_rows + block.outer_offset + outer_fractal * 16) * kWidth);
    };
    const int32_t column_stride = block.column_rows / 16;
    if (!is_left && column_stride == outer_fractals) {
      load(to(address, 0), at(0, 0), outer_fractals * k_fractals, 1, 0, false);
    } else if (!is_left) {
      for (int32_t i = 0; i < k_fractals; ++i)
        load(to(address, i * outer_fractals), at(i, 0), outer_fractals, 1, 0, false);
    } else if (k_fractals < outer_fractals) {
      for (int32_t i = 0; i < k_fractals; ++i) load(to(address, i), at(i, 0), outer_fractals, 1, k_fractals - 1, false);
    } else {
      for (int32_t i = 0; i < outer_fractals; ++i)
        load(to(address, i * k_fractals), at(0, i), k_fractals, column_stride, 0, false);
    }
  }

  /// 16 bits: every fractal is turned on its own.
  void turned_fractals_to_l0(uint32_t address, const Block& block, int32_t k_begin, int32_t outer, int32_t k) const {
    const int32_t outer_fractals = ceil_div(outer, 16);
    const int32_t k_fractals = ceil_div(k, 16);
    const auto at = [&](int32_t k_fractal, int32_t outer_fractal) {
      const int64_t column = block.outer_offset / 16 + outer_fractal;
      return from(block.address, (column * block.column_rows + k_begin + k_fractal * 16) * 16);
    };
    if (is_left) {
      for (int32_t i = 0; i < outer_fractals; ++i) load(to(address, i * k_fractals), at(0, i), k_fractals, 1, 0, true);
      return;
    }
    const int32_t column_stride = block.column_rows / 16;
    for (int32_t i = 0; i < k_fractals; ++i)
      load(to(address, i * outer_fractals), at(i, 0), outer_fractals, column_stride, 0, true);
  }

  /// Other widths: squares. The last one may reach over the columns there are; what it writes there comes before what
  /// belongs there, because K rises.
  void turned_squares_to_l0(uint32_t address, const Block& block, int32_t k_begin, int32_t outer, int32_t k) const {
    const int32_t outer_fractals = ceil_div(outer, 16);
    const int32_t k_fractals = kIsWord ? ceil_div(k, 16) * 2 : ceil_div(k, kWidth);
    const int32_t outer_squares = ceil_div(outer, kSquare);
    const int32_t k_squares = ceil_div(k, kSquare);
    constexpr int32_t kOuterFractals = kSquare / 16;
    for (int32_t i = 0; i < k_squares; ++i) {
      AscendC::LoadData2dTransposeParams params;
      params.repeatTimes = static_cast<uint8_t>(outer_squares);
      int32_t first = 0;
      int64_t source = 0;
      if constexpr (kIsWord) {
        // Slabs of 16 rows, in each the squares side by side; a square ends as two fractals along K.
        if (kIsLocal)
          illegal_operand("Matmul: opkit does not transpose 32-bit matrices that lie in L1 already", where_);
        source = (int64_t{k_begin / 16 + i} * outer_squares) * 256;
        params.srcStride = 1;
        first = is_left ? i * 2 : i * 2 * outer_fractals;
        params.dstGap = static_cast<uint16_t>(is_left ? k_fractals - 1 : 0);
        params.dstFracGap = static_cast<uint16_t>(is_left ? 0 : outer_fractals - 1);
      } else {
        // A column of data blocks holds squares one below the other; a square ends as fractals along M or N.
        source = (int64_t{block.outer_offset / kSquare} * block.column_rows + k_begin + i * kSquare) * kWidth;
        params.srcStride = static_cast<uint16_t>(block.column_rows / kSquare);
        first = is_left ? i : i * outer_fractals;
        params.dstGap = static_cast<uint16_t>(is_left ? kOuterFractals * k_fractals - 1 : kOuterFractals - 1);
        params.dstFracGap = static_cast<uint16_t>(is_left ? k_fractals - 1 : 0);
      }
      AscendC::LoadDataWithTranspose(to(address, first), from(block.address, source), params, where_);
    }
  }

  Matrix matrix_;
  bool checks_rows_;
  Where where_;
};

}  // namespace opkit::matmul
