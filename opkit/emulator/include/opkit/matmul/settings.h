/// What a Matmul object is told before it computes: shapes, operands, bias, quantisation. Source: Ascend C API, Matmul
/// kernel side, the Set... functions.
#pragma once

#include <cstring>

#include "opkit/matmul/local_operands.h"

namespace opkit::matmul {

template <typename... T>
constexpr bool is_implemented = false;

/// `is_direct`: the core that calls it computes, else a vector core does and keeps tensors of its own memories until it
/// asks the cube core.
template <typename A_TYPE, typename B_TYPE, typename BIAS_TYPE, const auto& MM_CFG, bool is_direct>
class Settings {
 public:
  static constexpr AscendC::MatmulConfig kConfig = ToMatmulConfig(MM_CFG);
  static constexpr bool kIsDirect = is_direct;
  using SrcAT = typename A_TYPE::T;
  using SrcBT = typename B_TYPE::T;
  using SrcT = SrcAT;
  using BiasT = typename BIAS_TYPE::T;

  void Init(const TCubeTiling* cubeTiling, AscendC::TPipe* tpipe = nullptr, Where where = Where::here()) {
    (void)tpipe;
    state_ = State();
    if (cubeTiling != nullptr) state_.tiling = *cubeTiling;
    apply_static(state_.tiling, MM_CFG);
    const TCubeTiling& t = state_.tiling;
    state_.org_m = t.M;
    state_.org_n = t.N;
    state_.org_ka = t.Ka;
    state_.org_kb = t.Kb;
    state_.org_c = t.N;
    state_.single_m = t.singleCoreM;
    state_.single_n = t.singleCoreN;
    state_.single_k = t.singleCoreK;
    state_.where = where;
    library_work(where, LibraryWork::Start, is_static_tiling(MM_CFG));
    if constexpr (kConfig.iterateOrder != IterateOrder::UNDEF) {
      state_.tiling.iterateOrder = kConfig.iterateOrder == IterateOrder::ORDER_N ? 1 : 0;
    }
    restart();
  }
  void SetSubBlockIdx(uint8_t subBlockIdx) { sub_block_ = subBlockIdx; }
  uint8_t GetSubBlockIdx() const { return sub_block_; }

  void SetOrgShape(int orgM, int orgN, int orgK, Where where = Where::here()) {
    SetOrgShape(orgM, orgN, orgK, orgK, 0, where);
  }
  void SetOrgShape(int orgM, int orgN, int orgKa, int orgKb, int orgKc = 0, Where where = Where::here()) {
    check_set<kConfig.enableSetOrgShape>("Matmul: SetOrgShape takes a configuration with enableSetOrgShape", where);
    state_.org_m = orgM;
    state_.org_n = orgN;
    state_.org_ka = orgKa;
    state_.org_kb = orgKb;
    state_.org_c = orgKc > 0 ? orgKc : orgN;
    restart();
  }
  void SetSingleShape(int singleM, int singleN, int singleK) { set_single_shape(singleM, singleN, singleK); }
  void SetTail(int tailM = -1, int tailN = -1, int tailK = -1, Where where = Where::here()) {
    check_set<kConfig.enableSetTail>("Matmul: SetTail takes a configuration with enableSetTail", where);
    set_single_shape(tailM, tailN, tailK);
  }

  void SetTensorA(const AscendC::GlobalTensor<SrcAT>& gm, bool isTransposeA = false, Where where = Where::here()) {
    state_.a = reinterpret_cast<uint64_t>(gm.GetPhyAddr());
    set_a(isTransposeA, false, where);
  }
  void SetTensorA(const AscendC::LocalTensor<SrcAT>& leftMatrix, bool isTransposeA = false,
                  Where where = Where::here()) {
    local_.a = leftMatrix;
    state_.a = leftMatrix.address();
    set_a(isTransposeA, !kIsDirect, where);
  }
  /// A row of `aScalar`: sums the columns of B.
  void SetTensorA(SrcAT aScalar, Where where = Where::here()) {
    static_assert(sizeof(SrcAT) <= sizeof(state_.a_scalar_bits), "the scalar fits");
    if (state_.single_m != 1 || A_TYPE::isTrans || A_TYPE::format == CubeFormat::NZ) {
      illegal_operand(
          "Matmul: SetTensorA of a scalar stands for one row: singleCoreM is 1, A neither NZ nor transposed", where);
    }
    state_.a_scalar_bits = 0;
    std::memcpy(&state_.a_scalar_bits, &aScalar, sizeof(aScalar));
    set_a(false, false, where);
    state_.is_a_scalar = true;
  }
  void SetTensorB(const AscendC::GlobalTensor<SrcBT>& gm, bool isTransposeB = false, Where where = Where::here()) {
    state_.b = reinterpret_cast<uint64_t>(gm.GetPhyAddr());
    set_b(isTransposeB, false, where);
  }
  void SetTensorB(const AscendC::LocalTensor<SrcBT>& rightMatrix, bool isTransposeB = false,
                  Where where = Where::here()) {
    local_.b = rightMatrix;
    state_.b = rightMatrix.address();
    set_b(isTransposeB, !kIsDirect, where);
  }
  void SetBias(const AscendC::GlobalTensor<BiasT>& biasGlobal, Where where = Where::here()) {
    check_set<kConfig.enableSetBias>("Matmul: SetBias takes a configuration with enableSetBias", where);
    state_.bias = reinterpret_cast<uint64_t>(biasGlobal.GetPhyAddr());
    state_.has_bias = true;
    state_.is_bias_local = false;
    local_.has_bias = false;
  }
  void SetBias(const AscendC::LocalTensor<BiasT>& inputBias, Where where = Where::here()) {
    check_set<kConfig.enableSetBias>("Matmul: SetBias takes a configuration with enableSetBias", where);
    local_.bias = inputBias;
    local_.has_bias = !kIsDirect;
    state_.bias = inputBias.address();
    state_.has_bias = true;
    state_.is_bias_local = kIsDirect;
  }
  void DisableBias() { state_.has_bias = false; }
  void ClearBias() { DisableBias(); }
  /// Values in the middle go to even in mode 0, away from zero in mode 1: not what HF32TransMode says of its 1.
  void SetHF32(bool enableHF32 = false, int32_t transMode = 0, Where where = Where::here()) {
    if (transMode != 0 && transMode != 1) illegal_operand("SetHF32: transMode is neither 0 nor 1", where);
    state_.is_hf32 = enableHF32;
    state_.hf32_halfway = transMode == 0 ? HalfwayTo::Even : HalfwayTo::Infinity;
  }
  void SetQuantScalar(const uint64_t quantScalar, Where where = Where::here()) {
    check_quantisation(where);
    state_.quant_form = QuantForm::Scalar;
    state_.quant_scalar = quantScalar;
  }
  void SetQuantVector(const AscendC::GlobalTensor<uint64_t>& quantTensor, Where where = Where::here()) {
    check_quantisation(where);
    state_.quant_form = QuantForm::Vector;
    state_.quant = reinterpret_cast<uint64_t>(quantTensor.GetPhyAddr());
    state_.is_quant_local = false;
    local_.has_quant = false;
  }
  void SetQuantVector(const AscendC::LocalTensor<uint64_t>& quantTensor, Where where = Where::here()) {
    check_quantisation(where);
    state_.quant_form = QuantForm::Vector;
    local_.quant = quantTensor;
    state_.quant = quantTensor.address();
    state_.is_quant_local = kIsDirect;
    local_.has_quant = !kIsDirect;
  }
  template <typename... T>
  void SetAntiQuantScalar(T&&...) {
    static_assert(is_implemented<T...>, "Matmul: SetAntiQuantScalar is not for this chip");
  }
  template <typename... T>
  void SetAntiQuantVector(T&&...) {
    static_assert(is_implemented<T...>, "Matmul: SetAntiQuantVector is not for this chip");
  }
  template <typename T>
  void SetSparseIndex(const AscendC::GlobalTensor<T>& indexGlobal) {
    static_assert(IsSparse<B_TYPE>::value, "Matmul: SetSparseIndex takes a B of SparseMatmulType");
    state_.index = reinterpret_cast<uint64_t>(indexGlobal.GetPhyAddr());
  }
  void SetUserDefInfo(const uint64_t tilingPtr) { state_.user_define = tilingPtr; }
  void SetSelfDefineData(const uint64_t dataPtr, Where where = Where::here()) {
    check_set<kConfig.enableSetDefineData>("Matmul: SetSelfDefineData takes a configuration with enableSetDefineData",
                                           where);
    state_.self_define = dataPtr;
  }
  void SetBatchNum(int32_t batchA, int32_t batchB) {
    batch_a_ = batchA;
    batch_b_ = batchB;
  }
  /// How many batches' results L0C is to hold at a time, which changes no result. No document has it.
  /// Source: ops-nn batch_mat_mul_v3, which says so of its size.
  void SetNBatchOutNum(int32_t nBatchOutNum) { (void)nBatchOutNum; }
  template <typename T>
  void SetWorkspace(const AscendC::GlobalTensor<T>& addr) {
    workspace_ = reinterpret_cast<uint64_t>(addr.GetPhyAddr());
  }
  template <typename T>
  void SetWorkspace(const T* addr, int size) {
    (void)size;
    workspace_ = reinterpret_cast<uint64_t>(addr);
  }
  /// UB that the vendor's would use; this chip's needs none.
  void SetLocalWorkspace(const AscendC::LocalTensor<uint8_t>& tmpBuffer) { (void)tmpBuffer; }

 protected:
  void restart() {
    progress_.next = 0;
    current_ = 0;
  }

  /// Elements from row to row of A (rows of a column of fractals in NZ), as SetOrgShape says.
  int32_t row_of_a() const {
    if (state_.a_row > 0) return state_.a_row;
    const bool is_nz = A_TYPE::format == CubeFormat::NZ;
    const int32_t row = state_.is_a_transposed != is_nz ? state_.org_m : state_.org_ka;
    return is_nz ? align_up(row, 16) : row;
  }
  int32_t row_of_b() const {
    if (state_.b_row > 0) return state_.b_row;
    const bool is_nz = B_TYPE::format == CubeFormat::NZ;
    const int32_t row = state_.is_b_transposed != is_nz ? state_.org_kb : state_.org_n;
    return is_nz ? align_up(row, 16) : row;
  }
  uint64_t workspace_or_fault(Where where) const {
    if (workspace_ == 0) illegal_operand("Matmul: call SetWorkspace first: results are kept there", where);
    return workspace_;
  }

  State state_;
  Progress progress_;
  int32_t current_ = 0;  ///< the step that the last Iterate has computed
  int32_t batch_a_ = 0;
  int32_t batch_b_ = 0;
  uint64_t workspace_ = 0;
  LocalOperands<A_TYPE, B_TYPE, BiasT> local_;

 private:
  /// What a configuration leaves out may be written in a branch that is never taken, so it is an error where it is
  /// called.
  template <bool is_allowed>
  static void check_set(const char* message, Where where) {
    if (!is_allowed) illegal_operand(message, where);
  }
  static void check_quantisation(Where where) {
    check_set<kConfig.enableQuantVector>(
        "Matmul: SetQuantScalar and SetQuantVector take a configuration with enableQuantVector", where);
  }
  void set_single_shape(int32_t m, int32_t n, int32_t k) {
    if (m > 0) state_.single_m = m;
    if (n > 0) state_.single_n = n;
    if (k > 0) state_.single_k = k;
    restart();
  }
  void set_a(bool is_transposed, bool is_published, Where where) {
    if (is_transposed && !A_TYPE::isTrans && sizeof(SrcAT) != 2) {
      illegal_operand("Matmul: SetTensorA: a transposed A needs ISTRANS in its MatmulType", where);
    }
    state_.is_a_transposed = is_transposed;
    local_.has_a = is_published;
    state_.a_row = 0;
    state_.is_a_scalar = false;
    restart();
  }
  void set_b(bool is_transposed, bool is_published, Where where) {
    (void)where;
    state_.is_b_transposed = is_transposed;
    local_.has_b = is_published;
    state_.b_row = 0;
    restart();
  }

  uint8_t sub_block_ = static_cast<uint8_t>(AscendC::GetSubBlockIdx());
};

}  // namespace opkit::matmul
