// TransDataTo5HD and Transpose. Source: Ascend C API, data layout conversion.
#include <cstring>

#include "isa/execute.h"
#include "isa/table.h"

namespace opkit {
namespace {

constexpr uint32_t kSide = 16;  // length of an address list, side of a transposed matrix

enum class Type : uint8_t { None = 0, Nd2NdB16 = 10, Nchw2Nhwc = 11, Nhwc2Nchw = 12 };  // TransposeType

/// The sizes that Transpose's header packs into scalar_bits[0].
struct Sizes {
  uint64_t n, c, hw;
};

Sizes sizes_of(const Instr& instr) {
  const uint64_t bits = instr.scalar_bits[0];
  return {bits >> 48, bits >> 32 & 0xffff, (bits >> 16 & 0xffff) * (bits & 0xffff)};
}

/// Bytes between two repeats of one side.
uint64_t step_bytes(const Operand& side) { return uint64_t{side.repeat_stride} * kBlockBytes; }

/// Bit 0 of mode: int8_t results go to the high half of a block; bit 1: sources lie in the high half.
uint32_t half_offset(const Instr& instr, bool is_dst) {
  if (size_bytes(instr.dst.dtype) != 1) return 0;
  return (instr.mode >> (is_dst ? 0 : 1) & 1) != 0 ? kBlockBytes / 2 : 0;
}

template <typename T>
void transpose_blocks(const uint8_t (&from)[kSide][kBlockBytes], uint8_t (&to)[kSide][kBlockBytes]) {
  // As many columns as a block has elements; each gives 16 elements, and those of 32 bits fill two blocks.
  constexpr uint32_t kColumns = sizeof(T) == 4 ? 8 : 16;
  T values[kSide][kBlockBytes / sizeof(T)];
  T columns[kColumns][kSide];
  std::memcpy(values, from, sizeof(values));
  for (uint32_t column = 0; column < kColumns; ++column) {
    for (uint32_t row = 0; row < kSide; ++row) columns[column][row] = values[row][column];
  }
  constexpr uint32_t kBytes = kColumns * kSide * sizeof(T) / kSide;
  for (uint32_t block = 0; block < kSide; ++block) {
    std::memcpy(to[block], reinterpret_cast<const uint8_t*>(columns) + block * kBytes, kBytes);
  }
}

}  // namespace

VectorUse trans_data_use(const Core&, const Instr& instr, uint32_t item) {
  VectorUse use;
  const bool is_dst = item < kSide;
  const Operand& side = is_dst ? instr.dst : instr.src[0];
  use.shape = whole_shape(instr.repeat, size_bytes(instr.dst.dtype));
  OperandUse& block = use.uses.add(instr.list[item], is_dst ? 0 : 1, is_dst);
  block.layout = Layout::Repeats;
  block.stride_bytes = step_bytes(side);
  block.bytes = size_bytes(instr.dst.dtype) == 1 ? kBlockBytes / 2 : kBlockBytes;
  block.alignment = size_bytes(instr.dst.dtype) == 1 ? kBlockBytes / 2 : kBlockBytes;
  return use;
}

void execute_trans_data(Core& core, const Instr& instr) {
  if (instr.repeat == 0) return;
  OPKIT_CHECK(instr.repeat <= kMaxRepeat, IllegalOperand, &instr, "split the call",
              "TransDataTo5HD: repeat times %u is over %u", instr.repeat, kMaxRepeat);
  // With a single repeat the strides already apply to it; and 8-bit elements use half a block.
  // Source: TransDataTo5HD, repeatTimes, dstHighHalf, srcHighHalf
  Operand moved[2 * kSide];
  Instr placed = instr;
  placed.list = moved;
  for (uint32_t item = 0; item < 2 * kSide; ++item) {
    const bool is_dst = item < kSide;
    moved[item] = instr.list[item];
    OPKIT_CHECK(moved[item].address % kBlockBytes == 0, Misaligned, &instr, "align the tensor to 32 bytes",
                "TransDataTo5HD: %s %u starts at byte %llu, not at a multiple of 32", is_dst ? "dst" : "src",
                item % kSide, static_cast<unsigned long long>(moved[item].address));
    moved[item].address += half_offset(instr, is_dst);
    if (instr.repeat == 1) moved[item].address += step_bytes(is_dst ? instr.dst : instr.src[0]);
    const VectorUse use = trans_data_use(core, placed, item);
    check_operands(core, instr, use.shape, use.uses);
  }
  const uint32_t element_bytes = size_bytes(instr.dst.dtype);
  const uint32_t block_bytes = element_bytes == 1 ? kBlockBytes / 2 : kBlockBytes;
  uint8_t from[kSide][kBlockBytes] = {};
  uint8_t to[kSide][kBlockBytes];
  for (uint32_t repeat = 0; repeat < instr.repeat; ++repeat) {
    for (uint32_t i = 0; i < kSide; ++i) {
      std::memcpy(from[i], core.at(moved[kSide + i]) + repeat * step_bytes(instr.src[0]), block_bytes);
    }
    if (element_bytes == 1) transpose_blocks<uint8_t>(from, to);
    if (element_bytes == 2) transpose_blocks<uint16_t>(from, to);
    if (element_bytes == 4) transpose_blocks<uint32_t>(from, to);
    for (uint32_t i = 0; i < kSide; ++i) {
      std::memcpy(core.at(moved[i]) + repeat * step_bytes(instr.dst), to[i], block_bytes);
    }
  }
}

VectorUse transpose_use(const Core& core, const Instr& instr) {
  VectorUse use;
  const uint32_t element_bytes = size_bytes(instr.dst.dtype);
  const auto type = static_cast<Type>(instr.mode);
  const Sizes sizes = sizes_of(instr);
  uint64_t bytes = sizes.n * sizes.c * sizes.hw * element_bytes;
  if (type == Type::Nd2NdB16) bytes = kSide * kSide * sizeof(uint16_t);
  if (bytes == 0 || type == Type::None) return use;
  use.shape = whole_shape(1, element_bytes);
  use.uses.add_run(instr.dst, 0, true, bytes);
  use.uses.add_run(instr.src[0], 1, false, bytes);
  if (type == Type::Nd2NdB16 || !core.chip->traits().has_transpose_work) return use;
  // The work tensor's least size. Source: Transpose, table of sharedTmpBuffer
  const uint64_t tile = (element_bytes == 1 ? 32 : 16) * uint64_t{kBlockBytes};
  use.uses.add_run(instr.src[1], 2, true, (type == Type::Nchw2Nhwc ? sizes.c + 2 : 2 * sizes.c + 1) * tile);
  return use;
}

namespace {

/// `groups` matrices of `rows` by `columns` elements, each transposed.
template <typename T>
void transpose_groups(const uint8_t* from, uint8_t* to, uint64_t groups, uint64_t rows, uint64_t columns) {
  constexpr uint64_t kTile = 16;  // rows whose elements of a column are written together
  const uint64_t matrix = rows * columns * sizeof(T);
  for (uint64_t group = 0; group < groups; ++group, from += matrix, to += matrix) {
    for (uint64_t first = 0; first < rows; first += kTile) {
      const uint64_t last = first + kTile < rows ? first + kTile : rows;
      for (uint64_t column = 0; column < columns; ++column) {
        for (uint64_t row = first; row < last; ++row) {
          std::memcpy(to + (column * rows + row) * sizeof(T), from + (row * columns + column) * sizeof(T), sizeof(T));
        }
      }
    }
  }
}

}  // namespace

void execute_transpose(Core& core, const Instr& instr) {
  const auto type = static_cast<Type>(instr.mode);
  const bool is_known =
      type == Type::None || type == Type::Nd2NdB16 || type == Type::Nchw2Nhwc || type == Type::Nhwc2Nchw;
  OPKIT_CHECK(is_known, IllegalOperand, &instr,
              "TRANSPOSE_ND2ND_B16, TRANSPOSE_NCHW2NHWC and TRANSPOSE_NHWC2NCHW are the ones that exist",
              "Transpose: TransposeType %u is not supported by the chip", instr.mode);
  const uint32_t element_bytes = size_bytes(instr.dst.dtype);
  const Sizes sizes = sizes_of(instr);
  if (type == Type::Nd2NdB16) {
    OPKIT_CHECK(element_bytes == 2, IllegalOperand, &instr, "use a 16-bit type",
                "Transpose: a 16 x 16 matrix has elements of 16 bits");
    OPKIT_CHECK((instr.scalar_bits[0] & 0xffffffff) == (kSide << 16 | kSide), IllegalOperand, &instr, nullptr,
                "Transpose: hSize and wSize of TRANSPOSE_ND2ND_B16 are 16 each");
  } else {
    OPKIT_CHECK(sizes.c <= 4095 && sizes.hw <= 4095, IllegalOperand, &instr, "split the call",
                "Transpose: cSize %llu or hSize * wSize %llu is over 4095", static_cast<unsigned long long>(sizes.c),
                static_cast<unsigned long long>(sizes.hw));
    OPKIT_CHECK(sizes.hw * element_bytes % kBlockBytes == 0, Misaligned, &instr, "pad the plane to 32 bytes",
                "Transpose: hSize * wSize is %llu bytes, not a multiple of 32",
                static_cast<unsigned long long>(sizes.hw * element_bytes));
  }
  const VectorUse use = transpose_use(core, instr);
  if (use.shape.repeat == 0) return;
  check_operands(core, instr, use.shape, use.uses);
  const uint8_t* from = core.at(instr.src[0]);
  uint8_t* to = core.at(instr.dst);
  if (type == Type::Nd2NdB16) {
    uint8_t matrix[kSide][kBlockBytes];
    uint8_t transposed[kSide][kBlockBytes];
    std::memcpy(matrix, from, sizeof(matrix));
    transpose_blocks<uint16_t>(matrix, transposed);
    std::memcpy(to, transposed, sizeof(transposed));
    return;
  }
  const uint64_t bytes = use.uses.items[0].bytes;
  OPKIT_CHECK(to + bytes <= from || from + bytes <= to, IllegalOperand, &instr, "use another destination",
              "Transpose: the destination overlaps the source");
  const uint64_t rows = type == Type::Nchw2Nhwc ? sizes.c : sizes.hw;
  const uint64_t columns = type == Type::Nchw2Nhwc ? sizes.hw : sizes.c;
  if (element_bytes == 1) transpose_groups<uint8_t>(from, to, sizes.n, rows, columns);
  if (element_bytes == 2) transpose_groups<uint16_t>(from, to, sizes.n, rows, columns);
  if (element_bytes == 4) transpose_groups<uint32_t>(from, to, sizes.n, rows, columns);
}

}  // namespace opkit
