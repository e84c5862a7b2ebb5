/// The Matmul object: settings, single products, and here batches. Source: Ascend C API, Matmul kernel side.
///
/// Where it computes: with ASCENDC_CUBE_ONLY, and in MatmulImpl, on the cube core that calls it. Else a vector core
/// calls it, and the cube core of its block, which serves requests from REGIST_MATMUL_OBJ on, computes.
#pragma once

#include "opkit/matmul/blocks.h"

namespace opkit::matmul {

#if defined(ASCENDC_CUBE_ONLY)
inline constexpr bool kIsCubeOnly = true;
#else
inline constexpr bool kIsCubeOnly = false;
#endif

/// Whether the core that calls an object computes.
template <const auto& MM_CFG>
constexpr bool is_direct(bool is_cube_only) {
  return is_cube_only || ToMatmulConfig(MM_CFG).enableMixDualMaster;
}

/// Inherits: the functions of all three are the object's own, and kernels call them as such. It may be copied, with all
/// that has been set: public kernels choose one of several by assigning it.
template <typename A_TYPE, typename B_TYPE, typename C_TYPE, typename BIAS_TYPE, const auto& MM_CFG, typename MM_CB,
          Policy policy, bool is_cube_only>
class Object
    : public Blocks<A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE, MM_CFG, MM_CB, policy, is_direct<MM_CFG>(is_cube_only)> {
 public:
  using Base = Blocks<A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE, MM_CFG, MM_CB, policy, is_direct<MM_CFG>(is_cube_only)>;
  using Base::kConfig;
  using Base::kIsDirect;
  using typename Base::DstT;
  using typename Base::Run;

  static_assert(!kConfig.intraBlockPartSum, "Matmul: intraBlockPartSum needs Ascend 950");
  static_assert(!kConfig.isCO1Shared, "Matmul: isCO1Shared needs Ascend 950");
  static_assert(!kConfig.enableRelu, "Matmul: enableRelu needs Ascend 950");
  static_assert(A_TYPE::format != CubeFormat::COLUMN_MAJOR && B_TYPE::format != CubeFormat::COLUMN_MAJOR &&
                    C_TYPE::format != CubeFormat::COLUMN_MAJOR,
                "Matmul: COLUMN_MAJOR needs Ascend 950");
  static_assert(std::is_same<typename A_TYPE::T, typename B_TYPE::T>::value,
                "Matmul: A and B have one type on this chip");

  void WaitIterateBatch(Where where = Where::here()) { await_last(where); }

  /// Vector cores: batches from GM to GM.
  template <bool sync = true, bool waitIterateBatch = false, bool is_requested = !kIsDirect>
  std::enable_if_t<is_requested> IterateBatch(const AscendC::GlobalTensor<DstT>& gm, uint32_t batchA, uint32_t batchB,
                                              bool enSequentialWrite, const uint32_t matrixStrideA = 0,
                                              const uint32_t matrixStrideB = 0, const uint32_t matrixStrideC = 0,
                                              const bool enPartialSum = false, const uint8_t enAtomic = 0,
                                              Where where = Where::here()) {
    check_batch<ITERATE_MODE_BATCH>(matrixStrideC, where);
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
    check_batch<ITERATE_MODE_BATCH>(matrixStrideC, where);
    if (!is_master()) return;
    check_local_result(enAtomic, where);
    const BatchShape shape{batchA, batchB, 1, matrixStrideA, matrixStrideB, enSequentialWrite, enPartialSum, 0};
    const int64_t result = bytes<DstT>(whole_elements() * (shape.count() / Run::Steps::summed(state_.tiling)));
    Request request = batch_request(shape, where);
    request.destinations[0].address = local_.result_address(result, where);
    this->template perform<true>(request, where);
    fetch(ubCmatrix, request.destinations[0].address, 1, result, 0, where);
  }
  /// Cube cores: as many as SetBatchNum says.
  template <bool computes = kIsDirect>
  std::enable_if_t<computes> IterateBatch(const AscendC::GlobalTensor<DstT>& gm, bool enPartialSum, uint8_t enAtomic,
                                          bool enSequentialWrite, const uint32_t matrixStrideA = 0,
                                          const uint32_t matrixStrideB = 0, const uint32_t matrixStrideC = 0,
                                          Where where = Where::here()) {
    check_batch<ITERATE_MODE_BATCH>(matrixStrideC, where);
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
    check_batch<ITERATE_MODE_N_BATCH>(matrixStrideC, where);
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

 private:
  using Base::address_of;
  using Base::async_next_;
  using Base::await_last;
  using Base::batch_a_;
  using Base::batch_b_;
  using Base::check_local_result;
  using Base::first_step_;
  using Base::is_master;
  using Base::local_;
  using Base::request_for;
  using Base::state_;
  using Base::whole_elements;
  using Base::workspace_or_fault;

  /// What the documents ask of calls for batches.
  template <uint8_t mode>
  static void check_batch(uint32_t matrix_stride_c, Where where) {
    Base::template check_mode<mode>();
    static_assert(!Run::CubeEngine::kIsPacked && !kConfig.doIBShareNorm,
                  "Matmul: batches go with the Norm template only");
    static_assert(!kConfig.enableMixDualMaster, "Matmul: enableMixDualMaster goes with IterateAll, not with batches");
    static_assert(!std::is_same<typename A_TYPE::T, AscendC::int4b_t>::value, "Matmul: batches do not take int4b_t");
    if (matrix_stride_c != 0) illegal_operand("Matmul: matrixStrideC is reserved and stays 0", where);
  }

  template <bool sync>
  void batch(uint64_t address, const BatchShape& shape, Where where) {
    Request request = batch_request(shape, where);
    request.destinations[0].address = address;
    this->template perform<sync>(request, where);
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
};

}  // namespace opkit::matmul
