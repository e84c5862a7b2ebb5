// LoadData2D and LoadDataWithTranspose. Source: Ascend C API, matrix computation (ISASI), moving matrices in.
#include <algorithm>
#include <cstring>

#include "isa/cube.h"
#include "isa/lanes/lanes.h"
#include "isa/table.h"
#include "memory/bounds.h"

namespace opkit {
namespace {

uint64_t source_of(const Instr& instr, uint32_t repeat) {
  return instr.src[0].address + static_cast<uint64_t>(instr.load->src_stride * repeat);
}

uint64_t destination_of(const Instr& instr, uint32_t repeat, uint32_t fractal) {
  const FractalLoad& load = *instr.load;
  return instr.dst.address + static_cast<uint64_t>(load.dst_stride * repeat + load.dst_fractal * fractal);
}

/// A square whose side is a fractal's row: elements of a byte or four bits, several fractals one below the other.
void transpose_bytes(const uint8_t* from, uint8_t* const* to, uint32_t side) {
  for (uint32_t row = 0; row < side; ++row) {
    uint8_t* line = to[row / kCubeSide] + row % kCubeSide * side;
    for (uint32_t column = 0; column < side; ++column) line[column] = from[column * side + row];
  }
}

void transpose_nibbles(const uint8_t* from, uint8_t* const* to) {
  constexpr uint32_t kSide = 64;
  const auto nibble = [from](uint32_t row, uint32_t column) {
    return from[(row * kSide + column) / 2] >> (column % 2 * 4) & 15;  // the first of two is the low one
  };
  for (uint32_t row = 0; row < kSide; ++row) {
    uint8_t* line = to[row / kCubeSide] + row % kCubeSide * kSide / 2;
    for (uint32_t column = 0; column < kSide; column += 2) {
      line[column / 2] = static_cast<uint8_t>(nibble(column, row) | nibble(column + 1, row) << 4);
    }
  }
}

void transpose_square(DType type, const uint8_t* from, uint8_t* const* to) {
  if (type == DType::S4) return transpose_nibbles(from, to);
  switch (size_bytes(type)) {
    case 1: return transpose_bytes(from, to, 32);
    case 2: return lanes::table().transpose_fractal(from, to[0]);
    default: return lanes::table().transpose_words(from, to[0], to[1]);
  }
}

void check_load(const Core& core, const Instr& instr) {
  const FractalLoad& load = *instr.load;
  const char* name = row_of(instr.op).name;
  const DType type = instr.src[0].dtype;
  check_cube(core, instr, type);
  const Space from = instr.src[0].space;
  const Space to = instr.dst.space;
  const bool is_to_cube = to == Space::L0A || to == Space::L0B;
  const bool is_path = from == Space::L1 ? is_to_cube : from == Space::GM && (is_to_cube || to == Space::L1);
  OPKIT_CHECK(is_path, IllegalOperand, &instr, "it loads from GM or L1 to L0A or L0B, and from GM to L1",
              "%s: from %s to %s", name, space_name(from), space_name(to));
  OPKIT_CHECK(!load.is_transposed || from == Space::L1, IllegalOperand, &instr, "copy to L1 first",
              "%s: fractals are transposed on the way from L1 only", name);
  OPKIT_CHECK(instr.op != Op::LoadData2D || !load.is_transposed || size_bytes(type) == 2, IllegalOperand, &instr,
              "use LoadDataWithTranspose", "%s: ifTranspose takes elements of 16 bits", name);
  OPKIT_CHECK(type != DType::S4 || from == Space::L1, IllegalOperand, &instr, "copy to L1 first",
              "%s: int4b_t loads from L1 only", name);
  OPKIT_CHECK(instr.op != Op::LoadDataWithTranspose || type != DType::S4 || to == Space::L0B, IllegalOperand, &instr,
              nullptr, "%s: int4b_t is transposed on the way to L0B only", name);
  OPKIT_CHECK(load.repeat <= kMaxRepeat, IllegalOperand, &instr, "split the call", "%s: repeatTimes %u is over %u",
              name, load.repeat, kMaxRepeat);
  check_alignment(instr, instr.dst, is_to_cube ? kFractalBytes : kBlockBytes, "dst");
  check_alignment(instr, instr.src[0], kBlockBytes, "src");
}

}  // namespace

void load_fractals_ranges(const Core&, const Instr& instr, RangeCallback callback, void* context) {
  const FractalLoad& load = *instr.load;
  const uint64_t square_bytes = uint64_t{load.fractals} * kFractalBytes;
  for (uint32_t repeat = 0; repeat < load.repeat; ++repeat) {
    callback(context, {1, source_of(instr, repeat), square_bytes, false});
  }
  for (uint32_t repeat = 0; repeat < load.repeat; ++repeat) {
    for (uint32_t fractal = 0; fractal < load.fractals; ++fractal) {
      callback(context, {0, destination_of(instr, repeat, fractal), kFractalBytes, true});
    }
  }
}

void load_fractals_moves(const Instr& instr, MoveCallback callback, void* context) {
  const FractalLoad& load = *instr.load;
  const DType type = instr.src[0].dtype;
  const uint32_t size = size_bytes(type);
  for (uint32_t repeat = 0; repeat < load.repeat; ++repeat) {
    const uint64_t from = source_of(instr, repeat);
    if (!load.is_transposed) {
      callback(context, {from, destination_of(instr, repeat, 0), kFractalBytes});
      continue;
    }
    const uint32_t width = fractal_width(type);
    const uint32_t side = std::max(width, kCubeSide);
    for (uint32_t row = 0; row < side; ++row) {
      for (uint32_t column = 0; column < side; column += type == DType::S4 ? 2 : 1) {
        // Fractals lie one below the other, those of 32 bits side by side.
        const bool is_wide = width < kCubeSide;
        const uint32_t from_fractal = is_wide ? row / width : 0;
        const uint64_t from_element =
            is_wide ? from_fractal * kCubeSide * width + column * width + row % width : column * side + row;
        const uint32_t to_fractal = is_wide ? column / width : row / kCubeSide;
        const uint64_t to_element = is_wide ? row * width + column % width : row % kCubeSide * side + column;
        const uint64_t scale = type == DType::S4 ? 2 : 1;
        callback(context, {from + from_element * size / scale,
                           destination_of(instr, repeat, to_fractal) + to_element * size / scale, size});
      }
    }
  }
}

void execute_load_fractals(Core& core, const Instr& instr) {
  const FractalLoad& load = *instr.load;
  if (load.repeat == 0) return;
  check_load(core, instr);
  const Operand& source = instr.src[0];
  const uint64_t square_bytes = uint64_t{load.fractals} * kFractalBytes;
  for (uint32_t repeat = 0; repeat < load.repeat; ++repeat) {
    const uint64_t from = source_of(instr, repeat);
    check_bounds(core, instr, source, from, square_bytes, false);
    uint8_t* to[4];
    for (uint32_t fractal = 0; fractal < load.fractals; ++fractal) {
      const uint64_t address = destination_of(instr, repeat, fractal);
      check_bounds(core, instr, instr.dst, address, kFractalBytes, true);
      to[fractal] = core.at(instr.dst.space, address);
    }
    const uint8_t* bytes = core.at(source.space, from);
    if (load.is_transposed) {
      transpose_square(source.dtype, bytes, to);
    } else {
      lanes::table().copy_fractal(bytes, to[0]);
    }
  }
}

}  // namespace opkit
