/// What matmul_tiling's classes ask the emulator library to solve, as plain data.
#pragma once

#include <cstdint>

#include "opkit/api/cube_tiling.h"
#include "opkit/export.h"

namespace opkit::host {

/// One of A, B, C and the bias, as the tiling sees it.
struct MatmulOperand {
  uint32_t element_bits = 0;  ///< 0: not set
  bool is_local = false;      ///< lies in L1 already (TSCM)
  bool is_transposed = false;
  bool is_nz = false;
};

/// Sizes in bytes, shapes in elements; -1 stands for "not set" wherever the public setters take it.
struct MatmulProblem {
  MatmulOperand a, b, c;
  uint64_t l1_bytes = 0;
  uint64_t l0a_bytes = 0;
  uint64_t l0b_bytes = 0;
  uint64_t l0c_bytes = 0;
  uint64_t bias_table_bytes = 0;
  int32_t core_limit = 1;
  bool is_multi_core = false;
  bool splits_k = false;
  bool has_bias = false;
  bool is_n_first = false;  ///< the next block of C is the one to the right, not the one below
  bool is_outer_product = false;
  bool is_n_buffer_33 = false;  ///< A stays in L1 as at most 3 x 3 blocks
  int32_t org_m = 0, org_n = 0, org_ka = 0, org_kb = 0;
  int32_t m = 0, n = 0, k = 0;  ///< what is multiplied: whole axes or part of them
  int32_t single_m = -1, single_n = -1, single_k = -1;
  int32_t single_max[3] = {-1, -1, -1};  ///< m, n, k
  int32_t single_min[3] = {-1, -1, -1};
  int32_t single_align[3] = {-1, -1, -1};
  int32_t fix_m = -1, fix_n = -1, fix_k = -1;
  int32_t base_max[3] = {-1, -1, -1};
};

/// How many cores the axes were dealt to.
struct MatmulCores {
  int32_t m = 1;
  int32_t n = 1;
  int32_t k = 1;
};

/// Fills `tiling` and `cores`. Returns null, or says what is wrong with the problem.
OPKIT_API const char* solve_matmul(const MatmulProblem& problem, AscendC::tiling::TCubeTiling& tiling,
                                   MatmulCores& cores);

}  // namespace opkit::host
