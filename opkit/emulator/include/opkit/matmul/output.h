/// Blocks of C from L0C to memory: format, type, quantisation, atomic writes. Source: Ascend C API, Fixpipe; Matmul,
/// GetTensorC, SetQuantScalar, SetQuantVector.
#pragma once

#include <algorithm>
#include <type_traits>

#include "kernel_operator.h"
#include "opkit/matmul/cube_context.h"
#include "opkit/matmul/state.h"

namespace opkit::matmul {

/// enAtomic of Matmul's functions.
template <typename T>
inline void set_atomic(uint8_t atomic) {
  if (atomic == 1) AscendC::SetAtomicAdd<T>();
  if (atomic == 2) AscendC::SetAtomicMax<T>();
  if (atomic == 3) AscendC::SetAtomicMin<T>();
}

template <typename C_TYPE, typename SumT, typename MM_CB, bool is_split = false>
class Output {
 public:
  using CT = typename C_TYPE::T;
  static constexpr bool kIsNz = C_TYPE::format == CubeFormat::NZ;
  static constexpr bool kIsL1 = is_in_l1(C_TYPE::pos);
  static_assert(!kIsL1 || kIsNz, "Matmul: a C that goes to L1 takes CubeFormat::NZ");
  static constexpr bool kIsAligned = C_TYPE::format == CubeFormat::ND_ALIGN;
  static constexpr int32_t kBlock = block_elements<CT>();
  /// Columns of a fractal of C in NZ: 16, a data block of bytes, or of floats where they are split.
  static constexpr int32_t kNzWidth = is_split ? 8 : (sizeof(CT) == 1 ? 32 : 16);

  Output(const State& state, CubeContext& context) : state_(state), context_(context) {}

  /// Columns that `n` of them take in memory.
  static int32_t columns(int32_t n) { return kIsAligned ? align_up(n, kBlock) : n; }
  /// Columns that are computed and written: what a row of C is filled up with, as far as the fractals of B go.
  static int32_t written_columns(int32_t n) { return std::min(columns(n), align_up(n, 16)); }

  /// Elements that all of this core's C takes where it lies without gaps.
  static int64_t elements(int32_t m, int32_t n) {
    if (kIsNz) return int64_t{align_up(m, 16)} * align_up(n, kNzWidth);
    return int64_t{m} * columns(n);
  }

  static constexpr bool kIsSplit = is_split;

  /// `follows_units`: the products that summed it up had unit flags.
  void write(const Tile& tile, const Destination& destination, uint32_t sum, bool follows_units) {
    const AscendC::LocalTensor<SumT> block(AscendC::TPosition::CO1, sum,
                                           static_cast<uint32_t>(align_up(tile.m, 16) * align_up(tile.n, 16)));
    if constexpr (C_TYPE::pos == AscendC::TPosition::CO1) {
      illegal_operand("Matmul: C lies in CO1; pass a tensor to Iterate and carry it out with Fixpipe", state_.where);
    } else {
      set_atomic<CT>(destination.atomic);
      if constexpr (MM_CB::CopyOut != nullptr) {
        call_back(tile, destination, block);
      } else {
        fixpipe(tile, destination, block, follows_units);
      }
      if (destination.atomic != 0) AscendC::SetAtomicNone();
    }
  }

 private:
  static constexpr bool kIsSame = std::is_same<CT, SumT>::value;
  static constexpr bool kIsFloatSum = std::is_same<SumT, float>::value;

  int32_t row() const {
    const int32_t columns_in_memory = state_.c_row > 0 ? state_.c_row : state_.org_c;
    return columns(columns_in_memory);
  }

  /// Where a block begins, in elements, and the distance of its rows (ND) or columns (NZ).
  int64_t offset(const Tile& tile, const Destination& destination) const {
    if (destination.is_sequential) return 0;
    const int64_t m = int64_t{tile.m_index} * state_.tiling.baseM;
    const int64_t n = int64_t{tile.n_index} * state_.tiling.baseN;
    return kIsNz ? n * align_up(state_.org_m, 16) + m * kNzWidth : m * row() + n;
  }

  void fixpipe(const Tile& tile, const Destination& destination, const AscendC::LocalTensor<SumT>& block,
               bool follows_units) {
    AscendC::FixpipeParamsV220 params;
    params.unitFlag = follows_units ? 3 : 0;
    params.mSize = static_cast<uint16_t>(tile.m);
    params.nSize = static_cast<uint16_t>(kIsNz ? align_up(tile.n, 16) : written_columns(tile.n));
    params.srcStride = static_cast<uint16_t>(align_up(tile.m, 16));
    params.isChannelSplit = is_split;
    if (kIsNz) {
      const int32_t rows = align_up(destination.is_sequential ? tile.m : state_.org_m, 16);
      params.dstStride = static_cast<uint32_t>(bytes<CT>(int64_t{rows} * kNzWidth) / 32);
    } else {
      params.dstStride = static_cast<uint32_t>(destination.is_sequential ? columns(tile.n) : row());
    }
    set_quantisation(params);
    const auto out = target(destination.address + static_cast<uint64_t>(bytes<CT>(offset(tile, destination))));
    constexpr const AscendC::FixpipeConfig& kFormat = kIsNz ? AscendC::CFG_NZ : AscendC::CFG_ROW_MAJOR;
    if (state_.quant_form != QuantForm::Vector || kIsSame) {
      AscendC::Fixpipe<CT, SumT, kFormat>(out, block, params, state_.where);
      return;
    }
    Event read(Pipe::FIX, Pipe::MTE2, state_.where);
    const AscendC::LocalTensor<uint64_t> scales = parameters(tile, read);
    AscendC::Fixpipe<CT, SumT, kFormat>(out, block, scales, params, state_.where);
    read.order();
  }

  /// What lies from an address on: GM, or a byte of L1.
  static auto target(uint64_t address) {
    if constexpr (kIsL1) {
      const auto begin = static_cast<uint32_t>(address);
      const auto count = static_cast<uint32_t>((local_memory_bytes(Space::L1) - begin) / sizeof(CT));
      return AscendC::LocalTensor<CT>(AscendC::TPosition::A1, begin, count);
    } else {
      AscendC::GlobalTensor<CT> out;
      out.SetGlobalBuffer(reinterpret_cast<CT*>(address));
      return out;
    }
  }

  void set_quantisation(AscendC::FixpipeParamsV220& params) const {
    if constexpr (kIsSame) {
      return;
    } else if constexpr (kIsFloatSum && std::is_same<CT, half>::value) {
      params.quantPre = QuantMode_t::F322F16;
    } else if constexpr (kIsFloatSum && std::is_same<CT, bfloat16_t>::value) {
      params.quantPre = QuantMode_t::F322BF16;
    } else {
      if (state_.quant_form == QuantForm::None) {
        illegal_operand("Matmul: this type of C needs SetQuantScalar or SetQuantVector", state_.where);
      }
      const bool is_vector = state_.quant_form == QuantForm::Vector;
      if constexpr (kIsFloatSum) {
        params.quantPre = is_vector ? QuantMode_t::VQF322B8_PRE : QuantMode_t::QF322B8_PRE;
      } else if constexpr (std::is_same<CT, half>::value) {
        params.quantPre = is_vector ? QuantMode_t::VDEQF16 : QuantMode_t::DEQF16;
      } else {
        params.quantPre = is_vector ? QuantMode_t::VREQ8 : QuantMode_t::REQ8;
      }
      params.deqScalar = state_.quant_scalar;
    }
  }

  /// The parameters of a block's columns, in L1.
  AscendC::LocalTensor<uint64_t> parameters(const Tile& tile, Event& read) {
    const uint64_t first = static_cast<uint64_t>(tile.n_index) * state_.tiling.baseN;
    const auto count = static_cast<uint32_t>(align_up(tile.n, 16));
    if (state_.is_quant_local) {
      const auto address = static_cast<uint32_t>(state_.quant + first * sizeof(uint64_t));
      return {AscendC::TPosition::A1, address, count};
    }
    read.order();
    const AscendC::LocalTensor<int8_t> line(AscendC::TPosition::A1, context_.quant_begin, count * 8);
    AscendC::GlobalTensor<int8_t> source;
    source.SetGlobalBuffer(reinterpret_cast<int8_t*>(state_.quant) + first * 8);
    AscendC::Nd2NzParams params;
    params.ndNum = 1;
    params.nValue = 1;
    params.dValue = static_cast<uint16_t>(tile.n * 8);
    params.srcDValue = params.dValue;
    params.dstNzC0Stride = 1;
    params.dstNzNStride = 1;
    AscendC::DataCopy(line, source, params, state_.where);
    Event(Pipe::MTE2, Pipe::FIX, state_.where).order();
    return {AscendC::TPosition::A1, context_.quant_begin, count};
  }

  void call_back(const Tile& tile, const Destination& destination, const AscendC::LocalTensor<SumT>& block) {
    AscendC::DataCopyOutParams params;
    params.cBurstNum = static_cast<uint16_t>(ceil_div(tile.n, 16));
    params.burstLen = static_cast<uint16_t>(tile.m * 16 * static_cast<int32_t>(sizeof(SumT)) / 32);
    params.dstStride = static_cast<uint32_t>(destination.is_sequential ? columns(tile.n) : row());
    params.oriNSize = static_cast<uint16_t>(tile.n);
    params.quantScalar = state_.quant_scalar;
    Event read(Pipe::FIX, Pipe::MTE2, state_.where);
    if (state_.quant_form == QuantForm::Vector) params.cbufWorkspaceAddr = parameters(tile, read).address();
    const auto* out = reinterpret_cast<CT*>(destination.address) + offset(tile, destination);
    MM_CB::CopyOut(out, block.template ReinterpretCast<int8_t>(), &params, state_.user_define, state_.self_define);
  }

  const State& state_;
  CubeContext& context_;
};

}  // namespace opkit::matmul
