/// What the kernels read of the host: plain structs in global memory.
#pragma once

#include <cstdint>

namespace opkit::kernels {

/// How an operand lies in memory.
enum class Kind : uint8_t { F32, F16, BF16, S32, S16, S8, U8, Bool, S64 };

constexpr uint32_t kCopyDims = 6;

/// Elements moved from one layout to another; dim 0 is the innermost. Strides count elements.
struct CopyPlan {
  uint32_t element_bytes;
  uint32_t has_rows;  ///< both sides have unit strides in dim 0
  int64_t sizes[kCopyDims];
  int64_t source_strides[kCopyDims];
  int64_t destination_strides[kCopyDims];
};

/// Whole numbers of 32 bits that become 64, or of 64 that become 32; they lie side by side.
struct WidthPlan {
  int64_t count;
  uint32_t is_wider;
  uint32_t reserved;
};

/// Rows of a table picked by number, or added to it. Rows lie one behind the other on both sides.
struct RowsPlan {
  uint32_t row_bytes;
  uint32_t index_bytes;  ///< 4 or 8
  int64_t count;         ///< of numbers
  int64_t table_rows;    ///< a negative number counts from its end
  int64_t skip;          ///< a number whose row is not added to; -1: none
};

constexpr uint32_t kMaxIndices = 4;
/// Of the table that a core has at once, where it has blocks of it (IndexedBlocks).
constexpr uint32_t kBlockBytes = 96 * 1024;
/// Places that are worth a mask for each, where elements are put there.
constexpr int64_t kMostMasks = 32;

/// Elements of a table at places that tensors of numbers name, and a tensor with an element for each. Dim 0 is the
/// innermost; strides count elements, and may be negative for the table.
struct ElementsPlan {
  static constexpr uint32_t kGather = 0;  ///< table to plain
  static constexpr uint32_t kPut = 1;     ///< plain to table
  static constexpr uint32_t kAdd = 2;     ///< plain added to table
  uint32_t element_bytes;
  uint32_t action;
  uint32_t kind;  ///< of the elements that are added
  uint32_t index_count;
  uint32_t index_bytes;    ///< 4 or 8
  uint32_t has_rows;       ///< dim 0 lies side by side on both sides, and no number changes along it
  uint32_t cores;          ///< that take part at most; 0: all
  uint32_t rows_together;  ///< put or added by one core: their elements fill whole lines of 64 bytes; 0: each by itself
  uint32_t width;  ///< columns of the table that a core has all places of at once (IndexedBlocks); 0: it has not
  uint32_t reserved;
  int64_t table_offset;
  int64_t sizes[kCopyDims];
  int64_t plain_strides[kCopyDims];
  int64_t table_strides[kCopyDims];
  struct {
    int64_t strides[kCopyDims];
    int64_t size;          ///< of the table's dim
    int64_t table_stride;  ///< of the table's dim
  } indices[kMaxIndices];
};

/// Lines along one dim of a tensor that lies as (outer, length, inner); results lie as (outer, kept, inner).
struct LinePlan {
  static constexpr uint32_t kSum = 0;
  static constexpr uint32_t kProduct = 1;
  static constexpr uint32_t kRunning = 2;
  uint32_t kind;
  uint32_t result_kind;
  uint32_t action;
  uint32_t is_descending;  ///< or: the largest, not the smallest
  int64_t outer;
  int64_t length;
  int64_t inner;
  int64_t kept;
  int64_t has_short_places;  ///< places are int32, not int64
  int64_t parts;             ///< cores that share a line, where lines lie side by side; they meet in the kernel's space
  int64_t width;             ///< columns that a core takes from top to bottom, where lines do not
};

/// Uniform random numbers: `count` of the stream that `seed` and `offset` name.
struct RandomPlan {
  int64_t count;
  uint64_t seed;
  uint64_t offset;
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

/// softmax(q kᵀ scale + mask) v over (batch, heads, queries). Strides count elements; within a row elements lie side by
/// side.
struct AttentionPlan {
  static constexpr uint32_t kMostRows = 64;
  static constexpr int64_t kMostKeys = 8192;  ///< scores of a query that a vector core's memory takes
  uint32_t kind;                              ///< 0 half, 1 bfloat16_t, 2 float, of every tensor but the sums
  uint32_t is_causal;                         ///< query i sees keys 0 to i
  uint32_t has_mask;                          ///< added to the scores
  uint32_t rows;                              ///< queries that a vector core has at once
  uint32_t pitch;                             ///< elements from row to row of scores and weights
  uint32_t width, value_width;
  float scale;
  int64_t batch, heads, kv_heads, queries, keys;
  int64_t q_batch, q_head, q_row;
  int64_t k_batch, k_head, k_row;
  int64_t v_batch, v_head, v_row;
  int64_t mask_batch, mask_head, mask_row;
  int64_t out_batch, out_head, out_row;
};

}  // namespace opkit::kernels
