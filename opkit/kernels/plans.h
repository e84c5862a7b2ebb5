/// What the kernels beside `vector_program` read of the host: plain structs in global memory.
#pragma once

#include <cstdint>

namespace opkit::kernels {

constexpr uint32_t kCopyDims = 6;

/// Elements moved from one layout to another; dim 0 is the innermost. Strides count elements.
struct CopyPlan {
  uint32_t element_bytes;
  uint32_t has_rows;  ///< both sides have unit strides in dim 0
  int64_t sizes[kCopyDims];
  int64_t source_strides[kCopyDims];
  int64_t destination_strides[kCopyDims];
};

/// Rows of a table picked by number, or added to it. Rows lie one behind the other on both sides.
struct RowsPlan {
  uint32_t row_bytes;
  uint32_t index_bytes;  ///< 4 or 8
  int64_t count;         ///< of numbers
  int64_t table_rows;    ///< a negative number counts from its end
  int64_t skip;          ///< a number whose row is not added to; -1: none
};

/// C = A B for a batch of matrices. Rows lie `a_row`, `b_row`, `c_row` elements apart.
struct MatmulPlan {
  uint32_t kind;  ///< 0 half, 1 bfloat16_t, 2 float; C has the same type, or float where `is_float_result`
  uint32_t is_float_result;
  uint32_t is_a_transposed;
  uint32_t is_b_transposed;
  int32_t m, n, k;
  int32_t a_row, b_row, c_row;
  int32_t single_m, single_n;  ///< what a core computes at once
  int32_t base_m, base_n, base_k;
  int64_t batch;
  int64_t a_batch, b_batch, c_batch;  ///< elements from matrix to matrix
};

}  // namespace opkit::kernels
