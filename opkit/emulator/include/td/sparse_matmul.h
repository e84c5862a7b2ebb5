/// Products of a sparse matrix with a dense one: element by element on the vector cores, in blocks of 64 on the cube
/// cores, or as a dense product; which of them, the pattern says.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "td/kernels.h"
#include "td/load_balancer.h"

namespace td {

constexpr int64_t kSparseBlock = 64;

/// A float16 matrix by rows: the columns and values of row r are those from row_starts[r] to row_starts[r + 1].
struct SparseTensor {
  int64_t rows = 0, columns = 0;
  std::vector<int32_t> row_starts{0};
  std::vector<int32_t> column_indices;  ///< ascending within a row
  std::vector<uint16_t> values;         ///< bits of float16

  int64_t nonzeros() const { return static_cast<int64_t>(values.size()); }
  double density() const {
    return rows * columns == 0 ? 0 : static_cast<double>(nonzeros()) / static_cast<double>(rows * columns);
  }

  /// Throws std::invalid_argument that says which index is wrong.
  void check() const {
    const auto fail = [](const std::string& text) { throw std::invalid_argument("[SparseTensor] " + text); };
    if (rows < 0 || columns < 0) fail("a size is negative: " + std::to_string(rows) + " x " + std::to_string(columns));
    if (static_cast<int64_t>(row_starts.size()) != rows + 1) {
      fail("row_starts has " + std::to_string(row_starts.size()) + " numbers, expected " + std::to_string(rows + 1));
    }
    if (column_indices.size() != values.size()) {
      fail(std::to_string(column_indices.size()) + " column indices for " + std::to_string(values.size()) + " values");
    }
    if (row_starts.front() != 0 || row_starts.back() != static_cast<int64_t>(values.size())) {
      fail("row_starts must go from 0 to the number of values, " + std::to_string(values.size()));
    }
    for (int64_t row = 0; row < rows; ++row) {
      const int32_t begin = row_starts[static_cast<size_t>(row)], end = row_starts[static_cast<size_t>(row) + 1];
      if (begin > end || end > row_starts.back()) fail("row_starts falls at row " + std::to_string(row));
      for (int32_t i = begin; i < end; ++i) {
        const int32_t column = column_indices[static_cast<size_t>(i)];
        if (column < 0 || column >= columns) {
          fail("row " + std::to_string(row) + " has the column " + std::to_string(column) + " of " +
               std::to_string(columns));
        }
        if (i > begin && column <= column_indices[static_cast<size_t>(i) - 1]) {
          fail("the columns of row " + std::to_string(row) + " do not ascend at " + std::to_string(column));
        }
      }
    }
  }

  /// From blocks of `size` x `size` (BSR): the blocks of row r of blocks are those from block_starts[r] on, each by
  /// rows. Zeros in them are left out. Throws std::invalid_argument where the lists do not fit.
  static SparseTensor from_blocks(int64_t rows, int64_t columns, int64_t size, const std::vector<int32_t>& block_starts,
                                  const std::vector<int32_t>& block_columns, const std::vector<uint16_t>& values) {
    const bool is_whole = size > 0 && rows % size == 0 && columns % size == 0;
    if (!is_whole || static_cast<int64_t>(block_starts.size()) != rows / size + 1 ||
        values.size() != block_columns.size() * static_cast<size_t>(size * size) || block_starts.front() != 0 ||
        block_starts.back() != static_cast<int64_t>(block_columns.size())) {
      throw std::invalid_argument("[SparseTensor] " + std::to_string(block_columns.size()) + " blocks of " +
                                  std::to_string(size) + " do not make a matrix of " + std::to_string(rows) + " x " +
                                  std::to_string(columns));
    }
    SparseTensor made;
    made.rows = rows;
    made.columns = columns;
    for (int64_t row = 0; row < rows; ++row) {
      const auto strip = static_cast<size_t>(row / size);
      for (int32_t block = block_starts[strip]; block < block_starts[strip + 1]; ++block) {
        const uint16_t* own = values.data() + (block * size + row % size) * size;
        for (int64_t i = 0; i < size; ++i) {
          if ((own[i] & 0x7fff) == 0) continue;
          made.column_indices.push_back(static_cast<int32_t>(block_columns[static_cast<size_t>(block)] * size + i));
          made.values.push_back(own[i]);
        }
      }
      made.row_starts.push_back(static_cast<int32_t>(made.values.size()));
    }
    made.check();
    return made;
  }

  /// From a dense matrix: everything but zeros.
  static SparseTensor from_dense(const uint16_t* data, int64_t rows, int64_t columns) {
    SparseTensor made;
    made.rows = rows;
    made.columns = columns;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        const uint16_t bits = data[row * columns + column];
        if ((bits & 0x7fff) == 0) continue;
        made.column_indices.push_back(static_cast<int32_t>(column));
        made.values.push_back(bits);
      }
      made.row_starts.push_back(static_cast<int32_t>(made.values.size()));
    }
    return made;
  }
};

enum class ComputeStrategy { SPARSE_DIRECT, BLOCK_SPARSE, DENSE_FALLBACK };

/// 64 rows of a matrix.
struct StripAnalysis {
  int64_t nonzeros = 0;
  double density = 0;
  std::vector<int32_t> blocks;  ///< columns / 64 of the blocks that are not empty
};

struct SparsityAnalysis {
  double density = 0;        ///< elements that are there
  double block_density = 0;  ///< blocks of 64 x 64 that are not empty
  double block_fill = 0;     ///< elements that are there of those blocks'
  int64_t blocks = 0;
  std::vector<StripAnalysis> strips;
};

/// Below which densities which strategy is taken. The article's: 10 % direct, 30 % blocks, inside them 15 % direct.
struct SparseThresholds {
  double direct_below = 0.10;
  double blocks_below = 0.30;
  double strip_direct_below = 0.15;
};

/// What the timing model says for one shape, in microseconds: from launches of the kernels themselves.
struct SparseCosts {
  double dense_us = 0;
  double direct_us = 0, direct_us_per_density = 0;  ///< time = direct_us + density * direct_us_per_density
  double blocks_us = 0, blocks_us_per_density = 0;  ///< by the density of blocks

  double direct(double density) const { return direct_us + density * direct_us_per_density; }
  double in_blocks(double block_density) const { return blocks_us + block_density * blocks_us_per_density; }
  /// The density of elements below which direct is faster than dense, and that of blocks below which blocks are.
  double direct_below() const { return std::clamp((dense_us - direct_us) / direct_us_per_density, 0.0, 1.0); }
  double blocks_below() const { return std::clamp((dense_us - blocks_us) / blocks_us_per_density, 0.0, 1.0); }
};

class SparseMatMulOptimizer {
 public:
  SparsityAnalysis analyze_sparsity(const SparseTensor& a) const {
    a.check();
    SparsityAnalysis analysis;
    const int64_t strips = (a.rows + kSparseBlock - 1) / kSparseBlock;
    const int64_t across = (a.columns + kSparseBlock - 1) / kSparseBlock;
    std::vector<uint8_t> is_there(static_cast<size_t>(across));
    for (int64_t strip = 0; strip < strips; ++strip) {
      StripAnalysis own;
      std::fill(is_there.begin(), is_there.end(), uint8_t{0});
      const auto begin = a.row_starts[static_cast<size_t>(strip * kSparseBlock)];
      const auto end = a.row_starts[static_cast<size_t>(std::min(a.rows, (strip + 1) * kSparseBlock))];
      for (int32_t i = begin; i < end; ++i)
        is_there[static_cast<size_t>(a.column_indices[static_cast<size_t>(i)] / kSparseBlock)] = 1;
      for (int64_t block = 0; block < across; ++block) {
        if (is_there[static_cast<size_t>(block)] != 0) own.blocks.push_back(static_cast<int32_t>(block));
      }
      own.nonzeros = end - begin;
      const int64_t rows = std::min(a.rows - strip * kSparseBlock, kSparseBlock);
      if (a.columns > 0) own.density = static_cast<double>(own.nonzeros) / static_cast<double>(rows * a.columns);
      analysis.blocks += static_cast<int64_t>(own.blocks.size());
      analysis.strips.push_back(std::move(own));
    }
    analysis.density = a.density();
    if (strips * across > 0)
      analysis.block_density = static_cast<double>(analysis.blocks) / static_cast<double>(strips * across);
    if (analysis.blocks > 0) {
      analysis.block_fill =
          static_cast<double>(a.nonzeros()) / static_cast<double>(analysis.blocks * kSparseBlock * kSparseBlock);
    }
    return analysis;
  }

  /// The article's rule: by the density of elements alone.
  static ComputeStrategy choose(const SparsityAnalysis& analysis, const SparseThresholds& thresholds = {}) {
    if (analysis.density < thresholds.direct_below) return ComputeStrategy::SPARSE_DIRECT;
    if (analysis.density < thresholds.blocks_below) return ComputeStrategy::BLOCK_SPARSE;
    return ComputeStrategy::DENSE_FALLBACK;
  }

  /// The strategy of the least modelled time.
  static ComputeStrategy choose(const SparsityAnalysis& analysis, const SparseCosts& costs) {
    const double direct = costs.direct(analysis.density), blocks = costs.in_blocks(analysis.block_density);
    if (direct <= blocks && direct <= costs.dense_us) return ComputeStrategy::SPARSE_DIRECT;
    return blocks <= costs.dense_us ? ComputeStrategy::BLOCK_SPARSE : ComputeStrategy::DENSE_FALLBACK;
  }

  /// Below which density 64 rows of a matrix in blocks are computed directly: where their elements take the vector
  /// cores less time than their blocks the cube cores. 0 where all of them would not make up for a second launch.
  static double strip_direct_below(const SparsityAnalysis& analysis, const SparseCosts& costs) {
    if (analysis.blocks == 0 || !std::isfinite(costs.blocks_us)) return 0;
    const double strips = static_cast<double>(analysis.strips.size());
    const double per_block =
        costs.blocks_us_per_density * analysis.block_density / static_cast<double>(analysis.blocks);
    const double limit =
        std::min(1.0, costs.blocks_us_per_density * analysis.block_density / costs.direct_us_per_density);
    double gain = -costs.direct_us;
    for (const StripAnalysis& strip : analysis.strips) {
      if (strip.density >= limit) continue;
      gain +=
          static_cast<double>(strip.blocks.size()) * per_block - strip.density / strips * costs.direct_us_per_density;
    }
    return gain > 0 ? limit : 0;
  }

  /// c (rows, n) = a (rows, columns) b (columns, n), all float16, sums in float32; by what the model says for the
  /// shape.
  ComputeStrategy sparse_matmul(const SparseTensor& a, const void* b, int64_t n, void* c) {
    const SparsityAnalysis analysis = analyze_sparsity(a);
    check_product(a, b, n, c);
    const SparseCosts& costs = costs_of(a.rows, a.columns, n);
    const ComputeStrategy strategy = choose(analysis, costs);
    run(strategy, a, analysis, b, n, c, strip_direct_below(analysis, costs));
    return strategy;
  }

  /// The same with a strategy that the caller has chosen. `strip_direct_below`: of BLOCK_SPARSE, the density below
  /// which 64 rows are computed directly.
  void run(ComputeStrategy strategy, const SparseTensor& a, const SparsityAnalysis& analysis, const void* b, int64_t n,
           void* c, double strip_direct_below = 0) const {
    check_product(a, b, n, c);
    if (a.rows == 0 || n == 0) return;
    if (strategy != ComputeStrategy::SPARSE_DIRECT && (a.columns % kSparseBlock != 0 || n % 16 != 0)) {
      throw std::invalid_argument(
          "[sparse_matmul] on the cube cores columns are a multiple of 64 and n one of 16, not " +
          std::to_string(a.columns) + " and " + std::to_string(n) + ": pad them");
    }
    std::vector<int32_t> direct_rows;
    if (strategy == ComputeStrategy::SPARSE_DIRECT) {
      direct_rows.resize(static_cast<size_t>(a.rows));
      std::iota(direct_rows.begin(), direct_rows.end(), 0);
    } else if (strategy == ComputeStrategy::BLOCK_SPARSE) {
      std::vector<int32_t> strips;
      for (size_t i = 0; i < analysis.strips.size(); ++i) {
        const int64_t first = static_cast<int64_t>(i) * kSparseBlock, behind = std::min(a.rows, first + kSparseBlock);
        if (analysis.strips[i].density < strip_direct_below) {
          for (int64_t row = first; row < behind; ++row) direct_rows.push_back(static_cast<int32_t>(row));
        } else {
          strips.push_back(static_cast<int32_t>(i));
        }
      }
      if (!strips.empty()) run_blocks(a, analysis, strips, b, n, c);
    } else {
      run_dense(a, b, n, c);
    }
    if (!direct_rows.empty()) run_direct(a, direct_rows, b, n, c, vector_cores());
  }

  /// The direct product of some rows on so many blocks of vector cores, by a partition of their work.
  MultiCoreLoadBalancer::TaskPartition run_direct(const SparseTensor& a, const std::vector<int32_t>& rows,
                                                  const void* b, int64_t n, void* c, int blocks,
                                                  bool is_even = false) const {
    check_product(a, b, n, c);
    if (n % 16 != 0)
      throw std::invalid_argument("[sparse_matmul] n is " + std::to_string(n) + ", expected a multiple of 16");
    std::vector<double> work;
    for (const int32_t row : rows) {
      work.push_back(kRowWork + a.row_starts[static_cast<size_t>(row) + 1] - a.row_starts[static_cast<size_t>(row)]);
    }
    const MultiCoreLoadBalancer balancer;
    const auto partition =
        is_even ? balancer.regular_partition(work, blocks) : balancer.sparse_aware_partition(work, blocks);
    const std::vector<int32_t> starts = partition.starts();
    std::vector<int32_t> order = partition.order();
    for (int32_t& item : order) item = rows[static_cast<size_t>(item)];
    const std::vector<int32_t> plan{static_cast<int32_t>(n), 0, 0, 0, 0, 0, 0, 0};
    launch_kernel("sparse_direct",
                  {memory_of(a.row_starts),
                   memory_of(a.column_indices),
                   memory_of(a.values),
                   {b, static_cast<size_t>(a.columns * n * 2)},
                   {c, static_cast<size_t>(a.rows * n * 2)},
                   memory_of(starts),
                   memory_of(order),
                   memory_of(plan)},
                  static_cast<uint32_t>(blocks));
    return partition;
  }

  /// What the model says for a shape; launched once for each. Times of the program's own launches stay as they are.
  const SparseCosts& costs_of(int64_t m, int64_t k, int64_t n) {
    const std::lock_guard<std::mutex> guard(lock_);
    const auto found = costs_.find({m, k, n});
    if (found != costs_.end()) return found->second;
    return costs_[{m, k, n}] = measured(m, k, n);
  }

 private:
  // Rows cost their start and end beside their elements: about as much as so many elements of them, in the model.
  static constexpr double kRowWork = 24;

  static void check_product(const SparseTensor& a, const void* b, int64_t n, const void* c) {
    if (n < 0) throw std::invalid_argument("[sparse_matmul] n is " + std::to_string(n));
    if ((b == nullptr && a.columns * n > 0) || (c == nullptr && a.rows * n > 0))
      throw std::invalid_argument("[sparse_matmul] b or c is null");
    if (a.rows * n > INT32_MAX || a.columns * n > INT32_MAX)
      throw std::invalid_argument("[sparse_matmul] a matrix has more than 2^31 elements");
  }

  /// Blocks of 64 x 64 as fractals of L1: 16 columns of all rows, then the next.
  void run_blocks(const SparseTensor& a, const SparsityAnalysis& analysis, const std::vector<int32_t>& strips,
                  const void* b, int64_t n, void* c) const {
    constexpr int64_t kElements = kSparseBlock * kSparseBlock;
    std::vector<int32_t> step_starts{0}, step_rows;
    std::vector<uint16_t> packed;
    std::vector<double> work;
    for (const int32_t strip : strips) {
      const StripAnalysis& own = analysis.strips[static_cast<size_t>(strip)];
      std::map<int32_t, int64_t> place;
      for (const int32_t block : own.blocks) {
        place[block] = static_cast<int64_t>(packed.size());
        packed.resize(packed.size() + kElements);
        step_rows.push_back(block * static_cast<int32_t>(kSparseBlock));
      }
      if (own.blocks.empty()) {  // zeros are computed too: c need not be clear
        packed.resize(packed.size() + kElements);
        step_rows.push_back(-1);
      }
      for (int64_t row = strip * kSparseBlock; row < std::min(a.rows, (strip + 1) * kSparseBlock); ++row) {
        for (int32_t i = a.row_starts[static_cast<size_t>(row)]; i < a.row_starts[static_cast<size_t>(row) + 1]; ++i) {
          const int32_t column = a.column_indices[static_cast<size_t>(i)];
          const int64_t inside = column % kSparseBlock;
          const int64_t at = inside / 16 * kSparseBlock * 16 + row % kSparseBlock * 16 + inside % 16;
          packed[static_cast<size_t>(place[column / static_cast<int32_t>(kSparseBlock)] + at)] =
              a.values[static_cast<size_t>(i)];
        }
      }
      step_starts.push_back(static_cast<int32_t>(step_rows.size()));
      work.push_back(static_cast<double>(std::max<size_t>(own.blocks.size(), 1)) + 1.5);
    }
    launch_tiles("block_sparse", a.rows, n, strips, step_starts, step_rows, work, memory_of(packed), kSparseBlock, b,
                 a.columns, c);
  }

  void run_dense(const SparseTensor& a, const void* b, int64_t n, void* c) const {
    // Whole fractals: the kernel multiplies 16 rows at a time.
    std::vector<uint16_t> dense(static_cast<size_t>((a.rows + 15) / 16 * 16 * a.columns));
    for (int64_t row = 0; row < a.rows; ++row) {
      for (int32_t i = a.row_starts[static_cast<size_t>(row)]; i < a.row_starts[static_cast<size_t>(row) + 1]; ++i) {
        dense[static_cast<size_t>(row * a.columns + a.column_indices[static_cast<size_t>(i)])] =
            a.values[static_cast<size_t>(i)];
      }
    }
    std::vector<int32_t> strips(static_cast<size_t>((a.rows + 127) / 128));
    std::iota(strips.begin(), strips.end(), 0);
    const std::vector<double> work(strips.size(), 1.0);
    launch_tiles("dense_product", a.rows, n, strips, {}, {}, work, memory_of(dense), 128, b, a.columns, c);
  }

  /// Tiles of c, `tile_rows` x 256, given to cube cores by their work.
  static void launch_tiles(const char* kernel, int64_t m, int64_t n, const std::vector<int32_t>& strips,
                           const std::vector<int32_t>& step_starts, const std::vector<int32_t>& step_rows,
                           const std::vector<double>& work, KernelMemory a, int64_t tile_rows, const void* b, int64_t k,
                           void* c) {
    const auto across = static_cast<int32_t>((n + 255) / 256);
    const auto rows = static_cast<int32_t>(strips.size());
    const int cores = std::min(cube_cores(), across * rows);
    std::vector<int32_t> starts{0}, tiles;
    const auto add = [&](const std::vector<int64_t>& items, int32_t column) {
      for (const int64_t item : items) {
        const auto row = static_cast<int32_t>(item % rows);
        tiles.insert(tiles.end(),
                     {strips[static_cast<size_t>(row)], column < 0 ? static_cast<int32_t>(item / rows) : column, row});
      }
      starts.push_back(static_cast<int32_t>(tiles.size() / 3));
    };
    const MultiCoreLoadBalancer balancer;
    if (cores % across == 0) {
      // As many cores for each column of tiles: they read one part of b from HBM together, so none has more misses.
      // Those with the same rows begin with different ones: in step they would wait for each other.
      const auto partition = balancer.sparse_aware_partition(work, cores / across);
      for (int32_t column = 0; column < across; ++column) {
        for (std::vector<int64_t> own : partition.items) {
          const auto first = column * static_cast<int64_t>(own.size()) / across;
          std::rotate(own.begin(), own.begin() + first, own.end());
          add(own, column);
        }
      }
    } else {
      std::vector<double> tile_work;
      for (int32_t column = 0; column < across; ++column) tile_work.insert(tile_work.end(), work.begin(), work.end());
      for (const auto& own : balancer.sparse_aware_partition(tile_work, cores).items) add(own, -1);
    }
    const std::vector<int32_t> plan{static_cast<int32_t>(m),
                                    static_cast<int32_t>(n),
                                    static_cast<int32_t>(k),
                                    static_cast<int32_t>(tile_rows),
                                    0,
                                    0,
                                    0,
                                    0};
    launch_kernel(kernel,
                  {a,
                   {b, static_cast<size_t>(k * n * 2)},
                   {c, static_cast<size_t>(m * n * 2)},
                   memory_of(starts),
                   memory_of(tiles),
                   memory_of(step_starts),
                   memory_of(step_rows),
                   memory_of(plan)},
                  static_cast<uint32_t>(cores));
  }

  /// Launches of each kernel at two densities; zeros and ones take the same time.
  SparseCosts measured(int64_t m, int64_t k, int64_t n) const {
    const bool were_timed = opkit_are_launches_timed() != 0;
    opkit_time_launches(1);
    std::vector<uint16_t> b(static_cast<size_t>(k * n)), c(static_cast<size_t>(m * n));
    const auto time_of = [&](ComputeStrategy strategy, const SparseTensor& a) {
      const SparsityAnalysis analysis = analyze_sparsity(a);
      const double before = opkit_modelled_us();
      run(strategy, a, analysis, b.data(), n, c.data());
      return opkit_modelled_us() - before;
    };
    SparseCosts costs;
    const auto fit = [&](ComputeStrategy strategy, const SparseTensor& low, const SparseTensor& high,
                         double low_density, double high_density, double& start, double& per_density) {
      const double first = time_of(strategy, low), second = time_of(strategy, high);
      per_density = std::max(second - first, 1e-6) / std::max(high_density - low_density, 1e-9);
      start = first - low_density * per_density;
    };
    const SparseTensor few = spread(m, k, 0.005), more = spread(m, k, 0.02);
    fit(ComputeStrategy::SPARSE_DIRECT, few, more, few.density(), more.density(), costs.direct_us,
        costs.direct_us_per_density);
    if (k % kSparseBlock == 0 && n % 16 == 0) {
      const SparseTensor some = in_blocks(m, k, 8), half = in_blocks(m, k, 2);
      fit(ComputeStrategy::BLOCK_SPARSE, some, half, analyze_sparsity(some).block_density,
          analyze_sparsity(half).block_density, costs.blocks_us, costs.blocks_us_per_density);
      costs.dense_us = time_of(ComputeStrategy::DENSE_FALLBACK,
                               SparseTensor{m, k, std::vector<int32_t>(static_cast<size_t>(m) + 1), {}, {}});
    } else {  // the cube cores do not take the shape
      costs.blocks_us = costs.dense_us = INFINITY;
      costs.blocks_us_per_density = 1;
    }
    opkit_time_launches(were_timed);
    return costs;
  }

  /// As many elements in each row, spread over the columns by a fixed rule.
  static SparseTensor spread(int64_t m, int64_t k, double density) {
    SparseTensor made;
    made.rows = m;
    made.columns = k;
    const auto count =
        std::min<int64_t>(k, std::max<int64_t>(1, static_cast<int64_t>(std::lround(density * static_cast<double>(k)))));
    for (int64_t row = 0; row < m; ++row) {
      for (int64_t i = 0; i < count; ++i)
        made.column_indices.push_back(static_cast<int32_t>((i * k + row * 7 % k) / count % k));
      std::sort(made.column_indices.end() - count, made.column_indices.end());
      made.row_starts.push_back(static_cast<int32_t>(made.column_indices.size()));
    }
    made.values.resize(made.column_indices.size());
    return made;
  }

  /// One element in every block of which `one_in` is chosen.
  static SparseTensor in_blocks(int64_t m, int64_t k, int64_t one_in) {
    SparseTensor made;
    made.rows = m;
    made.columns = k;
    for (int64_t row = 0; row < m; ++row) {
      if (row % kSparseBlock == 0) {
        for (int64_t block = 0; block < k / kSparseBlock; ++block) {
          if ((block * 5 + row / kSparseBlock * 3) % one_in == 0)
            made.column_indices.push_back(static_cast<int32_t>(block * kSparseBlock));
        }
      }
      made.row_starts.push_back(static_cast<int32_t>(made.column_indices.size()));
    }
    made.values.resize(made.column_indices.size());
    return made;
  }

  std::mutex lock_;
  std::map<std::tuple<int64_t, int64_t, int64_t>, SparseCosts> costs_;
};

/// c (m, n) int32 = x (m, k) w^T, with w (n, k) int8 of which every four neighbours in a row have two zeros: the chip's
/// own instruction for such weights, which knows int8 only. k is a multiple of 64. Throws std::invalid_argument that
/// says which four have more.
inline void structured_matmul(const int8_t* x, const int8_t* w, int64_t m, int64_t n, int64_t k, int32_t* c) {
  if (x == nullptr || w == nullptr || c == nullptr) throw std::invalid_argument("[structured_matmul] a matrix is null");
  if (m < 1 || n < 1 || k < 64 || k % 64 != 0) {
    throw std::invalid_argument("[structured_matmul] m, n, k are " + std::to_string(m) + ", " + std::to_string(n) +
                                ", " + std::to_string(k) + "; k must be a multiple of 64");
  }
  std::vector<int8_t> kept(static_cast<size_t>(n * k / 2));
  std::vector<uint8_t> indices(static_cast<size_t>(n * k / 8));
  for (int64_t row = 0; row < n; ++row) {
    for (int64_t group = 0; group < k / 4; ++group) {
      const int8_t* four = w + row * k + group * 4;
      int place[2] = {-1, -1};
      int count = 0;
      for (int i = 0; i < 4; ++i) {
        if (four[i] == 0) continue;
        if (count == 2) {
          throw std::invalid_argument("[structured_matmul] row " + std::to_string(row) +
                                      " of w has more than two weights at " + std::to_string(group * 4) + " to " +
                                      std::to_string(group * 4 + 3) + ": two of every four must be zero");
        }
        place[count++] = i;
      }
      // The first kept one is among 0 to 2, the second behind it: where fewer are there, zeros are kept.
      if (count == 0) place[0] = 0, place[1] = 1;
      if (count == 1 && place[0] == 3) place[0] = 0, place[1] = 3;
      if (place[1] < 0) place[1] = place[0] + 1;
      kept[static_cast<size_t>(row * k / 2 + group * 2)] = four[place[0]];
      kept[static_cast<size_t>(row * k / 2 + group * 2 + 1)] = four[place[1]];
      const int bits = place[0] | (place[1] - 1) << 2;
      // Two groups a byte; columns of 32 kept weights, 8 bytes a row.
      const int64_t byte = group / 2;
      indices[static_cast<size_t>((byte / 8 * n + row) * 8 + byte % 8)] |= static_cast<uint8_t>(bits << group % 2 * 4);
    }
  }
  const std::vector<int32_t> plan{
      static_cast<int32_t>(m), static_cast<int32_t>(n), static_cast<int32_t>(k), 0, 0, 0, 0, 0};
  const auto cores = static_cast<uint32_t>(std::min<int64_t>(cube_cores(), (m + 127) / 128));
  launch_kernel("structured_sparse",
                {{x, static_cast<size_t>(m * k)},
                 memory_of(kept),
                 memory_of(indices),
                 {c, static_cast<size_t>(m * n * 4)},
                 memory_of(plan)},
                cores);
}

}  // namespace td
