// Mmad of integers: A and B unpacked to words of 16-bit pairs, or of 8-bit quads where the host multiplies those.
#include <algorithm>
#include <cstring>
#include <vector>

#include "isa/cube.h"
#include "isa/lanes/lanes.h"

namespace opkit {
namespace {

constexpr uint32_t kSignBits = 0x80808080;  ///< flipped, an int8_t is itself plus 128 as a uint8_t

/// Elements of a fractal's row, widened.
void widen(DType type, const uint8_t* bytes, uint32_t count, int16_t* to) {
  for (uint32_t i = 0; i < count; ++i) {
    switch (type) {
      case DType::S8: to[i] = static_cast<int8_t>(bytes[i]); break;
      case DType::U8: to[i] = bytes[i]; break;
      default:  // the first of two nibbles is the low one
        to[i] =
            static_cast<int16_t>(static_cast<int8_t>(static_cast<uint8_t>(bytes[i / 2] << (i % 2 == 0 ? 4 : 0))) >> 4);
    }
  }
}

/// Where row `row` of A's block `depth` along k begins.
const uint8_t* left_row(const uint8_t* fractals, const ProductShape& shape, uint32_t row, uint32_t depth) {
  if (shape.is_vector) return fractals + depth * kBlockBytes;
  return fractals + (size_t{row / kCubeSide} * shape.left_across + depth) * kFractalBytes +
         row % kCubeSide * kBlockBytes;
}

uint32_t* left_words(const Core& core, const Instr& instr, const ProductShape& shape, bool has_quads, size_t stride) {
  static thread_local std::vector<uint32_t> buffer;
  uint32_t* words = scratch(buffer, instr.product->m * stride);
  const DType type = instr.src[0].dtype;
  const uint32_t flip = type == DType::S8 ? kSignBits : 0;
  if (has_quads && !shape.is_vector) {
    lanes::table().unpack_left_quads(core.at(instr.src[0]), instr.product->m, shape.left_across, shape.depth_blocks,
                                     type == DType::S8, words, stride);
    return words;
  }
  const uint32_t per_fractal = has_quads ? kBlockBytes / 4 : shape.width / 2;
  for (uint32_t row = 0; row < instr.product->m; ++row) {
    for (uint32_t depth = 0; depth < shape.depth_blocks; ++depth) {
      const uint8_t* from = left_row(core.at(instr.src[0]), shape, row, depth);
      uint32_t* to = words + row * stride + depth * per_fractal;
      // Of a vector the last block ends with the tensor.
      const uint32_t count = std::min(shape.width, instr.product->k - depth * shape.width);
      if (!has_quads) {
        int16_t wide[64] = {};
        widen(type, from, count, wide);
        std::memcpy(to, wide, per_fractal * 4);
        continue;
      }
      std::memcpy(to, from, count);
      for (uint32_t i = 0; i < per_fractal; ++i) to[i] ^= flip;
    }
  }
  return words;
}

/// Elements of B behind k are 0.
uint32_t* right_words(const Core& core, const Instr& instr, const ProductShape& shape, bool has_quads, size_t stride) {
  static thread_local std::vector<uint32_t> buffer;
  uint32_t* words = scratch(buffer, shape.column_blocks * stride);
  const uint8_t* fractal = core.at(instr.src[1]);
  for (uint32_t depth = 0; depth < shape.depth_blocks; ++depth) {
    const uint32_t count = std::min(shape.width, instr.product->k - depth * shape.width);
    for (uint32_t block = 0; block < shape.column_blocks; ++block, fractal += kFractalBytes) {
      uint32_t* to =
          words + block * stride + size_t{depth} * (has_quads ? kBlockBytes / 4 : shape.width / 2) * kCubeSide;
      if (has_quads) {
        lanes::table().unpack_right_float(fractal, reinterpret_cast<float*>(to));
        for (uint32_t word = count / 4; word < kBlockBytes / 4; ++word) {
          const uint32_t kept = word == count / 4 ? (1u << count % 4 * 8) - 1 : 0;
          for (uint32_t column = 0; column < kCubeSide; ++column) to[word * kCubeSide + column] &= kept;
        }
        continue;
      }
      for (uint32_t column = 0; column < kCubeSide; ++column) {
        int16_t wide[64] = {};
        widen(instr.src[1].dtype, fractal + column * kBlockBytes, count, wide);
        for (uint32_t pair = 0; pair < shape.width / 2; ++pair) {
          std::memcpy(to + pair * kCubeSide + column, wide + 2 * pair, 4);
        }
      }
    }
  }
  return words;
}

}  // namespace

void multiply_integers(const Core& core, const Instr& instr, const ProductShape& shape) {
  const MatrixProduct& product = *instr.product;
  const lanes::LaneTable& lanes = lanes::table();
  const bool has_quads = lanes.multiply_quads != nullptr && lanes::has_byte_dots() && instr.src[0].dtype != DType::S4 &&
                         instr.src[1].dtype == DType::S8;
  const size_t words = size_t{shape.depth_blocks} * (has_quads ? kBlockBytes / 4 : shape.width / 2);
  lanes::IntegerProduct integers;
  integers.b_stride = words * kCubeSide;
  integers.set_rows(left_words(core, instr, shape, has_quads, words), words);
  integers.b = right_words(core, instr, shape, has_quads, integers.b_stride);
  integers.c = reinterpret_cast<int32_t*>(core.at(instr.dst));
  integers.steps = words;
  integers.a_offset = has_quads && instr.src[0].dtype == DType::S8 ? 128 : 0;
  multiply_blocks(integers, product, shape, has_quads ? lanes.multiply_quads : lanes.multiply_pairs);
}

}  // namespace opkit
