// Tiling of matrix multiplication: cores, base blocks for L0, cached blocks for L1. Source: Matmul tiling, TCubeTiling
// (constraints and recommended values); the outcomes that the documents show are in
// tests/emulator/test_matmul_tiling.py.
#include <algorithm>
#include <array>
#include <cstdint>

#include "opkit/host/matmul_problem.h"

namespace opkit::host {
namespace {

using AscendC::tiling::TCubeTiling;

constexpr int32_t kFractal = 16;          ///< rows of a fractal
constexpr int64_t kAccumulatorBytes = 4;  ///< L0C holds float or int32_t
constexpr int32_t kRecommendedM = 128;    ///< base block for 16-bit elements: 128 x 256 x 64
constexpr int32_t kRecommendedN = 256;
constexpr int32_t kWholeRow = 256;  ///< elements: a row of C that is shorter does not fill a 512-byte line
constexpr int32_t kDoubleBuffer = 2;

int32_t ceil_div(int32_t a, int32_t b) { return (a + b - 1) / b; }
int32_t align_up(int32_t value, int32_t to) { return ceil_div(value, to) * to; }

struct Block {
  int32_t m, n, k;
};

class Solver {
 public:
  Solver(const MatmulProblem& problem, TCubeTiling& tiling, MatmulCores& cores)
      : problem_(problem), tiling_(tiling), cores_(cores) {}

  const char* solve() {
    if (const char* error = check()) return error;
    if (problem_.is_multi_core) {
      if (const char* error = split_cores()) return error;
    } else {
      single_ = {pick(problem_.single_m, problem_.m), pick(problem_.single_n, problem_.n),
                 pick(problem_.single_k, problem_.k)};
    }
    if (const char* error = choose_base()) return error;
    if (problem_.splits_k && problem_.is_multi_core) split_k();
    narrow_for_whole_k();
    if (const char* error = choose_steps()) return error;
    write();
    return nullptr;
  }

 private:
  static int32_t pick(int32_t set, int32_t otherwise) { return set > 0 ? set : otherwise; }
  int64_t a_bytes(int64_t elements) const { return elements * problem_.a.element_bits / 8; }
  int64_t b_bytes(int64_t elements) const { return elements * problem_.b.element_bits / 8; }
  int32_t c0(const MatmulOperand& operand) const { return static_cast<int32_t>(256 / operand.element_bits); }
  /// K is cut where both operands' fractals end: at 16 rows where it is the outer axis, else at a data block.
  int32_t k_unit() const {
    const bool is_inner_in_both = !problem_.a.is_transposed && problem_.b.is_transposed;
    return is_inner_in_both ? c0(problem_.a) : std::max(kFractal, c0(problem_.a));
  }
  int32_t m_unit() const { return problem_.a.is_transposed ? std::max(kFractal, c0(problem_.a)) : kFractal; }
  int32_t n_unit() const { return problem_.b.is_transposed ? kFractal : std::max(kFractal, c0(problem_.b)); }

  const char* check() const {
    if (problem_.a.element_bits == 0 || problem_.b.element_bits == 0 || problem_.c.element_bits == 0) {
      return "call SetAType, SetBType and SetCType first";
    }
    if (problem_.m <= 0 || problem_.n <= 0 || problem_.k <= 0) return "SetShape or SetOrgShape: a size is not positive";
    if (problem_.core_limit <= 0) return "SetDim: the number of cores is not positive";
    if (problem_.splits_k && problem_.has_bias) return "EnableMultiCoreSplitK: a bias would be added once per core";
    if (problem_.fix_m > 0 && problem_.fix_n > 0 &&
        align_up(problem_.fix_m, kFractal) * static_cast<int64_t>(align_up(problem_.fix_n, kFractal)) *
                kAccumulatorBytes >
            block_limit_bytes()) {
      return problem_.is_outer_product ? "SetFixSplit: OUTER_PRODUCT keeps two blocks of baseM * baseN in L0C"
                                       : "SetFixSplit: baseM * baseN does not fit into L0C";
    }
    return nullptr;
  }

  /// What one block of C may take of L0C.
  int64_t block_limit_bytes() const {
    return static_cast<int64_t>(problem_.l0c_bytes) / (problem_.is_outer_product ? kDoubleBuffer : 1);
  }

  /// A length of one core's share of an axis, as the setters allow it.
  int32_t share(int32_t length, int32_t parts, int32_t axis, int32_t unit) const {
    const int32_t align = problem_.single_align[axis] > 0 ? problem_.single_align[axis] : unit;
    int32_t result = align_up(ceil_div(length, parts), align);
    if (problem_.single_max[axis] > 0) result = std::min(result, problem_.single_max[axis]);
    if (problem_.single_min[axis] > 0) result = std::max(result, problem_.single_min[axis]);
    return std::min(result, length);
  }

  /// A block of rows that stays in L1, and its share of the columns.
  const char* split_for_n_buffer_33() {
    const int32_t row_parts = ceil_div(problem_.m, std::min(align_up(problem_.m, m_unit()), kRecommendedM * 3));
    const int32_t rows = share(problem_.m, row_parts, 0, m_unit());
    const int32_t row_cores = ceil_div(problem_.m, rows);
    const int32_t column_blocks = ceil_div(problem_.n, kRecommendedN);
    const int32_t most_column_cores = std::min(std::max(1, problem_.core_limit / row_cores), column_blocks);
    const int32_t columns = share(ceil_div(column_blocks, most_column_cores) * kRecommendedN, 1, 1, n_unit());
    single_ = {rows, std::min(problem_.n, columns), problem_.k};
    cores_ = {row_cores, ceil_div(problem_.n, single_.n), 1};
    const bool is_enough = static_cast<int64_t>(cores_.m) * cores_.n <= problem_.core_limit;
    return is_enough ? nullptr : "N_BUFFER_33: the cores of SetDim are too few for rows that stay in L1";
  }

  const char* split_cores() {
    if (problem_.is_n_buffer_33 && problem_.single_m <= 0 && problem_.single_n <= 0) {
      return split_for_n_buffer_33();
    }
    // Blocks of a fixed size are dealt out whole, along N first. A matrix that the kernel puts into L1 is whole there.
    const int32_t most_m_cores = problem_.a.is_local ? 1 : problem_.core_limit;
    const int32_t most_n_cores = problem_.b.is_local ? 1 : problem_.core_limit;
    const bool is_fixed = problem_.fix_m > 0 && problem_.fix_n > 0;
    Split best, best_even;
    for (int32_t m_cores = 1; m_cores <= most_m_cores; ++m_cores) {
      for (int32_t n_cores = 1; n_cores <= most_n_cores && m_cores * n_cores <= problem_.core_limit; ++n_cores) {
        const int32_t m_unit = is_fixed ? problem_.fix_m : this->m_unit();
        const int32_t n_unit = is_fixed ? problem_.fix_n : this->n_unit();
        const int32_t m = pick(problem_.single_m, share(problem_.m, m_cores, 0, m_unit));
        const int32_t n = pick(problem_.single_n, share(problem_.n, n_cores, 1, n_unit));
        const int32_t used_m = ceil_div(problem_.m, m);
        const int32_t used_n = ceil_div(problem_.n, n);
        const bool is_given = problem_.single_m > 0 && problem_.single_n > 0;
        if (!is_given && static_cast<int64_t>(used_m) * used_n > problem_.core_limit) continue;
        const int64_t work = static_cast<int64_t>(ceil_div(m, kFractal)) * ceil_div(n, kFractal);
        const int64_t cut_rows = !is_fixed && n < std::min(problem_.n, kWholeRow);
        const int64_t traffic = is_fixed ? used_m : static_cast<int64_t>(m) + n;
        const Split split = {{work, cut_rows, traffic, used_n}, m, n, used_m, used_n};
        if (split.is_better_than(best)) best = split;
        if (problem_.m % m == 0 && problem_.n % n == 0 && split.is_better_than(best_even)) best_even = split;
      }
    }
    if (best.m == 0) return "SetDim: the cores are too few for SetSingleShape or SetSingleRange";
    if (best_even.m != 0 && is_even_worth(best_even.cost[0], best.cost[0])) best = best_even;
    single_ = {best.m, best.n, pick(problem_.single_k, problem_.k)};
    cores_ = {best.used_m, best.used_n, ceil_div(problem_.k, single_.k)};
    return nullptr;
  }

  /// How C is dealt out; the cost counts fractals of the largest share first.
  struct Split {
    std::array<int64_t, 4> cost{};
    int32_t m = 0, n = 0, used_m = 0, used_n = 0;
    bool is_better_than(const Split& other) const { return other.m == 0 || cost < other.cost; }
  };

  /// Equal shares for the cores, unless they take over half as long again. Public samples handle no shorter last share
  /// where whole blocks divide the shape, and no document says how the vendor's function chooses.
  static bool is_even_worth(int64_t even_work, int64_t work) { return 2 * even_work <= 3 * work; }

  /// Spare cores share K.
  void split_k() {
    const int32_t spare = problem_.core_limit / (cores_.m * cores_.n);
    if (spare < 2 || problem_.single_k > 0) return;
    single_.k = share(problem_.k, spare, 2, k_unit());
    for (int32_t parts = spare; parts > 1; --parts) {
      const int32_t even = share(problem_.k, parts, 2, k_unit());
      if (problem_.k % even != 0) continue;
      if (is_even_worth(even, single_.k)) single_.k = even;
      break;
    }
    cores_.k = ceil_div(problem_.k, single_.k);
    base_.k = std::min(base_.k, align_up(single_.k, k_unit()));
  }

  const char* choose_base() {
    const int32_t m_limit = align_up(single_.m, m_unit());
    const int32_t n_limit = align_up(single_.n, n_unit());
    // Half the rows where one core's share of C is narrow: the same block on its side.
    const bool is_narrow = n_limit <= kRecommendedM && m_limit > kRecommendedM;
    base_.m = pick(problem_.fix_m, std::min(m_limit, is_narrow ? kRecommendedN : kRecommendedM));
    base_.n = pick(problem_.fix_n, std::min(n_limit, kRecommendedN));
    if (problem_.base_max[0] > 0) base_.m = std::min(base_.m, align_up(problem_.base_max[0], m_unit()));
    if (problem_.base_max[1] > 0) base_.n = std::min(base_.n, align_up(problem_.base_max[1], n_unit()));
    while (static_cast<int64_t>(base_.m) * base_.n * kAccumulatorBytes > block_limit_bytes()) {
      // What SetFixSplit says stays.
      const bool is_m = problem_.fix_n > 0 || (problem_.fix_m <= 0 && base_.m > base_.n);
      int32_t& larger = is_m ? base_.m : base_.n;
      const int32_t unit = is_m ? m_unit() : n_unit();
      if (larger <= unit) return "SetBufferSpace: L0C does not hold one block of whole fractals";
      larger = align_up(larger / 2, unit);
    }
    if (problem_.has_bias) {
      const auto columns = static_cast<int32_t>(problem_.bias_table_bytes / kAccumulatorBytes);
      if (problem_.fix_n > columns) return "SetFixSplit: the bias of baseN columns does not fit into the bias table";
      base_.n = std::min(base_.n, columns / n_unit() * n_unit());
    }
    const int64_t a_row = a_bytes(align_up(base_.m, kFractal)) * kDoubleBuffer;
    const int64_t b_row = b_bytes(align_up(base_.n, kFractal)) * kDoubleBuffer;
    const int64_t deepest =
        std::min(static_cast<int64_t>(problem_.l0a_bytes) / a_row, static_cast<int64_t>(problem_.l0b_bytes) / b_row);
    base_.k = static_cast<int32_t>(deepest) / k_unit() * k_unit();
    if (problem_.fix_k > 0) base_.k = problem_.fix_k;
    if (problem_.base_max[2] > 0) base_.k = std::min(base_.k, align_up(problem_.base_max[2], k_unit()));
    base_.k = std::min(base_.k, align_up(single_.k, k_unit()));
    if (base_.k <= 0 || base_.k > deepest) return "SetFixSplit: the base block does not fit into L0A and L0B";
    return nullptr;
  }

  /// Half as many columns where that lets L1 hold all of K, twice for B: a long K is best read once.
  void narrow_for_whole_k() {
    const int32_t k_blocks = ceil_div(single_.k, base_.k);
    const auto holds_all_k = [&] { return fits(ceil_div(single_.m, base_.m) * k_blocks, k_blocks * kDoubleBuffer); };
    if (problem_.fix_n > 0 || base_.n != kRecommendedN || holds_all_k()) return;
    base_.n = kRecommendedN / 2;
    if (!holds_all_k()) base_.n = kRecommendedN;
  }

  int64_t l1_bytes(int32_t depth_a, int32_t depth_b) const {
    const int64_t a = problem_.a.is_local
                          ? a_bytes(static_cast<int64_t>(align_up(single_.m, m_unit())) * align_up(single_.k, k_unit()))
                          : a_bytes(static_cast<int64_t>(base_.m) * base_.k) * depth_a;
    const int64_t b = problem_.b.is_local
                          ? b_bytes(static_cast<int64_t>(align_up(single_.n, n_unit())) * align_up(single_.k, k_unit()))
                          : b_bytes(static_cast<int64_t>(base_.n) * base_.k) * depth_b;
    return a + b + (problem_.has_bias ? base_.n * kAccumulatorBytes : 0);
  }

  bool fits(int32_t depth_a, int32_t depth_b) const {
    return l1_bytes(depth_a, depth_b) <= static_cast<int64_t>(problem_.l1_bytes);
  }

  void set(int32_t step_m, int32_t step_n, int32_t step_k, int32_t copies_a, int32_t copies_b) {
    tiling_.stepM = step_m;
    tiling_.stepN = step_n;
    tiling_.stepKa = step_k;
    tiling_.stepKb = step_k;
    tiling_.depthA1 = step_m * step_k * copies_a;
    tiling_.depthB1 = step_n * step_k * copies_b;
  }

  /// Whole matrices if L1 holds them, else all of K, else as much of K as leaves room for two of each.
  const char* choose_steps() {
    const int32_t m_blocks = ceil_div(single_.m, base_.m);
    const int32_t n_blocks = ceil_div(single_.n, base_.n);
    const int32_t k_blocks = ceil_div(single_.k, base_.k);
    if (problem_.is_n_buffer_33) {
      if (m_blocks > 3 || k_blocks > 3) return "N_BUFFER_33: one core's share of A is more than 3 x 3 base blocks";
      if (!fits(m_blocks * k_blocks, k_blocks * kDoubleBuffer)) return "N_BUFFER_33: the blocks do not fit into L1";
      set(m_blocks, 1, k_blocks, 1, kDoubleBuffer);
      return nullptr;
    }
    if (problem_.is_outer_product) return choose_pairs(m_blocks, n_blocks, k_blocks);
    if (fits(m_blocks * k_blocks, n_blocks * k_blocks)) {
      set(m_blocks, n_blocks, k_blocks, 1, 1);
      return nullptr;
    }
    if (fits(m_blocks * k_blocks, k_blocks * kDoubleBuffer)) {
      set(m_blocks, 1, k_blocks, 1, kDoubleBuffer);
      return nullptr;
    }
    if (fits(k_blocks * kDoubleBuffer, n_blocks * k_blocks)) {
      set(1, n_blocks, k_blocks, kDoubleBuffer, 1);
      return nullptr;
    }
    int32_t step = 1;
    while (step * 2 <= k_blocks && fits(step * 2 * kDoubleBuffer, step * 2 * kDoubleBuffer)) step *= 2;
    for (int32_t copies = kDoubleBuffer; copies > 0; --copies) {
      if (!fits(step * copies, step * copies)) continue;
      set(1, 1, step, copies, copies);
      return nullptr;
    }
    return "SetBufferSpace: L1 does not hold one base block of A and one of B";
  }

  /// OUTER_PRODUCT: two blocks side by side, with all of K. Source: MatmulConfig, iterateOrder; TCubeTiling, stepM.
  const char* choose_pairs(int32_t m_blocks, int32_t n_blocks, int32_t k_blocks) {
    const int32_t step_m = problem_.is_n_first ? std::min(m_blocks, 2) : 1;
    const int32_t step_n = problem_.is_n_first ? 1 : std::min(n_blocks, 2);
    for (int32_t copies = kDoubleBuffer; copies > 0; --copies) {
      if (!fits(step_m * k_blocks * copies, step_n * k_blocks * copies)) continue;
      set(step_m, step_n, k_blocks, copies, copies);
      return nullptr;
    }
    return "OUTER_PRODUCT: L1 does not hold all of K for two blocks side by side";
  }

  void write() {
    TCubeTiling& t = tiling_;
    const int64_t used = static_cast<int64_t>(cores_.m) * cores_.n * cores_.k;
    t.usedCoreNum = static_cast<int32_t>(std::min<int64_t>(used, problem_.core_limit));
    t.M = problem_.org_m;
    t.N = problem_.org_n;
    t.Ka = problem_.org_ka;
    t.Kb = problem_.org_kb;
    t.singleCoreM = single_.m;
    t.singleCoreN = single_.n;
    t.singleCoreK = single_.k;
    t.baseM = base_.m;
    t.baseN = base_.n;
    t.baseK = base_.k;
    t.isBias = problem_.has_bias;
    t.iterateOrder = problem_.is_n_first;
    t.dbL0A = kDoubleBuffer;
    t.dbL0B = kDoubleBuffer;
    const int64_t accumulator = static_cast<int64_t>(base_.m) * base_.n * kAccumulatorBytes;
    t.dbL0C = accumulator * kDoubleBuffer <= static_cast<int64_t>(problem_.l0c_bytes) ? kDoubleBuffer : 1;
    t.shareL1Size = static_cast<int32_t>(l1_bytes(t.depthA1, t.depthB1));
    t.shareL0CSize = static_cast<int32_t>(accumulator * t.dbL0C);
    t.batchM = t.batchN = t.singleBatchM = t.singleBatchN = 1;
  }

  const MatmulProblem& problem_;
  TCubeTiling& tiling_;
  MatmulCores& cores_;
  Block single_{};
  Block base_{};
};

}  // namespace

const char* solve_matmul(const MatmulProblem& problem, TCubeTiling& tiling, MatmulCores& cores) {
  tiling = {};
  cores = {};
  return Solver(problem, tiling, cores).solve();
}

}  // namespace opkit::host
