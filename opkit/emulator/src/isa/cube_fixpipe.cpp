// Fixpipe. Source: Ascend C API, matrix computation (ISASI), moving matrices out; quantisation on the way.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/names.h"
#include "isa/atomic_write.h"
#include "isa/cube.h"
#include "isa/lanes/lanes.h"
#include "isa/saturation.h"
#include "isa/table.h"
#include "memory/bounds.h"
#include "opkit/api/half.h"

namespace opkit {
namespace {

constexpr uint32_t kMaxFixpipeNdRows = 8192;
constexpr uint32_t kMaxRows = 65535;
constexpr uint32_t kSplitColumns = 8;  ///< of a column of channel split

/// What a mode reads and writes; `is_b8` is S8 or U8.
struct ModeTypes {
  DType source;
  DType result;
  bool is_b8;
};

ModeTypes types_of(const Instr& instr) {
  switch (instr.fixpipe->quantisation) {
    case Quantisation::None: return {instr.src[0].dtype, instr.src[0].dtype, false};
    case Quantisation::F32ToF16: return {DType::F32, DType::F16, false};
    case Quantisation::F32ToBF16: return {DType::F32, DType::BF16, false};
    case Quantisation::S32ToF16:
    case Quantisation::VS32ToF16: return {DType::S32, DType::F16, false};
    case Quantisation::F32ToB8:
    case Quantisation::VF32ToB8: return {DType::F32, DType::S8, true};
    default: return {DType::S32, DType::S8, true};
  }
}

/// One run of equal pieces: from each block of 16 columns of L0C, `columns` of them go to `address` and on.
struct Piece {
  uint32_t block;         ///< of the source
  uint32_t first_column;  ///< in the block
  uint32_t columns;
  uint64_t address;     ///< of the destination's first row
  uint64_t row_stride;  ///< of the destination
};

/// Calls back for every piece of one matrix, whose destination starts at `start`.
template <class Function>
void for_each_piece(const Instr& instr, uint64_t start, Function&& function) {
  const FixpipeCopy& copy = *instr.fixpipe;
  const uint32_t size = size_bytes(instr.dst.dtype);
  const uint32_t blocks = blocks_of(copy.n, kCubeSide);
  for (uint32_t block = 0; block < blocks; ++block) {
    const uint32_t columns = std::min(kCubeSide, copy.n - block * kCubeSide);
    if (copy.is_nd) {
      function(Piece{block, 0, columns, start + uint64_t{block} * kCubeSide * size, copy.dst_stride});
      continue;
    }
    if (copy.is_channel_split) {
      for (uint32_t first = 0; first < columns; first += kSplitColumns) {
        const uint64_t column = (block * kCubeSide + first) / kSplitColumns;
        function(Piece{block, first, kSplitColumns, start + column * copy.dst_stride, kSplitColumns * size});
      }
      continue;
    }
    if (size > 1) {
      function(Piece{block, 0, kCubeSide, start + block * copy.dst_stride, kCubeSide * size});
      continue;
    }
    // Two blocks of 8-bit elements share a column; an odd last one has a column of its own width.
    const uint64_t column = start + block / 2 * copy.dst_stride;
    const bool is_alone = block % 2 == 0 && block + 1 == blocks;
    function(Piece{block, 0, kCubeSide, column + block % 2 * kCubeSide, is_alone ? kCubeSide : 2 * kCubeSide});
  }
}

/// A quantisation parameter's fields. Source: quantisation on the way, table 1
struct Parameter {
  float scale;
  bool is_shifted;
  uint32_t shift;
  int32_t offset;
  bool is_signed;

  explicit Parameter(uint64_t bits) {
    const uint32_t scale_bits = static_cast<uint32_t>(bits) & 0xffffe000;  // ten bits of mantissa
    std::memcpy(&scale, &scale_bits, sizeof(scale));
    is_shifted = (bits >> 36 & 1) != 0;
    shift = static_cast<uint32_t>(bits >> 32 & 15) + 1;
    offset = static_cast<int32_t>(static_cast<uint32_t>(bits >> 37 & 0x1ff) << 23) >> 23;
    is_signed = (bits >> 46 & 1) != 0;
  }
};

float scaled(const Parameter& parameter, float value, bool has_relu) {
  return value >= 0 ? value * parameter.scale : (has_relu ? 0.0f : value * parameter.scale);
}

float from_integer(const Parameter& parameter, int32_t value) {
  if (!parameter.is_shifted) return static_cast<float>(value);
  return static_cast<float>(std::clamp(value >> parameter.shift, -32768, 32767));
}

uint8_t to_b8(const Parameter& parameter, float value) {
  if (std::isnan(value)) value = 0;  // integers saturate, and a NaN saturates to 0. Source: Fixpipe, constraints
  const int32_t rounded = static_cast<int32_t>(std::nearbyint(std::clamp(value, -256.0f, 255.0f)));
  const int32_t moved = rounded + parameter.offset;
  return static_cast<uint8_t>(parameter.is_signed ? std::clamp(moved, -128, 127) : std::clamp(moved, 0, 255));
}

half to_half(float value) { return half(std::clamp(value, -65504.0f, 65504.0f)); }

Parameter parameter_of(const Instr& instr, uint64_t bits) {
  const Parameter parameter(bits);
  OPKIT_CHECK(parameter.scale == 0 || std::isnormal(parameter.scale), IllegalOperand, &instr,
              "give a float that is neither infinite, NaN nor subnormal",
              "Fixpipe: quantisation parameter 0x%llx multiplies by %g", static_cast<unsigned long long>(bits),
              static_cast<double>(parameter.scale));
  return parameter;
}

/// A parameter for each of the n columns, or one for all. They are read before anything is written: the destination
/// may lie over them.
std::vector<Parameter> read_parameters(const Core& core, const Instr& instr) {
  const FixpipeCopy& copy = *instr.fixpipe;
  std::vector<Parameter> parameters;
  if (copy.quantisation <= Quantisation::F32ToBF16) return {};
  if (!is_vector(copy.quantisation)) return {parameter_of(instr, copy.parameter_bits)};
  const uint8_t* from = core.at(instr.src[1]);
  parameters.reserve(copy.n);
  for (uint32_t column = 0; column < copy.n; ++column) {
    uint64_t bits = 0;
    std::memcpy(&bits, from + column * sizeof(bits), sizeof(bits));
    parameters.push_back(parameter_of(instr, bits));
  }
  return parameters;
}

void apply_relu(DType type, void* values, size_t count) {
  const lanes::Lane relu = lanes::table().elementwise[static_cast<size_t>(Op::Relu)][static_cast<size_t>(type)];
  const void* sources[1] = {values};
  relu(values, sources, nullptr, count);
}

/// `m` rows of 16 columns of L0C in the destination's type; rows lie one behind the other in `out`.
void convert_block(const Core& core, const Instr& instr, const std::vector<Parameter>& parameters, uint32_t block,
                   const uint8_t* from, uint8_t* out) {
  const FixpipeCopy& copy = *instr.fixpipe;
  const size_t columns = std::min(kCubeSide, copy.n - block * kCubeSide);
  const size_t count = size_t{copy.m - 1} * kCubeSide + columns;  // of the last row no more than there is
  const bool is_float = instr.src[0].dtype == DType::F32;
  static thread_local std::vector<float> floats;
  switch (copy.quantisation) {
    case Quantisation::None:
      std::memcpy(out, from, count * sizeof(float));
      if (copy.has_relu) apply_relu(instr.src[0].dtype, out, count);
      return;
    case Quantisation::F32ToF16:
    case Quantisation::F32ToBF16: {
      const void* source[1] = {from};
      if (copy.has_relu) {
        floats.assign(reinterpret_cast<const float*>(from), reinterpret_cast<const float*>(from) + count);
        apply_relu(DType::F32, floats.data(), count);
        source[0] = floats.data();
      }
      constexpr size_t kRint = 1;  // CAST_RINT
      const lanes::Lane cast =
          lanes::table().cast[static_cast<size_t>(instr.dst.dtype)][static_cast<size_t>(DType::F32)][kRint];
      cast(out, source, nullptr, count);
      if (saturates(core, instr.dst.dtype)) saturate_floats(instr.dst.dtype, out, count);
      return;
    }
    default: break;
  }
  const Parameter* of_block = parameters.data() + (parameters.size() > 1 ? block * kCubeSide : 0);
  const bool is_half = instr.dst.dtype == DType::F16;
  for (size_t i = 0; i < count; ++i) {
    // Behind column n the row is not carried out; any parameter does there.
    const Parameter& parameter = of_block[parameters.size() > 1 ? std::min(i % kCubeSide, columns - 1) : 0];
    float value = 0;
    if (is_float) {
      std::memcpy(&value, from + i * 4, 4);
    } else {
      int32_t integer = 0;
      std::memcpy(&integer, from + i * 4, 4);
      value = from_integer(parameter, integer);
    }
    value = scaled(parameter, value, copy.has_relu);
    if (is_half) {
      const half result = to_half(value);
      std::memcpy(out + i * 2, &result, 2);
    } else {
      out[i] = to_b8(parameter, value);
    }
  }
}

void check_sizes(const Instr& instr) {
  const FixpipeCopy& copy = *instr.fixpipe;
  OPKIT_CHECK(copy.n <= kMaxMatrixSize, IllegalOperand, &instr, "split the copy", "Fixpipe: nSize %u is over %u",
              copy.n, kMaxMatrixSize);
  const uint32_t limit = copy.is_nd ? kMaxFixpipeNdRows : kMaxRows;
  OPKIT_CHECK(copy.m <= limit, IllegalOperand, &instr, "split the copy", "Fixpipe: mSize %u is over %u", copy.m, limit);
  const uint32_t multiple = copy.is_channel_split ? kSplitColumns : kCubeSide;
  OPKIT_CHECK(copy.is_nd || copy.n % multiple == 0, IllegalOperand, &instr, "round it up, or write ND",
              "Fixpipe: nSize %u to NZ is not a multiple of %u", copy.n, multiple);
  OPKIT_CHECK(copy.dst_stride != 0, IllegalOperand, &instr, "give the distance of the destination's rows or columns",
              "Fixpipe: dstStride is 0");
  OPKIT_CHECK(copy.unit_flag == 0 || copy.unit_flag == 2 || copy.unit_flag == 3, IllegalOperand, &instr, nullptr,
              "Fixpipe: unitFlag %u is not 0, 2 or 3", copy.unit_flag);
}

void check_fixpipe(const Core& core, const Instr& instr) {
  const FixpipeCopy& copy = *instr.fixpipe;
  check_cube(core, instr, instr.src[0].dtype);
  check_sizes(instr);
  check_place(instr, instr.src[0], Space::L0C, 64, "src");
  const bool is_to_l1 = instr.dst.space == Space::L1;
  OPKIT_CHECK(is_to_l1 || instr.dst.space == Space::GM, IllegalOperand, &instr, "copy to GM or L1",
              "Fixpipe: dst lies in %s", space_name(instr.dst.space));
  check_alignment(instr, instr.dst, kBlockBytes, "dst");
  const ModeTypes types = types_of(instr);
  const bool is_result =
      types.is_b8 ? instr.dst.dtype == DType::S8 || instr.dst.dtype == DType::U8 : instr.dst.dtype == types.result;
  OPKIT_CHECK(instr.src[0].dtype == types.source && is_result, IllegalOperand, &instr,
              "give quantPre the mode from the source's to the destination's type",
              "Fixpipe: quantPre %u does not turn %s into %s", static_cast<unsigned>(copy.quantisation),
              dtype_code(instr.src[0].dtype), dtype_code(instr.dst.dtype));
  OPKIT_CHECK(!is_to_l1 || copy.quantisation != Quantisation::None, IllegalOperand, &instr,
              "cast or quantise, or copy to GM", "Fixpipe: to L1 it carries elements of 8 and 16 bits only");
  const bool is_split_legal = instr.dst.dtype == DType::F32 && !copy.is_nd && !is_to_l1 && copy.unit_flag == 0;
  OPKIT_CHECK(!copy.is_channel_split || is_split_legal, IllegalOperand, &instr, nullptr,
              "Fixpipe: channel split is for float to float in GM, NZ, without unitFlag");
  if (!is_vector(copy.quantisation)) return;
  OPKIT_CHECK(instr.source_count == 2, IllegalOperand, &instr,
              "pass the tensor of parameters, or call SetFixPipeConfig before",
              "Fixpipe: quantPre %u has a parameter for each column", static_cast<unsigned>(copy.quantisation));
  check_alignment(instr, instr.src[1], kBlockBytes, "the quantisation parameters");
  check_bounds(core, instr, instr.src[1], instr.src[1].address, uint64_t{copy.n} * sizeof(uint64_t), false);
}

uint64_t source_of(const Instr& instr, uint32_t matrix, uint32_t block) {
  const FixpipeCopy& copy = *instr.fixpipe;
  return instr.src[0].address + matrix * copy.src_matrix_stride + block * copy.src_stride;
}

uint64_t destination_of(const Instr& instr, uint32_t matrix) {
  return instr.dst.address + matrix * instr.fixpipe->dst_matrix_stride;
}

/// Rows of one piece to their places; into global memory by the core's atomic operation when one is set.
void store_piece(const Core& core, const Instr& instr, const Piece& piece, const uint8_t* rows) {
  const uint32_t size = size_bytes(instr.dst.dtype);
  const uint64_t bytes = uint64_t{piece.columns} * size;
  const uint32_t m = instr.fixpipe->m;
  const bool is_atomic = instr.dst.space == Space::GM && core.atomic_op != AtomicOp::None;
  // One look at the whole extent; row by row only to say which row leaves the tensor, or which bytes are written.
  const uint64_t extent = (m - 1) * piece.row_stride + bytes;
  const bool notes_rows = instr.dst.space == Space::GM && core.launch->raw_writes != nullptr;
  if (notes_rows || !is_in_bounds(core, instr.dst, piece.address, extent, true)) {
    for (uint32_t row = 0; row < m; ++row) {
      check_bounds(core, instr, instr.dst, piece.address + row * piece.row_stride, bytes, true);
    }
  }
  uint8_t* to = core.at(instr.dst.space, piece.address);
  const uint8_t* from = rows + uint64_t{piece.first_column} * size;
  constexpr uint64_t kWholeBytes = kCubeSide * sizeof(float);
  for (uint32_t row = 0; row < m; ++row, to += piece.row_stride, from += uint64_t{kCubeSide} * size) {
    if (is_atomic) {
      atomic_write(core, instr, to, from, bytes);
    } else if (bytes == kWholeBytes) {
      std::memcpy(to, from, kWholeBytes);  // without a call
    } else {
      std::memcpy(to, from, bytes);
    }
  }
}

}  // namespace

void fixpipe_ranges(const Core&, const Instr& instr, RangeCallback callback, void* context) {
  const FixpipeCopy& copy = *instr.fixpipe;
  if (copy.m == 0 || copy.n == 0) return;
  constexpr uint32_t kRowBytes = kCubeSide * sizeof(float);
  for (uint32_t matrix = 0; matrix < copy.matrices; ++matrix) {
    for (uint32_t block = 0; block < blocks_of(copy.n, kCubeSide); ++block) {
      const uint32_t columns = std::min(kCubeSide, copy.n - block * kCubeSide);
      const uint64_t from = source_of(instr, matrix, block);
      if (columns == kCubeSide) {
        callback(context, {1, from, uint64_t{copy.m} * kRowBytes, false});
        continue;
      }
      for (uint32_t row = 0; row < copy.m; ++row) {
        callback(context, {1, from + row * kRowBytes, columns * sizeof(float), false});
      }
    }
  }
  if (instr.source_count > 1) {
    callback(context, {2, instr.src[1].address, uint64_t{copy.n} * sizeof(uint64_t), false});
  }
  const uint32_t size = size_bytes(instr.dst.dtype);
  for (uint32_t matrix = 0; matrix < copy.matrices; ++matrix) {
    // Rows of ND are whole; the blocks that they are made of need not come one by one.
    if (copy.is_nd) {
      for (uint32_t row = 0; row < copy.m; ++row) {
        callback(context, {0, destination_of(instr, matrix) + row * copy.dst_stride, uint64_t{copy.n} * size, true});
      }
      continue;
    }
    for_each_piece(instr, destination_of(instr, matrix), [&](const Piece& piece) {
      for (uint32_t row = 0; row < copy.m; ++row) {
        callback(context, {0, piece.address + row * piece.row_stride, uint64_t{piece.columns} * size, true});
      }
    });
  }
}

void execute_fixpipe(Core& core, const Instr& instr) {
  const FixpipeCopy& copy = *instr.fixpipe;
  if (copy.m == 0 || copy.n == 0 || copy.matrices == 0) return;
  check_fixpipe(core, instr);
  static thread_local std::vector<uint8_t> buffer;
  const bool is_copy = copy.quantisation == Quantisation::None && !copy.has_relu;
  if (!is_copy) buffer.resize(size_t{copy.m} * kCubeSide * sizeof(float));
  const std::vector<Parameter> parameters = read_parameters(core, instr);
  for (uint32_t matrix = 0; matrix < copy.matrices; ++matrix) {
    uint32_t converted = ~0u;
    const uint8_t* rows = nullptr;
    for_each_piece(instr, destination_of(instr, matrix), [&](const Piece& piece) {
      if (piece.block != converted) {
        const uint64_t from = source_of(instr, matrix, piece.block);
        const uint64_t bytes = (uint64_t{copy.m} - 1) * kCubeSide * sizeof(float) + piece.columns * sizeof(float);
        check_bounds(core, instr, instr.src[0], from, bytes, false);
        if (copy.unit_flag != 0) follow_unit_flags(core, instr, from, bytes, copy.unit_flag);
        rows = core.at(Space::L0C, from);
        if (!is_copy) {
          convert_block(core, instr, parameters, piece.block, rows, buffer.data());
          rows = buffer.data();
        }
        converted = piece.block;
      }
      store_piece(core, instr, piece, rows);
    });
  }
}

}  // namespace opkit
