/// Single products of a Matmul object: Iterate, GetTensorC, IterateAll. Source: Ascend C API, Matmul kernel side.
///
/// On a vector core Iterate only notes what is to be computed, and GetTensorC has the cube core do it.
#pragma once

#include <utility>
#include <vector>

#include "opkit/matmul/run.h"
#include "opkit/matmul/settings.h"

namespace opkit::matmul {

template <typename A_TYPE, typename B_TYPE, typename C_TYPE, typename BIAS_TYPE, const auto& MM_CFG, typename MM_CB,
          Policy policy, bool is_direct>
class Blocks : public Settings<A_TYPE, B_TYPE, BIAS_TYPE, MM_CFG, is_direct> {
 public:
  using Base = Settings<A_TYPE, B_TYPE, BIAS_TYPE, MM_CFG, is_direct>;
  using Base::kConfig;
  using Base::kIsDirect;
  using DstT = typename C_TYPE::T;
  /// The operand as the core that computes sees it: what a vector core holds itself comes through global memory.
  template <typename TYPE>
  using Seen = std::conditional_t<kIsDirect, TYPE, FromGm<TYPE>>;
  using SeenC = std::conditional_t<is_in_l1(C_TYPE::pos), Seen<C_TYPE>, C_TYPE>;
  using Run = Runner<Seen<A_TYPE>, Seen<B_TYPE>, SeenC, BIAS_TYPE, MM_CFG, MM_CB, policy>;
  using CubeEngine = typename Run::CubeEngine;

  /// Computes the next block of C; with OUTER_PRODUCT the next two. False once there is none.
  template <bool sync = true>
  bool Iterate(bool enPartialSum = false, Where where = Where::here()) {
    check_mode<ITERATE_MODE_NORMAL>();
    static_assert(!kConfig.enableMixDualMaster, "Matmul: enableMixDualMaster goes with IterateAll, not with Iterate");
    if (!is_master()) return false;
    begin(where);
    if constexpr (!sync) {
      start_all_blocks(where);
      return true;
    }
    if constexpr (kIsPaired) return iterate_pair(enPartialSum, where);
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
      // A sum that nothing has carried out is overwritten, or added to.
      if (std::exchange(is_sum_in_units_, false)) clear_unit_flags();
      CubeEngine engine(state_);
      if (!enPartialSum && CubeEngine::follows_units()) {
        engine.compute_in_units(tile(current_), 0, state_.k_blocks(), nullptr);
        is_sum_in_units_ = true;
      } else {
        engine.compute_step(tile(current_), current_, enPartialSum);
      }
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
    check_mode<ITERATE_MODE_NORMAL>();
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
    check_mode<ITERATE_MODE_ALL>();
    if (!is_master() || fakeMsg) return;
    Request request = request_for(Work::All, where);
    request.destinations[0] = {address_of(gm), enSequentialWrite, enAtomic};
    perform<sync>(request, where);
  }
  template <bool sync = true>
  void IterateAll(const AscendC::LocalTensor<DstT>& ubCmatrix, uint8_t enAtomic = 0, Where where = Where::here()) {
    check_mode<ITERATE_MODE_ALL>();
    if (!is_master()) return;
    check_local_result(enAtomic, where);
    Request request = request_for(Work::All, where);
    // C is a matrix of its own, as large as this core's share; A and B lie as before.
    request.state.org_m = state_.single_m;
    request.state.org_c = state_.single_n;
    request.state.a_row = row_of_a();
    request.state.b_row = row_of_b();
    if constexpr (kIsDirect) {
      request.destinations[0].address = ubCmatrix.address();
      perform<true>(request, where);
      return;
    }
    request.destinations[0].address = local_.result_address(bytes<DstT>(whole_elements()), where);
    perform<true>(request, where);
    fetch(ubCmatrix, request.destinations[0].address, 1, bytes<DstT>(whole_elements()), 0, where);
  }

  template <bool sync = true>
  void GetTensorC(const AscendC::GlobalTensor<DstT>& gm, uint8_t enAtomic = 0, bool enSequentialWrite = false,
                  Where where = Where::here()) {
    check_get_tensor();
    if (!is_master()) return;
    state_.where = where;
    const Destination destination{address_of(gm), enSequentialWrite, enAtomic};
    if constexpr (kIsPaired) {
      carry_out_pair(destination, where);
    } else if constexpr (kIsDirect) {
      CubeEngine engine(state_);
      if (std::exchange(is_sum_in_units_, false)) {
        engine.carry_out_units(tile(current_), destination);
      } else {
        engine.carry_out(tile(current_), destination);
      }
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
    check_get_tensor();
    if (height != 0 || width != 0 || srcGap != 0 || dstGap != 0 || doPad) {
      illegal_operand("Matmul: GetTensorC: doPad, height, width, srcGap and dstGap keep their defaults", where);
    }
    if (!is_master()) return;
    check_local_result(enAtomic, where);
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
    check_get_tensor();
    if (!is_master()) return;
    check_local_result(0, where);
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
  /// The next block where Iterate<false> has put it: in the workspace. The document's example says <false>, public
  /// kernels leave it out.
  template <bool sync = true>
  AscendC::GlobalTensor<DstT> GetTensorC(uint8_t enAtomic = 0, bool enSequentialWrite = false,
                                         Where where = Where::here()) {
    (void)enAtomic, (void)enSequentialWrite;
    check_get_tensor();
    AscendC::GlobalTensor<DstT> tensor;
    if (!is_master()) return tensor;
    if (!sums_.empty() || kIsDirect) {
      illegal_operand("Matmul: GetTensorC without a tensor takes Iterate<false>: Iterate has nothing in the workspace",
                      where);
    }
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

  void End() { restart(); }

 protected:
  using Base::current_;
  using Base::local_;
  using Base::progress_;
  using Base::restart;
  using Base::row_of_a;
  using Base::row_of_b;
  using Base::state_;
  using Base::workspace_;
  using Base::workspace_or_fault;
  static constexpr bool kIsPaired = kConfig.scheduleType == ScheduleType::OUTER_PRODUCT;

  /// Whether the core that calls it is the one whose calls count.
  static bool is_master() { return core_variables().is_cube == kIsDirect; }

  Tile tile(int32_t step) const { return Progress::tile(state_, step, CubeEngine::kIsPartial); }
  static uint64_t address_of(const AscendC::GlobalTensor<DstT>& tensor) {
    return reinterpret_cast<uint64_t>(tensor.GetPhyAddr());
  }
  int64_t whole_elements() const { return CubeEngine::Out::elements(state_.single_m, state_.single_n); }

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
  /// A configuration may name the one Iterate function that is called; the chip's code has no other then.
  template <uint8_t mode>
  static constexpr void check_mode() {
    static_assert((kConfig.iterateMode & mode) != 0, "Matmul: iterateMode of the configuration excludes this function");
  }
  static constexpr void check_get_tensor() {
    static_assert(kConfig.enableGetTensorC, "Matmul: GetTensorC takes a configuration with enableGetTensorC");
    static_assert(!kConfig.enableMixDualMaster,
                  "Matmul: enableMixDualMaster goes with IterateAll, not with GetTensorC");
  }
  static void check_local_result(uint8_t atomic, Where where) {
    if (kIsDirect && !CubeEngine::Out::kIsL1) {
      illegal_operand("Matmul: a cube core has no way to UB on this chip", where);
    }
    if (atomic != 0) illegal_operand("Matmul: atomic writes go to global memory, not to UB or L1", where);
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

  /// Two blocks side by side, or the last one alone, stay in the two parts of L0C.
  bool iterate_pair(bool keeps_sum, Where where) {
    static_assert(kIsDirect || !kIsPaired, "Matmul: Iterate with OUTER_PRODUCT is for kernels of cube cores alone");
    static_assert(!kIsPaired || !CubeEngine::kIsPacked, "Matmul: MDL with OUTER_PRODUCT goes with IterateAll only");
    static_assert(!kIsPaired || policy == Policy::Default, "Matmul: OUTER_PRODUCT does not go with a triangle policy");
    if (progress_.next >= Progress::pairs(state_)) {
      restart();
      return false;
    }
    if (progress_.next == 0) start_pass(where);
    current_ = progress_.next++;
    const Pair pair = Progress::pair(state_, current_);
    CubeEngine(state_).compute_step(tile(pair.first), pair.first, keeps_sum);
    if (pair.second < 0) return true;
    CubeEngine engine(state_);
    if (engine.sum_parts() < 2) {
      illegal_operand("Matmul: OUTER_PRODUCT keeps two blocks in L0C: they are to fit, and dbL0C is to be 2", where);
    }
    engine.compute_step(tile(pair.second), pair.second, keeps_sum, 1);
    return true;
  }
  void carry_out_pair(const Destination& destination, Where where) {
    if (destination.is_sequential) {
      illegal_operand("Matmul: with OUTER_PRODUCT opkit writes blocks to their places, not one behind the other",
                      where);
    }
    const Pair pair = Progress::pair(state_, current_);
    CubeEngine engine(state_);
    engine.carry_out(tile(pair.first), destination);
    if (pair.second >= 0) engine.carry_out(tile(pair.second), destination);
  }

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

  /// Where a block, which lies without gaps, goes in a matrix of `m` rows whose rows are `row` elements long.
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

  int32_t async_next_ = 0;   ///< blocks, or batches, that have been taken of what a call without waiting computes
  uint64_t first_step_ = 0;  ///< of the last request
  uint64_t last_step_ = 0;
  bool is_sum_in_units_ = false;  ///< the last Iterate's, on a cube core
  std::vector<PendingSum> sums_;  ///< what the next GetTensorC carries out
};

}  // namespace opkit::matmul
