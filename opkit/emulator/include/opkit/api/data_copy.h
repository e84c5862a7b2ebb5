/// DataCopy and DataCopyPad. Source: Ascend C API, memory vector compute, data movement.
#pragma once

#include "opkit/api/tensor.h"

namespace opkit {

/// A padding value of a tensor's type; of int4b_t both elements of a byte.
template <typename T, typename U>
constexpr T padding_of(U value) {
  if constexpr (std::is_same_v<T, AscendC::int4b_t>) {
    return T{static_cast<uint8_t>((static_cast<uint32_t>(value) & 0xF) * 0x11)};
  } else {
    return static_cast<T>(value);
  }
}

/// A field of 16 bits that remembers what it was given: a larger number loses its high bits without a word.
class NarrowField {
 public:
  template <typename T>
  explicit constexpr NarrowField(const T& given)
      : value_(static_cast<uint16_t>(given)),
        lost_(static_cast<uint64_t>(given) >> 63 != 0 ? 0 : static_cast<uint32_t>(static_cast<uint64_t>(given) >> 16)) {
  }
  template <typename T>
  constexpr NarrowField& operator=(const T& given) {
    return *this = NarrowField(given);
  }
  constexpr operator uint16_t&() { return value_; }              // NOLINT(google-explicit-constructor)
  constexpr operator const uint16_t&() const { return value_; }  // NOLINT(google-explicit-constructor)

  /// What it was given, where that is more than it holds; 0 elsewhere.
  constexpr uint64_t lost_from() const { return lost_ == 0 ? 0 : (uint64_t{lost_} << 16) + value_; }

 private:
  uint16_t value_;
  uint32_t lost_;  ///< the bits above
};

}  // namespace opkit

namespace AscendC {

/// Lengths and gaps in data blocks of 32 bytes.
struct DataCopyParams {
  uint16_t blockCount = 1;
  opkit::NarrowField blockLen{0};
  union {
    uint16_t srcGap;
    uint16_t srcStride;
  };
  union {
    uint16_t dstGap;
    uint16_t dstStride;
  };
  DataCopyParams() : srcGap(0), dstGap(0) {}
  template <typename Length>
  DataCopyParams(uint16_t count, const Length& length, uint16_t source_gap, uint16_t destination_gap)
      : blockCount(count), blockLen(length), srcGap(source_gap), dstGap(destination_gap) {}
};

/// For DataCopyPad: lengths and gaps in bytes on the GM side, gaps in data blocks on the UB side.
struct DataCopyExtParams {
  uint16_t blockCount = 1;
  uint32_t blockLen = 0;
  uint32_t srcStride = 0;
  uint32_t dstStride = 0;
  uint32_t rsv = 0;
  DataCopyExtParams() = default;
  DataCopyExtParams(uint16_t count, uint32_t length, uint32_t source_stride, uint32_t destination_stride,
                    uint32_t reserved)
      : blockCount(count), blockLen(length), srcStride(source_stride), dstStride(destination_stride), rsv(reserved) {}
};

template <typename T>
struct DataCopyPadExtParams {
  bool isPad = false;
  uint8_t leftPadding = 0;
  uint8_t rightPadding = 0;
  T paddingValue = {};
  DataCopyPadExtParams() = default;
  template <typename U>
  DataCopyPadExtParams(bool is_padded, uint8_t left, uint8_t right, U value)
      : isPad(is_padded), leftPadding(left), rightPadding(right), paddingValue(opkit::padding_of<T>(value)) {}
};
template <typename T>
DataCopyPadExtParams(bool, uint8_t, uint8_t, T) -> DataCopyPadExtParams<T>;

/// The older form, whose padding value is 64 bits of any type.
struct DataCopyPadParams {
  bool isPad = false;
  uint8_t leftPadding = 0;
  uint8_t rightPadding = 0;
  uint64_t paddingValue = 0;
  DataCopyPadParams() = default;
  DataCopyPadParams(bool is_padded, uint8_t left, uint8_t right, uint64_t value)
      : isPad(is_padded), leftPadding(left), rightPadding(right), paddingValue(value) {}
};

}  // namespace AscendC

namespace opkit {

constexpr Pipe copy_pipe(Space destination, Space source) {
  if (source == Space::GM) return Pipe::MTE2;
  if (destination == Space::GM) return Pipe::MTE3;
  if (destination == Space::UB && (source == Space::UB || source == Space::L0C)) return Pipe::V;
  if (destination == Space::FB) return Pipe::FIX;
  return source == Space::L1 ? Pipe::MTE1 : Pipe::MTE3;
}

inline void issue_copy(Op op, const Operand& destination, const Operand& source, const CopyShape& shape, Where where) {
  Instr instr;
  instr.op = op;
  instr.pipe = copy_pipe(destination.space, source.space);
  instr.dst = destination;
  instr.src[0] = source;
  instr.source_count = 1;
  instr.copy = shape;
  instr.where = where;
  issue(instr);
}

/// Whole data blocks only: the hardware rounds the length down.
template <typename T>
constexpr CopyShape contiguous_copy(uint32_t count) {
  CopyShape shape;
  const uint64_t asked = bytes_of<T>(count);
  shape.burst_bytes = static_cast<uint32_t>(asked) / kBlockBytes * kBlockBytes;
  if (asked % kBlockBytes != 0) shape.asked_bytes = asked;
  return shape;
}

/// What blockLen and dstGap count in.
constexpr uint32_t copy_unit(Space destination) {
  return destination == Space::BT ? 64 : (destination == Space::FB ? 128 : kBlockBytes);
}

inline CopyShape block_copy(const AscendC::DataCopyParams& params, Space destination) {
  const uint32_t unit = copy_unit(destination);
  // To the fixpipe buffer the gaps run from start to start. Source: DataCopy, L1 to fixpipe buffer, table 3
  const bool is_from_start = destination == Space::FB;
  CopyShape shape;
  shape.burst_count = params.blockCount;
  shape.burst_bytes = params.blockLen * unit;
  shape.asked_bytes = params.blockLen.lost_from() * unit;
  shape.src_stride = (is_from_start ? 0 : shape.burst_bytes) + uint64_t{params.srcGap} * kBlockBytes;
  shape.dst_stride = (is_from_start ? 0 : shape.burst_bytes) + uint64_t{params.dstGap} * unit;
  return shape;
}

inline AscendC::DataCopyExtParams extended(const AscendC::DataCopyParams& params) {
  return {params.blockCount, params.blockLen, params.srcStride, params.dstStride, 0};
}

constexpr uint64_t round_up_to_block(uint64_t bytes) { return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes; }

/// From GM to UB.
template <typename T>
inline CopyShape padded_copy(const AscendC::DataCopyExtParams& params,
                             const AscendC::DataCopyPadExtParams<T>& padding) {
  CopyShape shape;
  shape.burst_count = params.blockCount;
  shape.burst_bytes = params.blockLen;
  shape.left_padding = padding.leftPadding;
  shape.right_padding = padding.rightPadding;
  shape.is_padded = true;
  shape.has_pad_value = padding.isPad;
  shape.pad_value_bits = bits_of(padding.paddingValue);
  shape.src_stride = uint64_t{params.blockLen} + params.srcStride;
  const uint64_t row_bytes = params.blockLen + (padding.leftPadding + padding.rightPadding) * sizeof(T);
  shape.dst_stride = round_up_to_block(row_bytes) + uint64_t{params.dstStride} * kBlockBytes;
  return shape;
}

/// From UB to GM.
inline CopyShape unpadded_copy(const AscendC::DataCopyExtParams& params) {
  CopyShape shape;
  shape.burst_count = params.blockCount;
  shape.burst_bytes = params.blockLen;
  shape.is_padded = true;
  shape.src_stride = round_up_to_block(params.blockLen) + uint64_t{params.srcStride} * kBlockBytes;
  shape.dst_stride = uint64_t{params.blockLen} + params.dstStride;
  return shape;
}

}  // namespace opkit

namespace AscendC {

template <typename T>
inline void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, uint32_t count,
                     opkit::Where where = opkit::Where::here()) {
  opkit::issue_copy(opkit::Op::DataCopy, dst.operand(), src.operand(), opkit::contiguous_copy<T>(count), where);
}
template <typename T>
inline void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, uint32_t count,
                     opkit::Where where = opkit::Where::here()) {
  opkit::issue_copy(opkit::Op::DataCopy, dst.operand(), src.operand(), opkit::contiguous_copy<T>(count), where);
}
template <typename T>
inline void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint32_t count,
                     opkit::Where where = opkit::Where::here()) {
  opkit::issue_copy(opkit::Op::DataCopy, dst.operand(), src.operand(), opkit::contiguous_copy<T>(count), where);
}
template <typename T>
inline void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyParams& params,
                     opkit::Where where = opkit::Where::here()) {
  opkit::issue_copy(opkit::Op::DataCopy, dst.operand(), src.operand(), opkit::block_copy(params, dst.operand().space),
                    where);
}
template <typename T>
inline void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& params,
                     opkit::Where where = opkit::Where::here()) {
  opkit::issue_copy(opkit::Op::DataCopy, dst.operand(), src.operand(), opkit::block_copy(params, dst.operand().space),
                    where);
}
template <typename T>
inline void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& params,
                     opkit::Where where = opkit::Where::here()) {
  opkit::issue_copy(opkit::Op::DataCopy, dst.operand(), src.operand(), opkit::block_copy(params, dst.operand().space),
                    where);
}
/// C1 to C2: a half bias becomes a float one. blockLen counts what is read. Of int32_t and float the document lists
/// both on both sides, and says of no pair what becomes of the value: such a call is refused where it is reached.
template <typename T, typename U>
inline void DataCopy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const DataCopyParams& params,
                     opkit::Where where = opkit::Where::here()) {
  if constexpr (std::is_same<T, U>::value) {
    DataCopy<T>(dst, src, params, where);
  } else {
    constexpr bool kIsBias = std::is_same<T, float>::value || std::is_same<T, int32_t>::value;
    constexpr bool kIsRead =
        std::is_same<U, half>::value || std::is_same<U, float>::value || std::is_same<U, int32_t>::value;
    static_assert(kIsBias && kIsRead,
                  "DataCopy from C1 to C2 reads half, int32_t or float, and writes int32_t or float");
    if constexpr (std::is_same<T, float>::value && std::is_same<U, half>::value) {
      opkit::CopyShape shape = opkit::block_copy(params, dst.operand().space);
      shape.dst_stride += shape.burst_bytes;
      opkit::issue_copy(opkit::Op::DataCopy, dst.operand(), src.operand(), shape, where);
    } else {
      opkit::illegal_operand(
          "DataCopy from C1 to C2 converts half to float only; the document is silent of other pairs", where);
    }
  }
}

/// GM to UB: each burst is padded to whole data blocks.
template <typename T>
inline void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyExtParams& params,
                        const DataCopyPadExtParams<T>& padding, opkit::Where where = opkit::Where::here()) {
  opkit::issue_copy(opkit::Op::DataCopyPad, dst.operand(), src.operand(), opkit::padded_copy(params, padding), where);
}

/// UB to GM: what pads the UB side is left behind.
template <typename T>
inline void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyExtParams& params,
                        opkit::Where where = opkit::Where::here()) {
  opkit::issue_copy(opkit::Op::DataCopyPad, dst.operand(), src.operand(), opkit::unpadded_copy(params), where);
}

/// The older parameter structures: gaps of DataCopyParams count bytes on the GM side and data blocks on the UB side.
template <typename T>
inline void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyParams& params,
                        const DataCopyPadParams& padding, opkit::Where where = opkit::Where::here()) {
  DataCopyPadExtParams<T> extended;
  extended.isPad = padding.isPad;
  extended.leftPadding = padding.leftPadding;
  extended.rightPadding = padding.rightPadding;
  extended.paddingValue = opkit::value_of<T>(padding.paddingValue);
  opkit::CopyShape shape = opkit::padded_copy(opkit::extended(params), extended);
  shape.asked_bytes = params.blockLen.lost_from();
  opkit::issue_copy(opkit::Op::DataCopyPad, dst.operand(), src.operand(), shape, where);
}
template <typename T>
inline void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& params,
                        opkit::Where where = opkit::Where::here()) {
  opkit::CopyShape shape = opkit::unpadded_copy(opkit::extended(params));
  shape.asked_bytes = params.blockLen.lost_from();
  opkit::issue_copy(opkit::Op::DataCopyPad, dst.operand(), src.operand(), shape, where);
}

/// What DataCopyPad pads with where its parameters name no value.
template <typename T, TPosition pos = TPosition::MAX>
inline void SetPadValue(T value) {
  static_assert(pos == TPosition::MAX || pos == TPosition::VECIN || pos == TPosition::VECOUT,
                "SetPadValue: DataCopyPad pads on its way to VECIN or VECOUT");
  opkit::set_pad_value(opkit::bits_of(value));
}

}  // namespace AscendC
