// Mmad of floats, halves and bfloat16: widened once an instruction, or bfloat16 in pairs where the host multiplies
// those.
#include <algorithm>
#include <cstring>
#include <vector>

#include "isa/cube.h"
#include "isa/lanes/lanes.h"

namespace opkit {
namespace {

/// Rounds to HF32 in place: a float with 11 bits of mantissa. Source: ATC parameters, allow_hf32.
void round_to_hf32(float* values, size_t count, HalfwayTo halfway) {
  constexpr uint32_t kDropped = 23 - 11;
  constexpr uint32_t kHalf = 1u << (kDropped - 1);
  constexpr uint32_t kInfinity = 0x7f800000;
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, values + i, sizeof(bits));
    if ((bits & kInfinity) == kInfinity) continue;
    const uint32_t odd = bits >> kDropped & 1;
    const uint32_t up = halfway == HalfwayTo::Even ? odd : (halfway == HalfwayTo::Infinity ? 1 : 0);
    bits = (bits + kHalf - 1 + up) >> kDropped << kDropped;
    std::memcpy(values + i, &bits, sizeof(bits));
  }
}

/// The rows of A as floats, `stride` apart.
float* left_floats(const Core& core, const Instr& instr, const ProductShape& shape, size_t stride) {
  static thread_local std::vector<float> buffer;
  const MatrixProduct& product = *instr.product;
  float* rows = scratch(buffer, std::max<size_t>(product.m, 1) * stride);
  const uint8_t* fractals = core.at(instr.src[0]);
  const DType type = instr.src[0].dtype;
  const lanes::LaneTable& lanes = lanes::table();
  if (type != DType::F32) {
    const lanes::UnpackLeft unpack = type == DType::F16 ? lanes.unpack_left_half : lanes.unpack_left_bfloat16;
    // The one row of a vector is a fractal's width of 16-bit elements after the other.
    if (!shape.is_vector) {
      unpack(fractals, product.m, shape.left_across, shape.depth_blocks, rows, stride);
      return rows;
    }
    const lanes::Lane widen = lanes.cast[static_cast<size_t>(DType::F32)][static_cast<size_t>(type)][0];
    const void* source[1] = {fractals};
    widen(rows, source, nullptr, product.k);
    return rows;
  }
  if (shape.is_vector) {
    std::memcpy(rows, fractals, product.k * sizeof(float));
    return rows;
  }
  constexpr size_t kRowBytes = kBlockBytes;
  for (uint32_t row = 0; row < product.m; ++row) {
    const uint8_t* line = fractals + row / kCubeSide * shape.left_across * kFractalBytes + row % kCubeSide * kRowBytes;
    for (uint32_t i = 0; i < shape.depth_blocks; ++i) {
      std::memcpy(rows + row * stride + i * shape.width, line + i * kFractalBytes, kRowBytes);
    }
  }
  return rows;
}

/// The blocks of 16 columns of B as rows of floats, `stride` apart.
float* right_floats(const Core& core, const Instr& instr, const ProductShape& shape, size_t stride) {
  static thread_local std::vector<float> buffer;
  float* blocks = scratch(buffer, shape.column_blocks * stride);
  const lanes::LaneTable& lanes = lanes::table();
  lanes::UnpackRight unpack = lanes.unpack_right_float;
  if (instr.src[1].dtype == DType::F16) unpack = lanes.unpack_right_half;
  if (instr.src[1].dtype == DType::BF16) unpack = lanes.unpack_right_bfloat16;
  const uint8_t* fractal = core.at(instr.src[1]);
  for (uint32_t depth = 0; depth < shape.depth_blocks; ++depth) {
    for (uint32_t block = 0; block < shape.column_blocks; ++block, fractal += kFractalBytes) {
      unpack(fractal, blocks + block * stride + size_t{depth} * shape.width * kCubeSide);
    }
  }
  return blocks;
}

/// Multiplies bfloat16 two by two. False, and nothing done, where the host cannot or its bits would differ.
bool multiply_pairs(const Core& core, const Instr& instr, const ProductShape& shape) {
  static thread_local std::vector<uint32_t> left_buffer;
  static thread_local std::vector<uint32_t> right_buffer;
  const MatrixProduct& product = *instr.product;
  const lanes::LaneTable& lanes = lanes::table();
  // Behind an odd k lies an element that must not count.
  if (lanes.multiply_bfloat16_pairs == nullptr || !lanes::has_bfloat16_dots() || shape.is_vector ||
      product.k % 2 != 0) {
    return false;
  }
  const size_t words = size_t{shape.depth_blocks} * (kBlockBytes / 4);
  lanes::PairProduct pairs;
  pairs.b_stride = words * kCubeSide;
  uint32_t* left = scratch(left_buffer, product.m * words);
  uint32_t* right = scratch(right_buffer, shape.column_blocks * pairs.b_stride);
  const uint32_t left_exponent =
      lanes.unpack_left_pairs(core.at(instr.src[0]), product.m, shape.left_across, shape.depth_blocks, left, words);
  const uint32_t right_exponent =
      lanes.unpack_right_pairs(core.at(instr.src[1]), shape.depth_blocks, shape.column_blocks, right, pairs.b_stride);
  if (left_exponent == 0 || right_exponent == 0 || left_exponent + right_exponent < lanes::kLeastPairExponents) {
    return false;
  }
  pairs.set_rows(left, words);
  pairs.b = right;
  pairs.c = reinterpret_cast<float*>(core.at(instr.dst));
  pairs.steps = product.k / 2;
  multiply_blocks(pairs, product, shape, lanes.multiply_bfloat16_pairs);
  return true;
}

}  // namespace

void multiply_floats(const Core& core, const Instr& instr, const ProductShape& shape) {
  const MatrixProduct& product = *instr.product;
  if (instr.src[0].dtype == DType::BF16 && multiply_pairs(core, instr, shape)) return;
  const size_t depth = size_t{shape.depth_blocks} * shape.width;
  lanes::FloatProduct floats;
  floats.b_stride = depth * kCubeSide;
  float* right = right_floats(core, instr, shape, floats.b_stride);
  floats.b = right;
  const bool is_rounded = instr.src[0].dtype == DType::F32 && product.is_hf32;
  if (instr.src[0].dtype == DType::F32 && !is_rounded && !shape.is_vector) {
    floats.set_fractals(reinterpret_cast<const float*>(core.at(instr.src[0])), shape.left_across);
  } else {
    float* left = left_floats(core, instr, shape, depth);
    floats.set_rows(left, depth);
    if (is_rounded) {
      round_to_hf32(left, product.m * depth, product.hf32_halfway);
      round_to_hf32(right, shape.column_blocks * floats.b_stride, product.hf32_halfway);
    }
  }
  floats.c = reinterpret_cast<float*>(core.at(instr.dst));
  floats.steps = product.k;
  const lanes::LaneTable& lanes = lanes::table();
  multiply_blocks(floats, product, shape,
                  instr.src[0].dtype == DType::F16 ? lanes.multiply_halves : lanes.multiply_floats);
}

}  // namespace opkit
