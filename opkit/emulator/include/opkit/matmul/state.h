/// What one Matmul object knows of its multiplication, as plain data that can go from a vector core to the cube core.
#pragma once

#include <cstdint>

#include "opkit/api/cube_tiling.h"
#include "opkit/matmul/types.h"

namespace opkit::matmul {

enum class QuantForm : uint8_t { None, Scalar, Vector };

struct State {
  TCubeTiling tiling;
  uint64_t a = 0;  ///< address in GM, or byte in L1
  uint64_t b = 0;
  uint64_t bias = 0;
  uint64_t index = 0;  ///< of a sparse B
  uint64_t quant = 0;  ///< QuantForm::Vector: where the parameters lie
  uint64_t quant_scalar = 0;
  uint64_t user_define = 0;  ///< SetUserDefInfo
  uint64_t self_define = 0;  ///< SetSelfDefineData
  int32_t org_m = 0;
  int32_t org_n = 0;
  int32_t org_ka = 0;
  int32_t org_kb = 0;
  int32_t org_c = 0;  ///< columns of C in memory
  int32_t single_m = 0;
  int32_t single_n = 0;
  int32_t single_k = 0;
  int32_t a_row = 0;  ///< batches: elements from row to row; 0: as the shapes say
  int32_t b_row = 0;
  int32_t c_row = 0;
  QuantForm quant_form = QuantForm::None;
  bool is_quant_local = false;
  bool is_bias_local = false;
  bool is_a_transposed = false;
  bool is_b_transposed = false;
  bool has_bias = false;
  bool is_a_scalar = false;  ///< A is one row of `a_scalar_bits`
  uint32_t a_scalar_bits = 0;
  bool is_hf32 = false;
  HalfwayTo hf32_halfway = HalfwayTo::Even;
  uint64_t pass = 0;  ///< a number for each time that all of C is computed: what L1 holds of others is not of use
  Where where = {"", 0};

  int32_t m_blocks() const { return ceil_div(single_m, tiling.baseM); }
  int32_t n_blocks() const { return ceil_div(single_n, tiling.baseN); }
  int32_t k_blocks() const { return ceil_div(single_k, tiling.baseK); }
};

/// One base block of C: its place in blocks, and how much of it there is.
struct Tile {
  int32_t m_index = 0;
  int32_t n_index = 0;
  int32_t m = 0;
  int32_t n = 0;
};

inline Tile tile_at(const State& state, int32_t m_index, int32_t n_index) {
  const TCubeTiling& t = state.tiling;
  const int32_t m = state.single_m - m_index * t.baseM;
  const int32_t n = state.single_n - n_index * t.baseN;
  return {m_index, n_index, m < t.baseM ? m : t.baseM, n < t.baseN ? n : t.baseN};
}

/// Two steps that OUTER_PRODUCT computes together; no second one where the blocks are odd in number.
struct Pair {
  int32_t first = 0;
  int32_t second = -1;
};

/// The order in which tiles come: down a column of blocks first, or along a row; with it the blocks of K where each is
/// carried out on its own.
struct Progress {
  int32_t next = 0;

  static int32_t steps(const State& state, bool is_partial) {
    return state.m_blocks() * state.n_blocks() * (is_partial ? state.k_blocks() : 1);
  }
  static Tile tile(const State& state, int32_t step, bool is_partial) {
    const int32_t index = is_partial ? step / state.k_blocks() : step;
    if (state.tiling.iterateOrder == 1) return tile_at(state, index / state.n_blocks(), index % state.n_blocks());
    return tile_at(state, index % state.m_blocks(), index / state.m_blocks());
  }
  /// Pairs come in the same order: down two columns of blocks, or along two rows.
  static int32_t pairs(const State& state) {
    const bool is_by_rows = state.tiling.iterateOrder == 1;
    const int32_t lines = is_by_rows ? state.m_blocks() : state.n_blocks();
    return (lines + 1) / 2 * (is_by_rows ? state.n_blocks() : state.m_blocks());
  }
  static Pair pair(const State& state, int32_t index) {
    const int32_t line = state.tiling.iterateOrder == 1 ? state.n_blocks() : state.m_blocks();
    const int32_t first = index / line * 2 * line + index % line;
    return {first, first + line < state.m_blocks() * state.n_blocks() ? first + line : -1};
  }
  static int32_t k_index(const State& state, int32_t step, bool is_partial) {
    return is_partial ? step % state.k_blocks() : 0;
  }
};

/// Where a tile goes.
struct Destination {
  uint64_t address = 0;  ///< of C in GM, or byte in L1
  bool is_sequential = false;
  uint8_t atomic = 0;  ///< 0 none, 1 add, 2 max, 3 min
};

}  // namespace opkit::matmul
