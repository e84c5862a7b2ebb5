// LoadData3D: windows of an image as rows of a matrix. Source: Ascend C API, matrix computation (ISASI), LoadData of
// convolutions, v2.
//
// The matrix has a row for each place of the filter (by rows of the image) and a column for each element under it, in
// the order c1, filter row, filter column, c0. It is cut into tiles of 16 rows by 32 bytes.
#include <algorithm>
#include <cstring>

#include "isa/cube.h"
#include "isa/lanes/lanes.h"
#include "isa/table.h"
#include "memory/bounds.h"

namespace opkit {
namespace {

constexpr uint64_t kPadding = kNoSource;  ///< instead of a source address

/// Numbers that follow from an instruction alone.
struct Geometry {
  const Instr& instr;
  const ImageLoad& image;
  uint32_t element_bits;
  uint32_t width;     ///< elements of 32 bytes
  uint32_t places_w;  ///< of the filter
  uint32_t places_h;
  uint32_t row_tiles;  ///< of one repeat
  uint32_t column_tiles;

  explicit Geometry(const Instr& instruction) : instr(instruction), image(*instruction.image) {
    const DType type = instr.src[0].dtype;
    element_bits = type == DType::S4 ? 4 : size_bytes(type) * 8;
    width = fractal_width(type);
    const auto places = [](uint32_t size, uint32_t filter, uint32_t dilation, uint32_t stride) {
      const uint32_t reach = (filter - 1) * dilation + 1;
      return size < reach ? 0 : (size - reach) / std::max(stride, 1u) + 1;
    };
    places_w =
        places(image.width + image.padding[0] + image.padding[1], image.filter_w, image.dilation_w, image.stride_w);
    places_h =
        places(image.height + image.padding[2] + image.padding[3], image.filter_h, image.dilation_h, image.stride_h);
    row_tiles = blocks_of(image.rows, kCubeSide);
    column_tiles = blocks_of(image.columns, width);
  }

  uint32_t all_row_tiles() const { return row_tiles * (image.repeats_columns ? 1 : image.repeat); }
  uint32_t all_column_tiles() const { return column_tiles * (image.repeats_columns ? image.repeat : 1); }

  /// The row of the whole matrix at a row of a tile; ~0 behind what is loaded.
  uint32_t row_at(uint32_t tile, uint32_t row) const {
    const uint32_t repeat = tile / row_tiles;
    const uint32_t inside = tile % row_tiles * kCubeSide + row;
    return inside >= image.rows ? ~0u : image.first_row + inside + repeat * image.repeat_step;
  }
  uint32_t column_at(uint32_t tile) const {
    return image.first_column + tile % column_tiles * width + tile / column_tiles * image.repeat_step;
  }

  /// Bytes of the element at a row and a column of the whole matrix, in L1; kPadding outside the image.
  uint64_t source_of(uint32_t row, uint32_t column) const {
    if (row >= places_w * places_h) return kPadding;
    const uint32_t taps = image.filter_w * image.filter_h;
    const uint32_t plane = column / (width * taps);
    // The last channels lie closer together where they do not fill 32 bytes.
    const uint32_t group = std::min(width, image.channels - std::min(image.channels, plane * width));
    if (group == 0) return kPadding;
    const uint32_t rest = column - plane * width * taps;
    const uint32_t tap = rest / group;
    if (tap >= taps) return kPadding;
    const int64_t y =
        int64_t{row / places_w} * image.stride_h + tap / image.filter_w * image.dilation_h - image.padding[2];
    const int64_t x =
        int64_t{row % places_w} * image.stride_w + tap % image.filter_w * image.dilation_w - image.padding[0];
    if (y < 0 || x < 0 || y >= image.height || x >= image.width) return kPadding;
    const uint64_t pixel = static_cast<uint64_t>(y) * image.width + static_cast<uint64_t>(x);
    const uint64_t elements = uint64_t{plane} * width * image.width * image.height + pixel * group + rest % group;
    const uint64_t address = instr.src[0].address + elements * element_bits / 8;
    return image.boundary == 0 ? address : address % image.boundary;
  }

  bool is_whole_groups() const { return image.channels % width == 0; }
};

bool is_transposed(const Geometry& geometry) {
  return geometry.image.is_transposed || geometry.instr.dst.space == Space::L0B;
}

/// Where a part of a tile goes: 16 or 8 rows of 32 bytes of its transposed form, or the tile as it is.
uint64_t destination_of(const Geometry& geometry, uint32_t row_tile, uint32_t column_tile, uint32_t half) {
  const uint64_t rows = geometry.all_row_tiles();
  const uint64_t columns = geometry.all_column_tiles();
  const bool is_right = geometry.instr.dst.space == Space::L0B;
  const uint64_t base = geometry.instr.dst.address;
  if (!is_transposed(geometry)) return base + (row_tile * columns + column_tile) * kFractalBytes;
  if (geometry.element_bits == 16) {
    const uint64_t fractal = is_right ? row_tile * columns + column_tile : column_tile * rows + row_tile;
    return base + fractal * kFractalBytes;
  }
  // Of 32 bits a transposed fractal has 16 columns of 8 rows: each tile gives half of two fractals.
  const uint64_t pairs = (columns + 1) / 2;
  const uint64_t fractal =
      is_right ? (2 * row_tile + half) * pairs + column_tile / 2 : column_tile / 2 * 2 * rows + 2 * row_tile + half;
  return base + fractal * kFractalBytes + column_tile % 2 * (kFractalBytes / 2);
}

/// Parts that destination_of knows of a tile, and bytes of each.
uint32_t parts_of(const Geometry& geometry) { return is_transposed(geometry) && geometry.element_bits == 32 ? 2 : 1; }

void read_block(const Core& core, const Geometry& geometry, uint32_t row, uint32_t column, uint8_t* to) {
  const Operand& source = geometry.instr.src[0];
  if (row != ~0u && geometry.is_whole_groups()) {
    const uint64_t from = geometry.source_of(row, column);
    if (from == kPadding) {
      const uint32_t size = geometry.element_bits / 8;
      const uint32_t step = std::max(size, 1u);
      for (uint32_t at = 0; at < kBlockBytes; at += step) std::memcpy(to + at, &geometry.image.padding_bits, step);
      return;
    }
    check_bounds(core, geometry.instr, source, from, kBlockBytes, false);
    std::memcpy(to, core.at(source.space, from), kBlockBytes);
    return;
  }
  std::memset(to, 0, kBlockBytes);
  if (row == ~0u) return;
  const uint32_t size = geometry.element_bits / 8;
  for (uint32_t i = 0; i < geometry.width; ++i) {
    const uint64_t from = geometry.source_of(row, column + i);
    if (from == kPadding) {
      std::memcpy(to + i * size, &geometry.image.padding_bits, size);
      continue;
    }
    check_bounds(core, geometry.instr, source, from, size, false);
    std::memcpy(to + i * size, core.at(source.space, from), size);
  }
}

void write_tile(const Core& core, const Geometry& geometry, uint32_t row_tile, uint32_t column_tile,
                const uint8_t* tile) {
  const Operand& dst = geometry.instr.dst;
  const uint32_t parts = parts_of(geometry);
  for (uint32_t half = 0; half < parts; ++half) {
    const uint64_t address = destination_of(geometry, row_tile, column_tile, half);
    check_bounds(core, geometry.instr, dst, address, kFractalBytes / parts, true);
    uint8_t* to = core.at(dst.space, address);
    if (!is_transposed(geometry)) {
      std::memcpy(to, tile, kFractalBytes);
    } else if (parts == 1) {
      lanes::table().transpose_fractal(tile, to);
    } else {
      uint32_t words[kCubeSide][8];
      uint32_t turned[8][8];
      std::memcpy(words, tile, sizeof(words));
      for (uint32_t row = 0; row < 8; ++row) {
        for (uint32_t column = 0; column < 8; ++column) turned[column][row] = words[half * 8 + row][column];
      }
      std::memcpy(to, turned, sizeof(turned));
    }
  }
}

void check_image(const Core& core, const Instr& instr) {
  const ImageLoad& image = *instr.image;
  const DType type = instr.src[0].dtype;
  check_cube(core, instr, type);
  const bool is_right = instr.dst.space == Space::L0B;
  OPKIT_CHECK(instr.src[0].space == Space::L1 && (is_right || instr.dst.space == Space::L0A), IllegalOperand, &instr,
              "it loads from L1 to L0A or L0B", "LoadData3D: from %s to %s", space_name(instr.src[0].space),
              space_name(instr.dst.space));
  const bool is_turned = is_right || image.is_transposed;
  const bool can_turn = type != DType::S4 && size_bytes(type) > 1;
  OPKIT_CHECK(!is_turned || can_turn, IllegalOperand, &instr, "use LoadDataWithTranspose",
              "LoadData3D: elements of 4 and 8 bits are not transposed, and L0B takes the transposed matrix");
  OPKIT_CHECK(type != DType::S4 || image.channels % fractal_width(type) == 0, Unimplemented, &instr,
              "give a multiple of 64 channels", "LoadData3D of int4b_t with %u channels", image.channels);
  OPKIT_CHECK(image.boundary == 0 || image.boundary >= 1024, Unspecified, &instr, "set 1024 bytes or more, or 0",
              "LoadData3D: SetLoadDataBoundary was given %u bytes", image.boundary);
  check_alignment(instr, instr.dst, kFractalBytes, "dst");
  check_alignment(instr, instr.src[0], kBlockBytes, "src");
}

bool is_empty(const ImageLoad& image) {
  return image.height == 0 || image.width == 0 || image.channels == 0 || image.rows == 0 || image.columns == 0 ||
         image.filter_w == 0 || image.filter_h == 0 || image.repeat == 0;
}

/// Calls back with the row and column of every run of bytes of a tile, where it comes from and its size: a data block
/// where all channels of a pixel lie together, else an element.
template <class Function>
void for_each_piece(const Geometry& geometry, uint32_t row_tile, uint32_t column_tile, bool is_by_element,
                    Function&& function) {
  const bool is_whole = !is_by_element && geometry.is_whole_groups();
  const uint32_t step = is_whole ? geometry.width : 1;
  const uint32_t bytes = is_whole ? kBlockBytes : geometry.element_bits / 8;
  const uint32_t column = geometry.column_at(column_tile);
  for (uint32_t row = 0; row < kCubeSide; ++row) {
    const uint32_t place = geometry.row_at(row_tile, row);
    for (uint32_t i = 0; i < geometry.width; i += step) {
      function(row, i, place == ~0u ? kPadding : geometry.source_of(place, column + i), bytes);
    }
  }
}

template <class Function>
void for_each_tile(const Geometry& geometry, Function&& function) {
  for (uint32_t row = 0; row < geometry.all_row_tiles(); ++row) {
    for (uint32_t column = 0; column < geometry.all_column_tiles(); ++column) function(row, column);
  }
}

}  // namespace

void load_image_ranges(const Core&, const Instr& instr, RangeCallback callback, void* context) {
  if (is_empty(*instr.image)) return;
  const Geometry geometry(instr);
  for_each_tile(geometry, [&](uint32_t row_tile, uint32_t column_tile) {
    for_each_piece(geometry, row_tile, column_tile, false, [&](uint32_t, uint32_t, uint64_t from, uint32_t bytes) {
      if (from != kPadding) callback(context, {1, from, bytes, false});
    });
  });
  const uint32_t parts = parts_of(geometry);
  for_each_tile(geometry, [&](uint32_t row_tile, uint32_t column_tile) {
    for (uint32_t half = 0; half < parts; ++half) {
      const uint64_t address = destination_of(geometry, row_tile, column_tile, half);
      callback(context, {0, address, kFractalBytes / parts, true});
    }
  });
}

void load_image_moves(const Instr& instr, MoveCallback callback, void* context) {
  if (is_empty(*instr.image)) return;
  const Geometry geometry(instr);
  const bool is_turned = is_transposed(geometry);
  const uint32_t size = geometry.element_bits / 8;
  for_each_tile(geometry, [&](uint32_t row_tile, uint32_t column_tile) {
    for_each_piece(geometry, row_tile, column_tile, is_turned,
                   [&](uint32_t row, uint32_t column, uint64_t from, uint32_t bytes) {
                     const uint32_t rows = is_turned ? kCubeSide / parts_of(geometry) : kCubeSide;
                     const uint64_t tile = destination_of(geometry, row_tile, column_tile, row / rows);
                     const uint64_t at =
                         is_turned ? (uint64_t{column} * rows + row % rows) * size : row * kBlockBytes + column * size;
                     callback(context, {from, tile + at, bytes});
                   });
  });
}

void execute_load_image(Core& core, const Instr& instr) {
  const ImageLoad& image = *instr.image;
  if (is_empty(image)) return;
  check_image(core, instr);
  const Geometry geometry(instr);
  // A filter of one pixel that visits every pixel leaves rows as they lie: a tile is one run of bytes.
  const bool is_plain = image.filter_w == 1 && image.filter_h == 1 && image.stride_w == 1 && image.stride_h == 1 &&
                        (image.padding[0] | image.padding[1] | image.padding[2] | image.padding[3]) == 0 &&
                        image.boundary == 0 && geometry.is_whole_groups();
  for_each_tile(geometry, [&](uint32_t row_tile, uint32_t column_tile) {
    const uint32_t last = geometry.row_at(row_tile, kCubeSide - 1);
    const uint32_t column = geometry.column_at(column_tile);
    if (is_plain && last != ~0u && last < geometry.places_w * geometry.places_h && column < image.channels) {
      const uint64_t from = geometry.source_of(geometry.row_at(row_tile, 0), column);
      check_bounds(core, instr, instr.src[0], from, kFractalBytes, false);
      return write_tile(core, geometry, row_tile, column_tile, core.at(Space::L1, from));
    }
    uint8_t tile[kFractalBytes];
    for (uint32_t row = 0; row < kCubeSide; ++row) {
      read_block(core, geometry, geometry.row_at(row_tile, row), column, tile + row * kBlockBytes);
    }
    write_tile(core, geometry, row_tile, column_tile, tile);
  });
}

}  // namespace opkit
