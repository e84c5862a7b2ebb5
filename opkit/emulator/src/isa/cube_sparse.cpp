// LoadDataWithSparse and MmadWithSparse. Source: Ascend C API, matrix computation (ISASI), LoadDataWithSparse,
// MmadWithSparse; fractals of auxiliary matrices, sparse indices.
//
// Of each four elements of A along k the indices pick two, for each column of B on its own: the first index counts from
// the first of the four, the second from the next. Where the second would not lie behind the first it picks the same
// element, whose weight in B is 0.
#include <algorithm>
#include <cstring>
#include <limits>

#include "isa/cube.h"
#include "isa/table.h"
#include "memory/bounds.h"

namespace opkit {
namespace {

constexpr uint32_t kWidth = 32;      ///< elements of k in a fractal
constexpr uint32_t kIndexBytes = 8;  ///< of a column of a fractal of B
constexpr uint32_t kUndefined = 3;   ///< an index that is none

uint64_t index_address(const Instr& instr, uint32_t repeat) {
  return instr.src[1].address + uint64_t{repeat} * kSparseIndexBytes;
}

/// Position of the element of A that B's element `depth` of a column multiplies.
uint32_t picked(const Instr& instr, const uint8_t* indices, uint32_t depth) {
  const uint32_t first_bits = indices[depth / 4] >> (depth % 4 / 2 * 4);
  const uint32_t first = first_bits & 3;
  const uint32_t second = first_bits >> 2 & 3;
  OPKIT_CHECK(first != kUndefined && second != kUndefined, Unspecified, &instr, "give indices 0, 1 and 2",
              "MmadWithSparse: an index of the weights %u and %u of a column is 3", depth / 2 * 2, depth / 2 * 2 + 1);
  const uint32_t group = depth / 2 * 4;
  return group + (depth % 2 == 0 ? first : std::max(first, second + 1));
}

}  // namespace

void load_sparse_ranges(const Core&, const Instr& instr, RangeCallback callback, void* context) {
  const uint64_t fractals = instr.load->repeat;
  if (fractals == 0) return;
  callback(context, {1, instr.src[0].address, fractals * kFractalBytes, false});
  callback(context, {2, index_address(instr, 0), fractals * kSparseIndexBytes, false});
  callback(context, {0, instr.dst.address, fractals * kFractalBytes, true});
}

void execute_load_sparse(Core& core, const Instr& instr) {
  const uint32_t repeat = instr.load->repeat;
  if (repeat == 0) return;
  check_cube(core, instr, instr.src[0].dtype);
  OPKIT_CHECK(repeat <= kMaxRepeat, IllegalOperand, &instr, "split the call",
              "LoadDataWithSparse: repeatTimes %u is over %u", repeat, kMaxRepeat);
  check_place(instr, instr.dst, Space::L0B, kFractalBytes, "dst");
  check_place(instr, instr.src[0], Space::L1, kBlockBytes, "src");
  check_place(instr, instr.src[1], Space::L1, kBlockBytes, "idx");
  const uint64_t bytes = uint64_t{repeat} * kFractalBytes;
  const uint64_t index_bytes = uint64_t{repeat} * kSparseIndexBytes;
  check_bounds(core, instr, instr.src[0], instr.src[0].address, bytes, false);
  check_bounds(core, instr, instr.src[1], instr.src[1].address, index_bytes, false);
  check_bounds(core, instr, instr.dst, instr.dst.address, bytes, true);
  std::memcpy(core.at(instr.dst), core.at(instr.src[0]), bytes);
  core.sparse_indices.resize(core.space_bytes[static_cast<size_t>(Space::L0B)] / (kFractalBytes / kSparseIndexBytes));
  std::memcpy(&core.sparse_indices[instr.dst.address / (kFractalBytes / kSparseIndexBytes)], core.at(instr.src[1]),
              index_bytes);
}

void execute_mmad_sparse(Core& core, const Instr& instr) {
  const MatrixProduct& product = *instr.product;
  if (product.m == 0 || product.n == 0 || product.k == 0) return;
  OPKIT_CHECK(product.k % 4 == 0, Unspecified, &instr, "give a multiple of four",
              "MmadWithSparse: k %u, of which two in four weights are kept", product.k);
  OPKIT_CHECK(!core.sparse_indices.empty(), IllegalOperand, &instr, "load filter with LoadDataWithSparse",
              "MmadWithSparse: no indices were loaded");
  start_product(core, instr);
  const ProductShape shape = shape_of(instr);
  const auto* left = reinterpret_cast<const int8_t*>(core.at(instr.src[0]));
  const auto* right = reinterpret_cast<const int8_t*>(core.at(instr.src[1]));
  const uint8_t* indices = &core.sparse_indices[instr.src[1].address / (kFractalBytes / kSparseIndexBytes)];
  auto* result = reinterpret_cast<int32_t*>(core.at(instr.dst));
  const uint32_t depths = product.k / 2;
  for (uint32_t column = 0; column < product.n; ++column) {
    // The column of B with the zeros put back: what is left is a product like any other.
    int16_t weights[kMaxMatrixSize + 1] = {};
    for (uint32_t depth = 0; depth < depths; ++depth) {
      const size_t fractal = size_t{depth / kWidth} * shape.column_blocks + column / kCubeSide;
      const int8_t weight = right[fractal * kFractalBytes + column % kCubeSide * kWidth + depth % kWidth];
      const uint8_t* of_column = indices + fractal * kSparseIndexBytes + column % kCubeSide * kIndexBytes;
      const uint32_t place = depth / kWidth * 2 * kWidth + picked(instr, of_column, depth % kWidth);
      weights[place] = static_cast<int16_t>(weights[place] + weight);
    }
    for (uint32_t row = 0; row < product.m; ++row) {
      int64_t sum = 0;
      const int8_t* line = left + (size_t{row / kCubeSide} * shape.left_across * kCubeSide + row % kCubeSide) * kWidth;
      for (uint32_t k = 0; k < product.k; ++k) {
        sum += int64_t{line[size_t{k / kWidth} * kFractalBytes + k % kWidth]} * weights[k];
      }
      int32_t& value =
          result[(size_t{column / kCubeSide} * shape.row_blocks * kCubeSide + row) * kCubeSide + column % kCubeSide];
      sum = std::clamp<int64_t>(sum + value, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max());
      value = static_cast<int32_t>(sum);
    }
  }
}

}  // namespace opkit
