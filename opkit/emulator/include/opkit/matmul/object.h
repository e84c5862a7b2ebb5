/// The Matmul object. Source: Ascend C API, Matmul kernel side.
///
/// Where it computes: with ASCENDC_CUBE_ONLY, and in MatmulImpl, on the cube core that calls it. Else a vector core
/// calls it, and the cube core of its block, which serves requests from REGIST_MATMUL_OBJ on, computes.
#pragma once

#include <cstring>
#include <vector>

#include "opkit/matmul/local_operands.h"
#include "opkit/matmul/run.h"

namespace opkit::matmul {

#if defined(ASCENDC_CUBE_ONLY)
inline constexpr bool kIsCubeOnly = true;
#else
inline constexpr bool kIsCubeOnly = false;
#endif

template <typename... T>
constexpr bool is_implemented = false;

template <typename A_TYPE, typename B_TYPE, typename C_TYPE, typename BIAS_TYPE, const auto& MM_CFG, typename MM_CB,
          Policy policy, bool is_cube_only>
class Object {
 public:
  static constexpr AscendC::MatmulConfig kConfig = ToMatmulConfig(MM_CFG);
  /// Whether the core that calls it computes.
  static constexpr bool kIsDirect = is_cube_only || kConfig.enableMixDualMaster;
  /// The operand as the core that computes sees it: what a vector core holds itself comes through global memory.
  template <typename TYPE>
  using Seen = std::conditional_t<kIsDirect, TYPE, FromGm<TYPE>>;
  using SrcAT = typename A_TYPE::T;
  using SrcBT = typename B_TYPE::T;
  using SrcT = SrcAT;
  using DstT = typename C_TYPE::T;
  using BiasT = typename BIAS_TYPE::T;
  using Run = Runner<Seen<A_TYPE>, Seen<B_TYPE>, C_TYPE, BIAS_TYPE, MM_CFG, MM_CB, policy>;
  using CubeEngine = typename Run::CubeEngine;

  static_assert(!kConfig.intraBlockPartSum, "Matmul: intraBlockPartSum needs Ascend 950");
  static_assert(!kConfig.isCO1Shared, "Matmul: isCO1Shared needs Ascend 950");
  static_assert(!kConfig.enableRelu, "Matmul: enableRelu needs Ascend 950");
  static_assert(A_TYPE::format != CubeFormat::COLUMN_MAJOR && B_TYPE::format != CubeFormat::COLUMN_MAJOR &&
                    C_TYPE::format != CubeFormat::COLUMN_MAJOR,
                "Matmul: COLUMN_MAJOR needs Ascend 950");
  static_assert(std::is_same<SrcAT, SrcBT>::value, "Matmul: A and B have one type on this chip");

  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

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
    if constexpr (kConfig.iterateOrder != IterateOrder::UNDEF) {
      state_.tiling.iterateOrder = kConfig.iterateOrder == IterateOrder::ORDER_N ? 1 : 0;
    }
    restart();
  }
  void SetSubBlockIdx(uint8_t subBlockIdx) { sub_block_ = subBlockIdx; }
  uint8_t GetSubBlockIdx() const { return sub_block_; }

  void SetOrgShape(int orgM, int orgN, int orgK) { SetOrgShape(orgM, orgN, orgK, orgK); }
  void SetOrgShape(int orgM, int orgN, int orgKa, int orgKb, int orgKc = 0) {
    state_.org_m = orgM;
    state_.org_n = orgN;
    state_.org_ka = orgKa;
    state_.org_kb = orgKb;
    state_.org_c = orgKc > 0 ? orgKc : orgN;
    restart();
  }
  void SetSingleShape(int singleM, int singleN, int singleK) { SetTail(singleM, singleN, singleK); }
  void SetTail(int tailM = -1, int tailN = -1, int tailK = -1) {
    if (tailM > 0) state_.single_m = tailM;
    if (tailN > 0) state_.single_n = tailN;
    if (tailK > 0) state_.single_k = tailK;
    restart();
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
  void SetBias(const AscendC::GlobalTensor<BiasT>& biasGlobal) {
    state_.bias = reinterpret_cast<uint64_t>(biasGlobal.GetPhyAddr());
    state_.has_bias = true;
    state_.is_bias_local = false;
    local_.has_bias = false;
  }
  void SetBias(const AscendC::LocalTensor<BiasT>& inputBias) {
    local_.bias = inputBias;
    local_.has_bias = !kIsDirect;
    state_.bias = inputBias.address();
    state_.has_bias = true;
    state_.is_bias_local = kIsDirect;
  }
  void DisableBias() { state_.has_bias = false; }
  void ClearBias() { DisableBias(); }
  void SetHF32(bool enableHF32 = false, int32_t transMode = 0) {
    state_.is_hf32 = enableHF32;
    state_.hf32_mode = static_cast<uint8_t>(transMode);
  }
  void SetQuantScalar(const uint64_t quantScalar) {
    state_.quant_form = QuantForm::Scalar;
    state_.quant_scalar = quantScalar;
  }
  void SetQuantVector(const AscendC::GlobalTensor<uint64_t>& quantTensor) {
    state_.quant_form = QuantForm::Vector;
    state_.quant = reinterpret_cast<uint64_t>(quantTensor.GetPhyAddr());
    state_.is_quant_local = false;
    local_.has_quant = false;
  }
  void SetQuantVector(const AscendC::LocalTensor<uint64_t>& quantTensor) {
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
  void SetSelfDefineData(const uint64_t dataPtr) { state_.self_define = dataPtr; }
  void SetBatchNum(int32_t batchA, int32_t batchB) {
    batch_a_ = batchA;
    batch_b_ = batchB;
  }
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

  /// Computes the next block of C. False once there is none.
  template <bool sync = true>
  bool Iterate(bool enPartialSum = false, Where where = Where::here()) {
    if (!is_master()) return false;
    begin(where);
    check_single_product(where);
    if constexpr (!sync) {
      start_all_blocks(where);
      return true;
    }
    const int32_t steps = Progress::steps(state_, CubeEngine::kIsPartial);
    while (progress_.next < steps && !CubeEngine::is_wanted(tile(progress_.next))) ++progress_.next;
    if (progress_.next >= steps) {
      restart();
      return false;
    }
    if (!enPartialSum) sums_.clear();
    if (progress_.next == 0) start_pass(where);
    current_ = progress_.next++;
    if constexpr (kIsDirect) {
      CubeEngine(state_).compute_step(tile(current_), current_, enPartialSum);
    } else {
      sums_.push_back({state_, current_, enPartialSum});
    }
    return true;
  }

  /// The same into L0C of the kernel's own.
  template <bool sync = true, typename T>
  bool Iterate(bool enPartialSum, const AscendC::LocalTensor<T>& localCmatrix, Where where = Where::here()) {
    static_assert(C_TYPE::pos == AscendC::TPosition::CO1 && C_TYPE::format == CubeFormat::NZ,
                  "Matmul: Iterate into a tensor takes a C in TPosition::CO1 and CubeFormat::NZ");
    static_assert(kIsDirect, "Matmul: Iterate into a tensor of L0C takes ASCENDC_CUBE_ONLY");
    begin(where);
    const int32_t steps = Progress::steps(state_, CubeEngine::kIsPartial);
    if (progress_.next >= steps) {
      restart();
      return false;
    }
    if (progress_.next == 0) start_pass(where);
    current_ = progress_.next++;
    const Tile next = tile(current_);
    CubeEngine(state_).compute_at(localCmatrix.address(), next, enPartialSum, 0, state_.k_blocks());
    return true;
  }

  template <bool sync = true>
  void IterateAll(const AscendC::GlobalTensor<DstT>& gm, uint8_t enAtomic = 0, bool enSequentialWrite = false,
                  bool waitIterateAll = false, bool fakeMsg = false, Where where = Where::here()) {
    (void)waitIterateAll;
    if (!is_master() || fakeMsg) return;
    Request request = request_for(Work::All, where);
    request.destinations[0] = {address_of(gm), enSequentialWrite, enAtomic};
    perform<sync>(request, where);
  }
  template <bool sync = true>
  void IterateAll(const AscendC::LocalTensor<DstT>& ubCmatrix, uint8_t enAtomic = 0, Where where = Where::here()) {
    if (!is_master()) return;
    check_ub_result(enAtomic, where);
    Request request = request_for(Work::All, where);
    request.state.org_m = state_.single_m;
    request.state.org_c = state_.single_n;
    request.state.a_row = row_of_a();
    request.state.b_row = row_of_b();
    request.destinations[0].address = local_.result_address(bytes<DstT>(whole_elements()), where);
    perform<true>(request, where);
    fetch(ubCmatrix, request.destinations[0].address, 1, bytes<DstT>(whole_elements()), 0, where);
  }

  template <bool sync = true>
  void GetTensorC(const AscendC::GlobalTensor<DstT>& gm, uint8_t enAtomic = 0, bool enSequentialWrite = false,
                  Where where = Where::here()) {
    if (!is_master()) return;
    state_.where = where;
    const Destination destination{address_of(gm), enSequentialWrite, enAtomic};
    if constexpr (kIsDirect) {
      CubeEngine(state_).carry_out(tile(current_), destination);
    } else {
      if constexpr (sync) {
        carry_out(&destination, 1, where);
      } else {
        tile_to_gm(take_async_tile(where), destination, where);
      }
    }
  }
  template <bool sync = true, bool doPad = false>
  void GetTensorC(const AscendC::LocalTensor<DstT>& co2Local, uint8_t enAtomic = 0, bool enSequentialWrite = false,
                  uint32_t height = 0, uint32_t width = 0, uint32_t srcGap = 0, uint32_t dstGap = 0,
                  Where where = Where::here()) {
    (void)height, (void)width, (void)srcGap, (void)dstGap;
    if (!is_master()) return;
    check_ub_result(enAtomic, where);
    if constexpr (!sync) {
      const Tile next = take_async_tile(where);
      tile_to_ub(co2Local, async_address(), next, enSequentialWrite, where);
    } else {
      const Destination destination{local_.result_address(Run::tile_bytes(state_), where), true, 0};
      carry_out(&destination, 1, where);
      tile_to_ub(co2Local, destination.address, tile(current_), enSequentialWrite, where);
    }
  }
  template <bool sync = true>
  void GetTensorC(const AscendC::GlobalTensor<DstT>& gm, const AscendC::LocalTensor<DstT>& co2Local,
                  uint8_t enAtomic = 0, bool enSequentialWrite = false, Where where = Where::here()) {
    if (!is_master()) return;
    check_ub_result(0, where);
    if constexpr (!sync) {
      const Tile next = take_async_tile(where);
      tile_to_gm(next, {address_of(gm), enSequentialWrite, enAtomic}, where);
      tile_to_ub(co2Local, async_address(), next, enSequentialWrite, where);
      return;
    }
    const Destination destinations[2] = {{address_of(gm), enSequentialWrite, enAtomic},
                                         {local_.result_address(Run::tile_bytes(state_), where), true, 0}};
    carry_out(destinations, 2, where);
    tile_to_ub(co2Local, destinations[1].address, tile(current_), enSequentialWrite, where);
  }
  /// The next block where Iterate<false> has put it: in the workspace.
  template <bool sync = true>
  AscendC::GlobalTensor<DstT> GetTensorC(uint8_t enAtomic = 0, bool enSequentialWrite = false,
                                         Where where = Where::here()) {
    static_assert(!sync, "Matmul: GetTensorC without a tensor takes Iterate<false> and GetTensorC<false>");
    (void)enAtomic, (void)enSequentialWrite;
    AscendC::GlobalTensor<DstT> tensor;
    if (!is_master()) return tensor;
    take_async_tile(where);
    tensor.SetGlobalBuffer(reinterpret_cast<DstT*>(async_address()),
                           static_cast<uint64_t>(state_.tiling.baseM) * state_.tiling.baseN);
    return tensor;
  }
  void AsyncGetTensorC(const AscendC::LocalTensor<DstT>& c, Where where = Where::here()) {
    GetTensorC<false>(c, 0, true, 0, 0, 0, 0, where);
  }
  /// GetTensorC<false> has waited already.
  void WaitGetTensorC() {}
  void WaitIterateAll(Where where = Where::here()) { await_last(where); }
  void WaitIterateBatch(Where where = Where::here()) { await_last(where); }

  /// Vector cores: batches from GM to GM.
  template <bool sync = true, bool waitIterateBatch = false, bool is_requested = !kIsDirect>
  std::enable_if_t<is_requested> IterateBatch(const AscendC::GlobalTensor<DstT>& gm, uint32_t batchA, uint32_t batchB,
                                              bool enSequentialWrite, const uint32_t matrixStrideA = 0,
                                              const uint32_t matrixStrideB = 0, const uint32_t matrixStrideC = 0,
                                              const bool enPartialSum = false, const uint8_t enAtomic = 0,
                                              Where where = Where::here()) {
    (void)matrixStrideC;
    if (!is_master()) return;
    batch<sync>(address_of(gm),
                {batchA, batchB, 1, matrixStrideA, matrixStrideB, enSequentialWrite, enPartialSum, enAtomic}, where);
  }
  template <bool sync = true, bool is_requested = !kIsDirect>
  std::enable_if_t<is_requested> IterateBatch(const AscendC::LocalTensor<DstT>& ubCmatrix, uint32_t batchA,
                                              uint32_t batchB, bool enSequentialWrite, const uint32_t matrixStrideA = 0,
                                              const uint32_t matrixStrideB = 0, const uint32_t matrixStrideC = 0,
                                              const bool enPartialSum = false, const uint8_t enAtomic = 0,
                                              Where where = Where::here()) {
    (void)matrixStrideC;
    if (!is_master()) return;
    check_ub_result(enAtomic, where);
    const BatchShape shape{batchA, batchB, 1, matrixStrideA, matrixStrideB, enSequentialWrite, enPartialSum, 0};
    const int64_t result = bytes<DstT>(whole_elements() * (shape.count() / Run::Steps::summed(state_.tiling)));
    Request request = batch_request(shape, where);
    request.destinations[0].address = local_.result_address(result, where);
    perform<true>(request, where);
    fetch(ubCmatrix, request.destinations[0].address, 1, result, 0, where);
  }
  /// Cube cores: as many as SetBatchNum says.
  template <bool computes = kIsDirect>
  std::enable_if_t<computes> IterateBatch(const AscendC::GlobalTensor<DstT>& gm, bool enPartialSum, uint8_t enAtomic,
                                          bool enSequentialWrite, const uint32_t matrixStrideA = 0,
                                          const uint32_t matrixStrideB = 0, const uint32_t matrixStrideC = 0,
                                          Where where = Where::here()) {
    (void)matrixStrideC;
    if (!is_master()) return;
    const auto a = static_cast<uint32_t>(batch_a_ > 0 ? batch_a_ : state_.tiling.BatchNum);
    const auto b = static_cast<uint32_t>(batch_b_ > 0 ? batch_b_ : state_.tiling.BatchNum);
    batch<true>(address_of(gm), {a, b, 1, matrixStrideA, matrixStrideB, enSequentialWrite, enPartialSum, enAtomic},
                where);
  }
  template <bool sync = true, bool waitIterateBatch = false>
  void IterateNBatch(const uint32_t batchLoop, uint32_t batchA, uint32_t batchB, bool enSequentialWrite,
                     const uint32_t matrixStrideA = 0, const uint32_t matrixStrideB = 0,
                     const uint32_t matrixStrideC = 0, Where where = Where::here()) {
    static_assert(kConfig.isNBatch, "Matmul: IterateNBatch takes a configuration with isNBatch");
    (void)matrixStrideC;
    if (!is_master()) return;
    batch<sync>(workspace_or_fault(where),
                {batchA, batchB, batchLoop, matrixStrideA, matrixStrideB, enSequentialWrite, false, 0}, where);
    async_next_ = 0;
  }
  /// The next batch that IterateNBatch<false> has put into the workspace.
  template <bool sync = true>
  AscendC::GlobalTensor<DstT> GetBatchTensorC(uint32_t batchA, uint32_t batchB, bool enSequentialWrite = false,
                                              Where where = Where::here()) {
    (void)enSequentialWrite;
    AscendC::GlobalTensor<DstT> tensor;
    if (!is_master()) return tensor;
    const auto count = std::max(batchA, batchB) / static_cast<uint32_t>(Run::Steps::summed(state_.tiling));
    const int64_t elements = whole_elements() * count;
    if constexpr (!kIsDirect) await_cube_step(first_step_ + static_cast<uint64_t>(async_next_), where);
    const auto address = workspace_or_fault(where) + static_cast<uint64_t>(bytes<DstT>(elements) * async_next_);
    ++async_next_;
    tensor.SetGlobalBuffer(reinterpret_cast<DstT*>(address), static_cast<uint64_t>(elements));
    return tensor;
  }
  template <bool sync = true>
  void GetBatchTensorC(const AscendC::LocalTensor<DstT>& c, uint32_t batchA, uint32_t batchB,
                       bool enSequentialWrite = false, Where where = Where::here()) {
    if (!is_master()) return;
    const auto tensor = GetBatchTensorC<sync>(batchA, batchB, enSequentialWrite, where);
    fetch(c, address_of(tensor), 1, bytes<DstT>(static_cast<int64_t>(tensor.GetSize())), 0, where);
  }
  template <bool sync = true>
  AscendC::GlobalTensor<DstT> GetBatchC(uint32_t batchA, uint32_t batchB, bool enSequentialWrite = false,
                                        Where where = Where::here()) {
    return GetBatchTensorC<sync>(batchA, batchB, enSequentialWrite, where);
  }
  template <bool sync = true>
  void GetBatchC(const AscendC::LocalTensor<DstT>& c, uint32_t batchA, uint32_t batchB, bool enSequentialWrite = false,
                 Where where = Where::here()) {
    GetBatchTensorC<sync>(c, batchA, batchB, enSequentialWrite, where);
  }

  void End() { restart(); }

 private:
  /// Whether the core that calls it is the one whose calls count.
  static bool is_master() { return core_variables().is_cube == kIsDirect; }

  void restart() {
    progress_.next = 0;
    current_ = 0;
  }
  Tile tile(int32_t step) const { return Progress::tile(state_, step, CubeEngine::kIsPartial); }
  static uint64_t address_of(const AscendC::GlobalTensor<DstT>& tensor) {
    return reinterpret_cast<uint64_t>(tensor.GetPhyAddr());
  }
  int64_t whole_elements() const { return CubeEngine::Out::elements(state_.single_m, state_.single_n); }

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

  int32_t row_of_a() const {
    if (state_.a_row > 0) return state_.a_row;
    const bool is_rows = A_TYPE::format == CubeFormat::NZ;
    return state_.is_a_transposed != is_rows ? state_.org_m : state_.org_ka;
  }
  int32_t row_of_b() const {
    if (state_.b_row > 0) return state_.b_row;
    const bool is_rows = B_TYPE::format == CubeFormat::NZ;
    return state_.is_b_transposed != is_rows ? state_.org_kb : state_.org_n;
  }

  /// Every computation starts here.
  void begin(Where where) {
    const TCubeTiling& t = state_.tiling;
    if (t.baseM <= 0 || t.baseN <= 0 || t.baseK <= 0) {
      illegal_operand("Matmul: the tiling has no sizes; pass one to REGIST_MATMUL_OBJ or to Init", where);
    }
    if (state_.single_m <= 0 || state_.single_n <= 0 || state_.single_k <= 0) {
      illegal_operand("Matmul: singleCoreM, singleCoreN and singleCoreK of the tiling are to be positive", where);
    }
    state_.where = where;
  }
  static void check_single_product(Where where) {
    if (kConfig.scheduleType == ScheduleType::OUTER_PRODUCT) {
      illegal_operand("Matmul: with OUTER_PRODUCT opkit has IterateAll only, not Iterate", where);
    }
  }
  static void check_ub_result(uint8_t atomic, Where where) {
    if (kIsDirect) illegal_operand("Matmul: a cube core has no way to UB on this chip", where);
    if (atomic != 0) illegal_operand("Matmul: atomic writes go to global memory, not to UB", where);
  }
  Request request_for(Work work, Where where) {
    begin(where);
    sums_.clear();
    start_pass(where);
    Request request;
    request.work = work;
    request.state = state_;
    return request;
  }

  void start_pass(Where where) {
    state_.pass = next_pass();
    if constexpr (kIsDirect) return;
    // Sums that wait have operands that the cube core has yet to read.
    if (sums_.empty() && local_.has_operands(state_)) {
      await_last(where);
      local_.reuse();
    }
    local_.publish(state_, where);
  }

  static constexpr bool kIsShared = A_TYPE::ibShare && B_TYPE::ibShare;

  template <bool sync>
  void perform(const Request& request, Where where) {
    if constexpr (kIsDirect) {
      (void)where;
      Run::run(request, [] {});
    } else {
      const uint32_t steps = request.work == Work::Batch ? request.batch.loops : 1;
      post(request, steps, where);
      if constexpr (sync) await_cube_step(last_step_, where);
    }
  }
  void post(const Request& request, uint32_t steps, Where where) {
    CubeRequest message;
    message.serve = &Run::serve;
    message.payload = &request;
    message.payload_bytes = sizeof(request);
    message.steps = steps;
    message.is_shared = kIsShared;
    last_step_ = post_cube_request(message, where);
    first_step_ = last_step_ - steps + 1;
  }
  void await_last(Where where) {
    if constexpr (!kIsDirect) {
      if (is_master() && last_step_ > 0) await_cube_step(last_step_, where);
    }
  }

  void carry_out(const Destination* destinations, uint32_t count, Where where) {
    if (sums_.empty()) illegal_operand("Matmul: GetTensorC without an Iterate before it", where);
    Request request;
    request.work = Work::Sums;
    request.state = state_;
    request.state.where = where;
    for (uint32_t i = 0; i < count; ++i) request.destinations[i] = destinations[i];
    request.destination_count = count;
    request.sums = sums_.data();
    request.sum_count = static_cast<uint32_t>(sums_.size());
    perform<true>(request, where);
  }

  uint64_t workspace_or_fault(Where where) const {
    if (workspace_ == 0) illegal_operand("Matmul: call SetWorkspace first: results are kept there", where);
    return workspace_;
  }

  /// Iterate<false>: every block in turn to the workspace.
  void start_all_blocks(Where where) {
    if constexpr (kIsDirect) {
      illegal_operand("Matmul: Iterate<false> is for vector cores; on a cube core call Iterate", where);
    } else {
      if (policy == Policy::UpperTriangle || policy == Policy::LowerTriangle) {
        illegal_operand("Matmul: Iterate<false> does not go with a triangle policy in opkit; call Iterate", where);
      }
      Request request = request_for(Work::Steps, where);
      request.destinations[0] = {workspace_or_fault(where), true, 0};
      post(request, static_cast<uint32_t>(Progress::steps(state_, CubeEngine::kIsPartial)), where);
      async_next_ = 0;
    }
  }
  Tile take_async_tile(Where where) {
    const int32_t steps = Progress::steps(state_, CubeEngine::kIsPartial);
    if (first_step_ == 0 || async_next_ >= steps) {
      illegal_operand("Matmul: GetTensorC<false> more often than Iterate<false> has computed blocks", where);
    }
    await_cube_step(first_step_ + static_cast<uint64_t>(async_next_), where);
    current_ = async_next_++;
    return tile(current_);
  }
  uint64_t async_address() const { return workspace_ + static_cast<uint64_t>(Run::bytes_before(state_, current_)); }

  /// A block, which lies without gaps, in a matrix of `m` rows whose rows are `row` elements long.
  Runs runs_of(const Tile& block, bool is_sequential, int32_t m, int32_t row) const {
    using Out = typename CubeEngine::Out;
    if (is_sequential) return {0, 1, bytes<DstT>(Out::elements(block.m, block.n)), 0};
    const int64_t m_begin = int64_t{block.m_index} * state_.tiling.baseM;
    const int64_t n_begin = int64_t{block.n_index} * state_.tiling.baseN;
    if (Out::kIsNz) {
      const int64_t rows = align_up(m, 16);
      return {n_begin * rows + m_begin * Out::kNzWidth, ceil_div(block.n, Out::kNzWidth),
              bytes<DstT>(int64_t{align_up(block.m, 16)} * Out::kNzWidth), bytes<DstT>(rows * Out::kNzWidth)};
    }
    const int32_t columns = Out::columns(row);
    return {m_begin * columns + n_begin, block.m, bytes<DstT>(Out::columns(block.n)), bytes<DstT>(columns)};
  }
  void tile_to_ub(const AscendC::LocalTensor<DstT>& local, uint64_t address, const Tile& block, bool is_sequential,
                  Where where) const {
    const Runs runs = runs_of(block, is_sequential, state_.single_m, state_.single_n);
    fetch(local[static_cast<uint32_t>(runs.begin)], address, runs.count, runs.run_bytes, runs.stride_bytes, where);
  }
  void tile_to_gm(const Tile& block, const Destination& destination, Where where) const {
    Runs runs = runs_of(block, destination.is_sequential, state_.org_m, state_.org_c);
    AscendC::GlobalTensor<DstT> from;
    AscendC::GlobalTensor<DstT> to;
    from.SetGlobalBuffer(reinterpret_cast<DstT*>(async_address()));
    to.SetGlobalBuffer(reinterpret_cast<DstT*>(destination.address) + runs.begin);
    set_atomic<DstT>(destination.atomic);
    forward(to, from, runs, where);
    if (destination.atomic != 0) AscendC::SetAtomicNone();
  }

  template <bool sync>
  void batch(uint64_t address, const BatchShape& shape, Where where) {
    Request request = batch_request(shape, where);
    request.destinations[0].address = address;
    perform<sync>(request, where);
  }
  Request batch_request(const BatchShape& shape, Where where) {
    if (shape.batch_a == 0 || shape.batch_b == 0 || shape.count() % shape.batch_a != 0 ||
        shape.count() % shape.batch_b != 0) {
      illegal_operand("Matmul: batchA and batchB are not multiples of each other", where);
    }
    Request request = request_for(Work::Batch, where);
    request.batch = shape;
    return request;
  }

  State state_;
  Progress progress_;
  int32_t current_ = 0;     ///< the block that the last Iterate has computed
  int32_t async_next_ = 0;  ///< blocks that GetTensorC<false> has taken
  int32_t batch_a_ = 0;
  int32_t batch_b_ = 0;
  uint64_t workspace_ = 0;
  uint64_t first_step_ = 0;  ///< of the last request
  uint64_t last_step_ = 0;
  uint8_t sub_block_ = static_cast<uint8_t>(AscendC::GetSubBlockIdx());
  LocalOperands<A_TYPE, B_TYPE, BiasT> local_;
  std::vector<PendingSum> sums_;  ///< what the next GetTensorC carries out
};

}  // namespace opkit::matmul
