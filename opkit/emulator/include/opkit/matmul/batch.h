/// Where the matrices of a batch lie. Source: Ascend C API, Matmul, IterateBatch: NORMAL, BSNGD, SBNGD, BNGS1S2.
#pragma once

#include <algorithm>

#include "opkit/matmul/state.h"

namespace opkit::matmul {

struct BatchShape {
  uint32_t batch_a = 1;
  uint32_t batch_b = 1;
  uint32_t loops = 1;     ///< IterateNBatch: how many batches one after another
  uint32_t stride_a = 0;  ///< NORMAL: elements from matrix to matrix; 0: one behind the other
  uint32_t stride_b = 0;
  bool is_sequential = false;
  bool keeps_sum = false;
  uint8_t atomic = 0;

  uint32_t count() const { return std::max(batch_a, batch_b); }
};

/// The axes of one operand. S x D is a matrix.
struct Axes {
  int32_t b = 0, s = 0, n = 0, g = 0, d = 0;

  /// Elements from row to row; 0: as the shape of one matrix says.
  int32_t row(LayoutMode layout) const {
    if (layout == LayoutMode::BSNGD) return n * g * d;
    if (layout == LayoutMode::SBNGD) return b * n * g * d;
    return layout == LayoutMode::BNGS1S2 ? d : 0;
  }
  /// Elements in front of a matrix, counted over B, N and G; `matrix` are those of one.
  int64_t offset(LayoutMode layout, int64_t index, int64_t matrix) const {
    if (layout == LayoutMode::SBNGD) return index * d;
    if (layout != LayoutMode::BSNGD) return index * matrix;
    const int64_t heads = int64_t{n} * g;
    return index / heads * (heads * s * d) + index % heads * d;
  }
};

inline Axes a_axes(const TCubeTiling& t) {
  return {t.ALayoutInfoB, t.ALayoutInfoS, t.ALayoutInfoN, t.ALayoutInfoG, t.ALayoutInfoD};
}
inline Axes b_axes(const TCubeTiling& t) {
  return {t.BLayoutInfoB, t.BLayoutInfoS, t.BLayoutInfoN, t.BLayoutInfoG, t.BLayoutInfoD};
}
inline Axes c_axes(const TCubeTiling& t) {
  return {t.CLayoutInfoB, t.CLayoutInfoS1, t.CLayoutInfoN, t.CLayoutInfoG, t.CLayoutInfoS2};
}

/// One product of a batch: the state with its addresses, and which matrix of C it goes to or is summed into.
template <typename A_TYPE, typename B_TYPE, typename C_TYPE, typename BIAS_TYPE>
struct BatchStep {
  /// Products that are summed into one matrix of C: those of a G axis that C does not have.
  static int32_t summed(const TCubeTiling& t) {
    if (C_TYPE::layout == LayoutMode::NORMAL || C_TYPE::layout == LayoutMode::NONE) return 1;
    return t.CLayoutInfoG == 1 ? std::max({t.ALayoutInfoG, t.BLayoutInfoG, 1}) : 1;
  }

  /// `index` counts the products of all loops.
  static State state(const State& whole, const BatchShape& shape, uint32_t index, bool is_bias_batch) {
    using AT = typename A_TYPE::T;
    using BT = typename B_TYPE::T;
    const TCubeTiling& t = whole.tiling;
    const uint32_t loop = index / shape.count();
    const uint32_t inside = index % shape.count();
    // The shorter batch is repeated: each of its matrices meets several in a row.
    const int64_t a_index = int64_t{loop} * shape.batch_a + inside / (shape.count() / shape.batch_a);
    const int64_t b_index = int64_t{loop} * shape.batch_b + inside / (shape.count() / shape.batch_b);
    State one = whole;
    const bool is_a_nz = A_TYPE::format == CubeFormat::NZ;
    const bool is_b_nz = B_TYPE::format == CubeFormat::NZ;
    const int64_t a_matrix = shape.stride_a != 0 ? shape.stride_a
                             : is_a_nz           ? int64_t{align_up(whole.org_m, 16)} * align_up(whole.org_ka, 16)
                                                 : int64_t{whole.org_m} * whole.org_ka;
    const int64_t b_matrix = shape.stride_b != 0 ? shape.stride_b
                             : is_b_nz           ? int64_t{align_up(whole.org_kb, 16)} * align_up(whole.org_n, 16)
                                                 : int64_t{whole.org_kb} * whole.org_n;
    one.a += static_cast<uint64_t>(bytes<AT>(a_axes(t).offset(A_TYPE::layout, a_index, a_matrix)));
    one.b += static_cast<uint64_t>(bytes<BT>(b_axes(t).offset(B_TYPE::layout, b_index, b_matrix)));
    if (A_TYPE::layout != LayoutMode::NORMAL) one.a_row = a_axes(t).row(A_TYPE::layout);
    if (B_TYPE::layout != LayoutMode::NORMAL) one.b_row = b_axes(t).row(B_TYPE::layout);
    if (C_TYPE::layout != LayoutMode::NORMAL) one.c_row = c_axes(t).row(C_TYPE::layout);
    const int64_t c_index = index / static_cast<uint32_t>(summed(t));
    if (whole.has_bias && is_bias_batch) {
      one.bias += static_cast<uint64_t>(c_index * whole.single_n) * sizeof(typename BIAS_TYPE::T);
    }
    one.pass = whole.pass + index + 1;
    return one;
  }

  /// Elements of C in front of product `index`.
  static int64_t c_offset(const State& whole, uint32_t index, int64_t c_matrix) {
    const int64_t c_index = index / static_cast<uint32_t>(summed(whole.tiling));
    return c_axes(whole.tiling).offset(C_TYPE::layout, c_index, c_matrix);
  }
};

}  // namespace opkit::matmul
