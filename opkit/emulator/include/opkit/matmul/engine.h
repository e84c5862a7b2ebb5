/// The multiplication itself, on a cube core: base blocks through L1, L0A and L0B into L0C, all with the ordinary
/// instructions and flags. How blocks leave L0C is in output.h.
#pragma once

#include <algorithm>
#include <cstring>

#include "opkit/matmul/operand_load.h"
#include "opkit/matmul/output.h"

namespace opkit::matmul {

template <typename A_TYPE, typename B_TYPE, typename C_TYPE, typename BIAS_TYPE, const auto& MM_CFG, typename MM_CB,
          Policy policy>
class Engine {
 public:
  using AT = typename A_TYPE::T;
  using BT = typename B_TYPE::T;
  using BiasT = typename BIAS_TYPE::T;
  using SumT = typename AscendC::GetMmDstType<AT>::Type;
  using LoadA = OperandLoad<A_TYPE, true>;
  using LoadB = OperandLoad<B_TYPE, false>;
  static constexpr AscendC::MatmulConfig kConfig = ToMatmulConfig(MM_CFG);
  using Out = Output<C_TYPE, SumT, MM_CB, kConfig.isEnableChannelSplit>;
  static constexpr bool kIsSparse = IsSparse<B_TYPE>::value;
  static constexpr int32_t kSparsity = kIsSparse ? 2 : 1;  ///< elements along K for each that B has
  static constexpr bool kIsPartial = kConfig.isPartialOutput;
  static constexpr bool kIsStatic = is_static_tiling(MM_CFG);
  static constexpr bool kIsPacked = kConfig.doMultiDataLoad || kConfig.doSpecialMDL;

  explicit Engine(const State& state)
      : state_(state),
        context_(cube_context()),
        load_a_({state.a, a_row(state), !state.is_a_transposed}, kConfig.intrinsicsCheck, state.where),
        load_b_({state.b, b_row(state), state.is_b_transposed}, kConfig.intrinsicsCheck, state.where),
        l1_free_(Pipe::MTE1, Pipe::MTE2, state.where),
        a_free_{{Pipe::MTE1, Pipe::MTE2, state.where}, {Pipe::MTE1, Pipe::MTE2, state.where}},
        b_free_{{Pipe::MTE1, Pipe::MTE2, state.where}, {Pipe::MTE1, Pipe::MTE2, state.where}},
        a_full_{{Pipe::MTE2, Pipe::MTE1, state.where}, {Pipe::MTE2, Pipe::MTE1, state.where}},
        b_full_{{Pipe::MTE2, Pipe::MTE1, state.where}, {Pipe::MTE2, Pipe::MTE1, state.where}},
        l0_free_(Pipe::M, Pipe::MTE1, state.where),
        l0_full_{{Pipe::MTE1, Pipe::M, state.where}, {Pipe::MTE1, Pipe::M, state.where}},
        sum_full_(Pipe::M, Pipe::FIX, state.where),
        sum_free_{{Pipe::FIX, Pipe::M, state.where}, {Pipe::FIX, Pipe::M, state.where}} {
    // Whatever the kernel has done before may still be at work in the memories that this one takes.
    if (!context_.is_in_units || !follows_units()) sum_free_[0].order();
    plan();
  }

  /// Whether the policy wants this block of C.
  static bool is_wanted(const Tile& tile) {
    if (policy == Policy::UpperTriangle) return tile.m_index <= tile.n_index;
    if (policy == Policy::LowerTriangle) return tile.m_index >= tile.n_index;
    return true;
  }

  /// Sums one block of C in L0C over `k_count` base blocks of K. With `keeps_sum` to what L0C holds, else to 0 or the
  /// bias. `ahead` of as many blocks as L0C holds already.
  void compute(const Tile& tile, bool keeps_sum, int32_t k_first, int32_t k_count, uint32_t ahead = 0,
               const Tile* next = nullptr) {
    sum_free_[sum_part(ahead)].wait();
    compute_at(sum_address(ahead), tile, keeps_sum, k_first, k_count, next);
    sum_full_.set();
  }
  /// The same with unit flags: FIX follows M piece by piece, and carry_out() with `follows_units` comes next.
  void compute_in_units(const Tile& tile, int32_t k_first, int32_t k_count, const Tile* next) {
    sum_free_[sum_part()].wait();
    has_unit_flags_ = true;
    compute_at(sum_address(), tile, false, k_first, k_count, next);
    has_unit_flags_ = false;
  }
  /// Into a place of L0C that is free. `next`: the tile that follows, whose first blocks may be copied ahead.
  void compute_at(uint32_t sum, const Tile& tile, bool keeps_sum, int32_t k_first, int32_t k_count,
                  const Tile* next = nullptr) {
    const bool adds_bias = state_.has_bias && !keeps_sum && k_first == 0;
    library_work(state_.where, LibraryWork::Block, kIsStatic);
    if (adds_bias) load_bias(tile);
    const bool has_halves = halves() == 2;
    const int32_t k_end = k_first + k_count;
    const int32_t rotated = rotation(k_count);
    is_rotated_ = rotated > 0;
    k_start_ = k_first + rotated;
    Step steps[2];
    for (int32_t i = 0; i < k_count; ++i) {
      const int32_t k_index = k_first + (rotated + i) % k_count;
      Step& step = steps[i % 2];
      const Step before = steps[(i + 1) % 2];
      library_work(state_.where, LibraryWork::Step, kIsStatic);
      step.k = std::min(tiling().baseK, state_.single_k - k_index * tiling().baseK);
      // With one half of L0 its free flag covers the product before only once that is issued.
      if (i > 0 && !has_halves) multiply(tile, before, sum, keeps_sum, adds_bias, i == 1, false);
      step.a = take<true>(tile, k_index, k_end, next);
      step.b = take<false>(tile, k_index, k_end, next);
      to_l0(tile, step);
      if (i > 0 && has_halves) multiply(tile, before, sum, keeps_sum, adds_bias, i == 1, false);
    }
    multiply(tile, steps[(k_count - 1) % 2], sum, keeps_sum, adds_bias, k_count == 1, true);
  }

  /// Carries the block that compute() has left in L0C to memory.
  void carry_out(const Tile& tile, const Destination& destination) { carry_out(tile, &destination, 1); }
  void carry_out(const Tile& tile, const Destination* destinations, uint32_t count) {
    sum_full_.wait();
    for (uint32_t i = 0; i < count; ++i) Out(state_, context_).write(tile, destinations[i], sum_address(), false);
    context_.is_in_units = false;
    sum_free_[sum_part()].set();
    ++context_.c_phase;
  }
  /// Carries out what compute_in_units() has left.
  void carry_out_units(const Tile& tile, const Destination& destination) {
    Out(state_, context_).write(tile, destination, sum_address(), true);
    context_.is_in_units = true;
    ++context_.c_phase;
  }

  /// All of this core's C, block by block to the places that `place` names: unit flags and preloading where the
  /// configuration has them. `finished` is called behind each.
  template <typename Place, typename Finished>
  void carry_out_each(Place&& place, Finished&& finished) {
    const int32_t steps = Progress::steps(state_, kIsPartial);
    for (int32_t i = 0; i < steps; ++i) {
      const Tile tile = Progress::tile(state_, i, kIsPartial);
      if (!is_wanted(tile)) continue;
      const bool has_next = i + 1 < steps;
      const Tile next = has_next ? Progress::tile(state_, i + 1, kIsPartial) : Tile();
      if (follows_units()) {
        compute_in_units(tile, 0, state_.k_blocks(), has_next ? &next : nullptr);
        carry_out_units(tile, place(i));
      } else if (kIsPartial) {
        compute_step(tile, i, false);
        carry_out(tile, place(i));
      } else {
        compute(tile, false, 0, state_.k_blocks(), 0, has_next ? &next : nullptr);
        carry_out(tile, place(i));
      }
      finished();
    }
  }

  void compute_step(const Tile& tile, int32_t step, bool keeps_sum, uint32_t ahead = 0) {
    if constexpr (kIsPartial) {
      compute(tile, keeps_sum, Progress::k_index(state_, step, true), 1, ahead);
    } else {
      compute(tile, keeps_sum, 0, state_.k_blocks(), ahead);
    }
  }

  /// Whether FIX can follow M in pieces: each block of C is one sum that goes to one place.
  static bool follows_units() {
    return kConfig.enUnitFlag && !kIsPartial && !kIsSparse && MM_CB::CopyOut == nullptr && !Out::kIsSplit &&
           local_memory_bytes(Space::FB) > 0;
  }

  /// Blocks of C that L0C holds at a time.
  uint32_t sum_parts() const {
    return tiling().dbL0C == 2 && sum_bytes() * 2 <= local_memory_bytes(Space::L0C) ? 2 : 1;
  }

 private:
  /// SetHF32, for the length of one product: the kernel's own setting is for its own Mmad.
  class Hf32 {
   public:
    explicit Hf32(const State& state)
        : was_on_(matrix_registers().is_hf32), was_halfway_(matrix_registers().hf32_halfway) {
      if (!state.is_hf32) return;
      matrix_registers().is_hf32 = true;
      matrix_registers().hf32_halfway = state.hf32_halfway;
    }
    Hf32(const Hf32&) = delete;
    Hf32& operator=(const Hf32&) = delete;
    ~Hf32() {
      matrix_registers().is_hf32 = was_on_;
      matrix_registers().hf32_halfway = was_halfway_;
    }

   private:
    bool was_on_;
    HalfwayTo was_halfway_;
  };

  /// What one operand gives to a base block of K.
  struct Part {
    Block block;
    int32_t slot = -1;     ///< of L1; -1: the kernel itself has put it there
    int32_t k_offset = 0;  ///< elements from the block's start
  };

  /// One base block of K on its way.
  struct Step {
    Part a;
    Part b;
    int32_t k = 0;
    uint32_t phase = 0;  ///< half of L0A and L0B
  };

  /// An operand's block in L1 that has been asked for.
  struct Asked {
    int32_t outer = -1;  ///< block of M or N; -1: nothing has been asked for
    int32_t inner = 0;   ///< block of K in L1
    int32_t event = -1;  ///< set when its copy is done; -1: L1 has held it
    Part part;

    bool is(int32_t outer_index, int32_t inner_index) const { return outer == outer_index && inner == inner_index; }
  };

  static int32_t a_row(const State& s) {
    if (LoadA::kIsLocal) return s.is_a_transposed ? s.single_k : s.single_m;
    if (s.a_row > 0) return s.a_row;
    if (LoadA::kIsNz) return align_up(s.is_a_transposed ? s.org_ka : s.org_m, 16);
    return s.is_a_transposed ? s.org_m : s.org_ka;
  }
  static int32_t b_row(const State& s) {
    if (LoadB::kIsLocal) return s.is_b_transposed ? s.single_n : s.single_k;
    if (s.b_row > 0) return s.b_row;
    if (kIsSparse && !LoadB::kIsNz) return s.org_kb / kSparsity;
    if (LoadB::kIsNz) return align_up(s.is_b_transposed ? s.org_n : s.org_kb, 16);
    return s.is_b_transposed ? s.org_kb : s.org_n;
  }

  const TCubeTiling& tiling() const { return state_.tiling; }
  int32_t a_depth() const { return MM_CB::CopyA1 == nullptr && kIsPacked ? std::max(1, tiling().stepKa) : 1; }
  int32_t b_depth() const { return MM_CB::CopyB1 == nullptr && kIsPacked ? std::max(1, tiling().stepKb) : 1; }

  /// Where along K the core begins, with enableKdimReorderLoad: cores begin at blocks of L1 of their own.
  int32_t rotation(int32_t k_count) const {
    if (!kConfig.enableKdimReorderLoad || !kIsPacked || k_count != state_.k_blocks()) return 0;
    const int32_t block = std::max(a_depth(), b_depth());
    if (block % std::min(a_depth(), b_depth()) != 0) return 0;
    return static_cast<int32_t>(AscendC::GetBlockIdx()) % ceil_div(k_count, block) * block;
  }

  uint32_t halves() const {
    const int64_t a = bytes<AT>(int64_t{align_up(tiling().baseM, 16)} * align_up(tiling().baseK, LoadA::kWidth));
    const int64_t b = bytes<BT>(int64_t{align_up(tiling().baseN, 16)} * align_up(tiling().baseK, LoadB::kWidth));
    return a * 2 <= local_memory_bytes(Space::L0A) && b * 2 <= local_memory_bytes(Space::L0B) ? 2 : 1;
  }
  uint32_t sum_bytes() const {
    return static_cast<uint32_t>(align_up(tiling().baseM, 16) * align_up(tiling().baseN, 16)) * sizeof(SumT);
  }
  uint32_t sum_part(uint32_t ahead = 0) const { return (context_.c_phase + ahead) % sum_parts(); }
  uint32_t sum_address(uint32_t ahead = 0) const {
    return local_memory_bytes(Space::L0C) - (sum_part(ahead) + 1) * sum_bytes();
  }

  /// Divides the upper end of L1. What an earlier block of the same pass has left there stays of use.
  void plan() {
    const TCubeTiling& t = tiling();
    if (sum_bytes() > local_memory_bytes(Space::L0C)) {
      illegal_operand("Matmul: baseM * baseN of the tiling does not fit into L0C", state_.where);
    }
    Slots a;
    Slots b;
    a.slot_bytes = LoadA::kIsLocal ? 0 : LoadA::block_bytes(t.baseM, t.baseK * a_depth());
    b.slot_bytes = LoadB::kIsLocal ? 0 : LoadB::block_bytes(t.baseN, t.baseK * b_depth() / kSparsity);
    if (kIsSparse) b.slot_bytes += b.slot_bytes / 4;  // two bits for each element
    if (kIsSparse && (state_.index == 0 || t.baseK % 64 != 0 || state_.is_a_transposed || !state_.is_b_transposed)) {
      illegal_operand("Matmul: a sparse B takes SetSparseIndex, a transposed B, an A that is not, and a baseK of 64s",
                      state_.where);
    }
    a.count = slot_count(t.depthA1, a_depth(), a.slot_bytes);
    b.count = slot_count(t.depthB1, b_depth(), b.slot_bytes);
    const uint32_t end = local_memory_bytes(Space::L1);
    const uint32_t free = end - taken_bytes(Space::L1);
    const uint32_t bias_bytes = state_.has_bias ? align_up(t.baseN, 64) * 4 : 0;
    const uint32_t quant_bytes = state_.quant_form == QuantForm::Vector ? align_up(t.baseN, 16) * 8 : 0;
    const auto total = [&] { return a.count * a.slot_bytes + b.count * b.slot_bytes + bias_bytes + quant_bytes; };
    // Other buffers of the kernel may leave less than the tiling counted on; copies are then made more often.
    while (total() > free && (a.count > 1 || b.count > 1)) --(a.count > 1 && a.count >= b.count ? a : b).count;
    if (total() > free) {
      illegal_operand("Matmul: L1 does not hold one block of A and one of B beside the kernel's own buffers",
                      state_.where);
    }
    const uint32_t begin = end - total();
    const bool is_same = context_.pass == state_.pass && context_.a.begin == begin && context_.a.count == a.count &&
                         context_.b.count == b.count;
    if (is_same) return;
    a.begin = begin;
    b.begin = begin + a.count * a.slot_bytes;
    context_.bias_begin = b.begin + b.count * b.slot_bytes;
    context_.quant_begin = context_.bias_begin + bias_bytes;
    context_.pass = state_.pass;
    context_.a = a;
    context_.b = b;
    context_.a.clear();
    context_.b.clear();
  }

  static uint32_t slot_count(int32_t depth, int32_t step, uint32_t slot_bytes) {
    if (slot_bytes == 0) return 1;
    return static_cast<uint32_t>(std::clamp(depth / step, 1, static_cast<int32_t>(kMaxSlots)));
  }

  /// A's part (B's) in a base block of K. At the first of a block in L1 the next one is asked for, so that it is copied
  /// while this one is multiplied: the flag that frees its place covers only what has been read so far.
  template <bool is_left>
  Part take(const Tile& tile, int32_t k_index, int32_t k_end, const Tile* next) {
    using Load = std::conditional_t<is_left, LoadA, LoadB>;
    if constexpr (Load::kIsLocal) {
      bool is_copying = false;
      return fetch<is_left>(tile, k_index, -1, is_copying);
    }
    const int32_t depth = is_left ? a_depth() : b_depth();
    const int32_t outer = is_left ? tile.m_index : tile.n_index;
    Asked& ahead = ahead_[is_left];
    Asked& held = held_[is_left];
    if (!held.is(outer, k_index / depth)) {
      leave<is_left>(held.part.slot);
      if (!ahead.is(outer, k_index / depth)) ask<is_left>(tile, k_index, -1);
      held = ahead;
      ahead = Asked();
      const Slots& slots = is_left ? context_.a : context_.b;
      if (slots.count > 1) ask_next<is_left>(tile, k_index / depth, k_end, held.part.slot, next);
      if (held.event >= 0) full<is_left>(held.event).wait();
    }
    Part part = held.part;
    part.k_offset = k_index % depth * tiling().baseK;
    return part;
  }

  /// Starts copying the block of L1 that holds `k_index`, if L1 does not hold it. The slot `kept` is still in use.
  template <bool is_left>
  void ask(const Tile& tile, int32_t k_index, int32_t kept) {
    Asked& ahead = ahead_[is_left];
    // What was preloaded and is not what comes.
    if (ahead.event >= 0) full<is_left>(ahead.event).wait();
    ahead = Asked();
    ahead.outer = is_left ? tile.m_index : tile.n_index;
    ahead.inner = k_index / (is_left ? a_depth() : b_depth());
    bool is_copying = false;
    ahead.part = fetch<is_left>(tile, k_index, kept, is_copying);
    if (!is_copying) return;
    ahead.event = static_cast<int32_t>(turn_[is_left]++ % 2);
    full<is_left>(ahead.event).set();
  }

  /// Asks for what comes behind block `inner` of K: the next one, or with doMTE2Preload the first of the next tile.
  template <bool is_left>
  void ask_next(const Tile& tile, int32_t inner, int32_t k_end, int32_t kept, const Tile* next) {
    int32_t k_next = (inner + 1) * (is_left ? a_depth() : b_depth());
    if (k_next >= k_end && is_rotated_) k_next = 0;
    if (k_next < k_end && k_next != k_start_) return ask<is_left>(tile, k_next, kept);
    constexpr uint32_t kPreloads = is_left ? 1 : 2;
    if (kConfig.doMultiDataLoad && kConfig.doMTE2Preload == kPreloads && next != nullptr) {
      ask<is_left>(*next, k_start_, kept);
    }
  }

  template <bool is_left>
  Event& full(int32_t event) {
    return (is_left ? a_full_ : b_full_)[event];
  }

  /// MTE1 has been given all that it reads of a slot. Slots share two events: a later signal covers an earlier one.
  template <bool is_left>
  void leave(int32_t slot) {
    if (slot < 0) return;
    Event& free = (is_left ? a_free_ : b_free_)[slot % 2];
    free.wait();
    free.set();
  }
  /// MTE2 waits until it may overwrite a slot; at first also for what others have done with L1.
  template <bool is_left>
  void reuse(uint32_t slot) {
    if (!has_begun_[is_left]) l1_free_.order();
    has_begun_[is_left] = true;
    (is_left ? a_free_ : b_free_)[slot % 2].wait();
  }

  template <bool is_left>
  const auto& load() const {
    if constexpr (is_left) {
      return load_a_;
    } else {
      return load_b_;
    }
  }

  /// A's part (B's) in a base block of K; copies it to L1 where that does not hold it. The slot `kept` is still in use.
  template <bool is_left>
  Part fetch(const Tile& tile, int32_t k_index, int32_t kept, bool& is_copying) {
    using Load = std::conditional_t<is_left, LoadA, LoadB>;
    constexpr AscendC::MatmulCopyIn kCallBack = is_left ? MM_CB::CopyA1 : MM_CB::CopyB1;
    constexpr int32_t kPacking = is_left ? 1 : kSparsity;
    const int32_t outer_index = is_left ? tile.m_index : tile.n_index;
    const int32_t outer_begin = outer_index * (is_left ? tiling().baseM : tiling().baseN);
    const int32_t outer = is_left ? tile.m : tile.n;
    Part part;
    if constexpr (Load::kIsLocal) {
      part.block = load<is_left>().in_l1(outer_begin, k_index * tiling().baseK);
      return part;
    }
    Slots& slots = is_left ? context_.a : context_.b;
    const int32_t depth = is_left ? a_depth() : b_depth();
    const int32_t inner = k_index / depth;
    const int32_t k_begin = inner * depth * tiling().baseK;
    const int32_t k = std::min(depth * tiling().baseK, state_.single_k - k_begin);
    const uint32_t slot = place<is_left>(slots, outer_index, inner, kept, is_copying);
    const bool is_new = (slot & kIsNew) != 0;
    part.k_offset = k_index % depth * tiling().baseK;
    part.slot = static_cast<int32_t>(slot & ~kIsNew);
    const uint32_t address = slots.begin + static_cast<uint32_t>(part.slot) * slots.slot_bytes;
    if (!is_new) {
      part.block = load<is_left>().placed(address, outer, ceil_div(k, kPacking));
    } else if (is_left && state_.is_a_scalar) {
      part.block = fill_a(address, k);
    } else if constexpr (kCallBack != nullptr) {
      part.block = load<is_left>().placed(address, outer, k);
      const auto* matrix = reinterpret_cast<const void*>(is_left ? state_.a : state_.b);
      const AscendC::LocalTensor<int8_t> space(AscendC::TPosition::A1, address, slots.slot_bytes);
      if constexpr (is_left) {
        kCallBack(space, matrix, outer_index, k_index, outer, k, state_.user_define, state_.self_define);
      } else {
        kCallBack(space, matrix, k_index, outer_index, k, outer, state_.user_define, state_.self_define);
      }
    } else {
      part.block = load<is_left>().to_l1(address, outer_begin, outer, k_begin / kPacking, ceil_div(k, kPacking));
    }
    if constexpr (!is_left && kIsSparse) {
      part.block.index = address + slots.slot_bytes / 5 * 4;
      if (is_new) {
        load_b_.index_to_l1(part.block, state_.index, state_.org_n, outer_begin, outer, k_begin / kPacking,
                            ceil_div(k, kPacking));
      }
    }
    return part;
  }

  /// A row of equal elements.
  Block fill_a(uint32_t address, int32_t k) const {
    if constexpr (std::is_same<AT, half>::value || std::is_same<AT, float>::value) {
      AT value;
      std::memcpy(&value, &state_.a_scalar_bits, sizeof(value));
      // Whole fractals: those are what goes on to L0A.
      const auto fractals = static_cast<uint16_t>((bytes<AT>(k) + 511) / 512);
      AscendC::Fill(AscendC::LocalTensor<AT>(AscendC::TPosition::A1, address, fractals * (512 / sizeof(AT))),
                    AscendC::InitConstValueParams<AT>(1, static_cast<uint16_t>(fractals * 16), 0, value), state_.where);
    } else {
      (void)address;
      illegal_operand("Matmul: SetTensorA of a scalar takes half or float", state_.where);
    }
    return load_a_.placed(address, 1, k);
  }

  static constexpr uint32_t kIsNew = 1u << 31;

  /// The slot of a block, with kIsNew where it has to be filled; `kept` is not given away.
  template <bool is_left>
  uint32_t place(Slots& slots, int32_t outer, int32_t inner, int32_t kept, bool& is_copying) {
    const int32_t found = slots.find(outer, inner);
    if (found >= 0) return static_cast<uint32_t>(found);
    if (static_cast<int32_t>(slots.next) == kept) slots.next = (slots.next + 1) % slots.count;
    const uint32_t slot = slots.next;
    slots.next = (slots.next + 1) % slots.count;
    slots.outer[slot] = outer;
    slots.inner[slot] = inner;
    reuse<is_left>(slot);
    library_work(state_.where, LibraryWork::Copy, kIsStatic);
    is_copying = true;
    return slot | kIsNew;
  }

  void to_l0(const Tile& tile, Step& step) {
    l0_free_.order();
    step.phase = context_.phase++ % halves();
    load_a_.to_l0(step.phase * (local_memory_bytes(Space::L0A) / 2), step.a.block, step.a.k_offset, tile.m, step.k);
    const uint32_t b_half = step.phase * (local_memory_bytes(Space::L0B) / 2);
    if constexpr (kIsSparse) {
      load_b_.sparse_to_l0(b_half, step.b.block, step.b.k_offset / kSparsity, tile.n, ceil_div(step.k, kSparsity));
    } else {
      load_b_.to_l0(b_half, step.b.block, step.b.k_offset, tile.n, step.k);
    }
    l0_full_[step.phase].set();
  }

  void multiply(const Tile& tile, const Step& step, uint32_t sum, bool keeps_sum, bool adds_bias, bool is_first,
                bool is_last) {
    l0_full_[step.phase].wait();
    const AscendC::LocalTensor<SumT> c(AscendC::TPosition::CO1, sum, sum_bytes() / sizeof(SumT));
    const AscendC::LocalTensor<AT> a = l0_part<AT>(AscendC::TPosition::A2, Space::L0A, step.phase);
    const AscendC::LocalTensor<BT> b = l0_part<BT>(AscendC::TPosition::B2, Space::L0B, step.phase);
    AscendC::MmadParams params;
    // One row is a vector to Mmad, and A lies accordingly where it came as a line.
    params.m = static_cast<uint16_t>(tile.m == 1 && !step.a.block.is_line ? 2 : tile.m);
    params.n = static_cast<uint16_t>(Out::written_columns(tile.n));
    params.k = static_cast<uint16_t>(step.k);
    params.cmatrixInitVal = is_first && !keeps_sum && !adds_bias;
    params.cmatrixSource = is_first && adds_bias;
    params.kDirectionAlign = load_a_.is_k_padded();
    if (has_unit_flags_) params.unitFlag = is_last ? 3 : 2;
    if constexpr (kIsSparse) {
      AscendC::MmadWithSparse(c, a, b, params, state_.where);
    } else {
      const Hf32 rounding(state_);
      AscendC::Mmad(c, a, b, params, state_.where);
    }
  }

  template <typename T>
  static AscendC::LocalTensor<T> l0_part(AscendC::TPosition position, Space space, uint32_t phase) {
    const uint32_t address = phase * (local_memory_bytes(space) / 2);
    const auto elements = static_cast<uint32_t>((local_memory_bytes(space) - address) * 8 / element_bits<T>());
    return AscendC::LocalTensor<T>(position, address, elements);
  }

  /// The bias of a block's columns to the bias table, with zeros behind the last one.
  void load_bias(const Tile& tile) {
    const auto count = static_cast<uint32_t>(tile.n);
    uint32_t address = context_.bias_begin;
    if (state_.is_bias_local) {
      address =
          static_cast<uint32_t>(state_.bias + static_cast<uint64_t>(tile.n_index) * tiling().baseN * sizeof(BiasT));
    } else {
      l1_free_.order();
      const AscendC::LocalTensor<BiasT> line(AscendC::TPosition::A1, address, align_up(tile.n, 64));
      AscendC::GlobalTensor<BiasT> source;
      source.SetGlobalBuffer(reinterpret_cast<BiasT*>(state_.bias) +
                             static_cast<int64_t>(tile.n_index) * tiling().baseN);
      AscendC::Nd2NzParams params;
      params.ndNum = 1;
      params.nValue = 1;
      params.dValue = static_cast<uint16_t>(count);
      params.srcDValue = count;
      params.dstNzC0Stride = 1;
      params.dstNzNStride = 1;
      AscendC::DataCopy(line, source, params, state_.where);
      a_full_[0].order();
    }
    l0_free_.order();
    const AscendC::LocalTensor<SumT> table(AscendC::TPosition::C2, 0, local_memory_bytes(Space::BT) / sizeof(SumT));
    const AscendC::LocalTensor<BiasT> line(AscendC::TPosition::C1, address, align_up(tile.n, 64));
    AscendC::DataCopyParams params;
    params.blockCount = 1;
    params.blockLen = static_cast<uint16_t>(ceil_div(tile.n * static_cast<int32_t>(sizeof(BiasT)), 64));
    constexpr bool kIsTaken =
        std::is_same<BiasT, SumT>::value || (std::is_same<BiasT, half>::value && std::is_same<SumT, float>::value);
    if constexpr (kIsTaken) {
      AscendC::DataCopy(table, line, params, state_.where);
    } else {
      illegal_operand("Matmul: a bias is float, half or int32_t, as the sums are", state_.where);
    }
  }

  const State& state_;
  CubeContext& context_;
  LoadA load_a_;
  LoadB load_b_;
  Event l1_free_;
  Event a_free_[2];
  Event b_free_[2];
  Event a_full_[2];
  Event b_full_[2];
  Event l0_free_;
  Event l0_full_[2];
  Event sum_full_;
  Event sum_free_[2];
  Asked ahead_[2];  ///< by operand, A's at 1: not taken yet
  Asked held_[2];   ///< what steps take their parts from
  uint32_t turn_[2] = {0, 0};
  int32_t k_start_ = 0;  ///< block of K that the sum begins with
  bool is_rotated_ = false;
  bool has_begun_[2] = {false, false};
  bool has_unit_flags_ = false;
};

}  // namespace opkit::matmul
