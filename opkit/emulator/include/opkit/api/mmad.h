/// Mmad. Source: Ascend C API, matrix computation (ISASI), Mmad.
#pragma once

#include "opkit/api/tensor.h"

namespace AscendC {

/// C of m x n elements, A of m x k, B of k x n.
struct MmadParams {
  uint16_t m = 0;
  uint16_t n = 0;
  uint16_t k = 0;
  bool isBias = false;       ///< older: C is added to
  int32_t fmOffset = 0;      ///< not used by the chips
  bool enSsparse = false;    ///< not used by the chips
  bool enWinogradA = false;  ///< not used by the chips
  bool enWinogradB = false;  ///< not used by the chips
  uint8_t unitFlag = 0;      ///< 0, 2 or 3
  bool kDirectionAlign = false;
  bool cmatrixSource = false;  ///< where cmatrixInitVal is false: C begins as the bias table
  bool cmatrixInitVal = true;  ///< C begins as zero
  MmadParams() = default;
  MmadParams(uint16_t rows, uint16_t columns, uint16_t depth, bool is_bias, int32_t offset, bool is_sparse,
             bool is_winograd_a, bool is_winograd_b)
      : m(rows),
        n(columns),
        k(depth),
        isBias(is_bias),
        fmOffset(offset),
        enSsparse(is_sparse),
        enWinogradA(is_winograd_a),
        enWinogradB(is_winograd_b) {}
  MmadParams(uint16_t rows, uint16_t columns, uint16_t depth, uint8_t unit_flag, bool is_from_bias_table,
             bool is_from_zero)
      : m(rows),
        n(columns),
        k(depth),
        unitFlag(unit_flag),
        cmatrixSource(is_from_bias_table),
        cmatrixInitVal(is_from_zero) {}
};

}  // namespace AscendC

namespace opkit {

inline MatrixProduct matrix_product(const AscendC::MmadParams& params) {
  MatrixProduct product;
  product.m = params.m;
  product.n = params.n;
  product.k = params.k;
  product.unit_flag = params.unitFlag;
  product.is_k_aligned_16 = params.kDirectionAlign;
  const MatrixRegisters& registers = matrix_registers();
  product.is_hf32 = registers.is_hf32;
  product.hf32_halfway = registers.hf32_halfway;
  const bool is_from_zero = params.cmatrixInitVal && !params.isBias;
  product.initial = is_from_zero ? InitialC::Zero : (params.cmatrixSource ? InitialC::BiasTable : InitialC::Kept);
  return product;
}

inline void issue_product(Op op, const Operand& dst, const Operand& left, const Operand& right, const Operand& bias,
                          const MatrixProduct& product, Where where) {
  Instr instr;
  instr.op = op;
  instr.pipe = Pipe::M;
  instr.dst = accumulator(dst);
  instr.src[0] = left;
  instr.src[1] = right;
  instr.src[2] = bias;
  instr.source_count = product.initial == InitialC::BiasTable ? 3 : 2;
  instr.product = &product;
  instr.where = where;
  issue(instr);
}

/// The bias table from its start: what cmatrixSource means.
inline Operand bias_table(DType dtype) {
  Operand table;
  table.space = Space::BT;
  table.dtype = dtype;
  table.end = local_memory_bytes(Space::BT);
  return table;
}

}  // namespace opkit

namespace AscendC {

template <typename T, typename U, typename S>
inline void Mmad(const LocalTensor<T>& dst, const LocalTensor<U>& fm, const LocalTensor<S>& filter,
                 const MmadParams& mmadParams, opkit::Where where = opkit::Where::here()) {
  const opkit::MatrixProduct product = opkit::matrix_product(mmadParams);
  opkit::issue_product(opkit::Op::Mmad, dst.operand(), fm.operand(), filter.operand(),
                       opkit::bias_table(opkit::dtype_of<T>()), product, where);
}
/// C begins as `bias` in every row, or, where that lies in L0C, as what L0C holds.
template <typename T, typename U, typename S, typename V>
inline void Mmad(const LocalTensor<T>& dst, const LocalTensor<U>& fm, const LocalTensor<S>& filter,
                 const LocalTensor<V>& bias, const MmadParams& mmadParams, opkit::Where where = opkit::Where::here()) {
  if (opkit::kIsCoupled) opkit::illegal_operand("Mmad: this chip has no form with a bias; fill L0C first", where);
  opkit::MatrixProduct product = opkit::matrix_product(mmadParams);
  const opkit::Operand table = bias.operand();
  // The documents' table of types for this form lacks int4b_t; cmatrixSource, as Matmul uses it, has it.
  if (std::is_same_v<PrimT<U>, int4b_t> && table.space != opkit::Space::L0C) {
    opkit::illegal_operand("Mmad: products of int4b_t take no bias argument; add it to the result", where);
  }
  product.initial = table.space == opkit::Space::L0C ? opkit::InitialC::Kept : opkit::InitialC::BiasTable;
  opkit::issue_product(opkit::Op::Mmad, dst.operand(), fm.operand(), filter.operand(), table, product, where);
}

/// `filter` lacks two of every four weights along k; `mmadParams.k` counts those of `fm`, which lacks none.
template <typename T = int32_t, typename U = int8_t, std::enable_if_t<std::is_same_v<PrimT<T>, int32_t>, bool> = true,
          std::enable_if_t<std::is_same_v<PrimT<U>, int8_t>, bool> = true>
inline void MmadWithSparse(const LocalTensor<T>& dst, const LocalTensor<U>& fm, const LocalTensor<U>& filter,
                           const MmadParams& mmadParams, opkit::Where where = opkit::Where::here()) {
  const opkit::MatrixProduct product = opkit::matrix_product(mmadParams);
  opkit::issue_product(opkit::Op::MmadWithSparse, dst.operand(), fm.operand(), filter.operand(),
                       opkit::bias_table(opkit::dtype_of<T>()), product, where);
}

enum class HF32Mode : uint8_t { DISABLE = 0, ENABLE = 1 };
enum class HF32TransMode : uint8_t { NEAREST_EVEN = 0, NEAREST_ZERO = 1 };

/// Whether Mmad rounds its float inputs to HF32 first.
inline void SetHF32Mode(HF32Mode mode) { opkit::matrix_registers().is_hf32 = mode == HF32Mode::ENABLE; }
/// Where a float in the middle of two HF32 numbers goes.
inline void SetHF32TransMode(HF32TransMode mode) {
  opkit::matrix_registers().hf32_halfway = static_cast<opkit::HalfwayTo>(mode);
}
/// Both as they were before CANN 9. Source: changes of interfaces.
inline void SetHF32Mode(bool mode) { SetHF32Mode(static_cast<HF32Mode>(mode)); }
inline void SetHF32TransMode(bool mode) { SetHF32TransMode(static_cast<HF32TransMode>(mode)); }

/// In which order Mmad produces the fractals of C: results are the same, and so is the time.
inline void SetMMColumnMajor() {}
inline void SetMMRowMajor() {}
/// Its name before CANN 9.
inline void SetMMLayoutTransform(bool) {}

}  // namespace AscendC
