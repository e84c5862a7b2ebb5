/// What a cube core does for one call of a Matmul object: on its own account, or on a vector core's request.
#pragma once

#include "opkit/matmul/batch.h"
#include "opkit/matmul/engine.h"
#include "opkit/matmul/service.h"

namespace opkit::matmul {

/// One Iterate whose result has not been carried out yet.
struct PendingSum {
  State state;
  int32_t step = 0;
  bool keeps_sum = false;
};

enum class Work : uint8_t { All, Steps, Sums, Batch };

struct Request {
  Work work = Work::All;
  State state;
  Destination destinations[2];
  uint32_t destination_count = 1;
  const PendingSum* sums = nullptr;  ///< Work::Sums: in the vector core's memory, which waits
  uint32_t sum_count = 0;
  BatchShape batch;
};

template <typename A_TYPE, typename B_TYPE, typename C_TYPE, typename BIAS_TYPE, const auto& MM_CFG, typename MM_CB,
          Policy policy>
class Runner {
 public:
  using CubeEngine = Engine<A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE, MM_CFG, MM_CB, policy>;
  using CT = typename C_TYPE::T;
  using Steps = BatchStep<A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE>;

  /// For CubeRequest::serve.
  static void serve(const void* payload) {
    const Request& request = *static_cast<const Request*>(payload);
    run(request, [&] { finish_cube_step(request.state.where); });
    if (request.work != Work::Steps && request.work != Work::Batch) finish_cube_step(request.state.where);
  }

  /// `finished` is called behind each step of Work::Steps, and behind each loop of Work::Batch.
  template <typename Finished>
  static void run(const Request& request, Finished&& finished) {
    switch (request.work) {
      case Work::All: all(request); return;
      case Work::Steps: steps(request, finished); return;
      case Work::Sums: sums(request); return;
      case Work::Batch: batch(request, finished); return;
    }
  }

  /// Bytes of one whole base block of C where it lies without gaps.
  static int64_t tile_bytes(const State& state) {
    return bytes<CT>(CubeEngine::Out::elements(state.tiling.baseM, state.tiling.baseN));
  }

  /// Bytes of the blocks of C in front of a step's, where they lie one behind the other.
  static int64_t bytes_before(const State& state, int32_t step) {
    using Out = typename CubeEngine::Out;
    const Tile tile = Progress::tile(state, step, CubeEngine::kIsPartial);
    const int32_t m_begin = tile.m_index * state.tiling.baseM;
    const int32_t n_begin = tile.n_index * state.tiling.baseN;
    const bool is_by_rows = state.tiling.iterateOrder == 1;
    int64_t elements = is_by_rows ? Out::elements(m_begin, state.single_n) + Out::elements(tile.m, n_begin)
                                  : Out::elements(state.single_m, n_begin) + Out::elements(m_begin, tile.n);
    if (CubeEngine::kIsPartial) {
      elements *= state.k_blocks();
      elements += Progress::k_index(state, step, true) * Out::elements(tile.m, tile.n);
    }
    return bytes<CT>(elements);
  }

 private:
  static void all(const Request& request) {
    CubeEngine engine(request.state);
    const auto place = [&](int32_t step) {
      Destination destination = request.destinations[0];
      if (destination.is_sequential) destination.address += static_cast<uint64_t>(step * tile_bytes(request.state));
      return destination;
    };
    engine.carry_out_each(place, [] {});
  }

  /// Every block in its turn to a place of its own.
  template <typename Finished>
  static void steps(const Request& request, Finished&& finished) {
    CubeEngine engine(request.state);
    const auto place = [&](int32_t step) {
      Destination destination = request.destinations[0];
      destination.address += static_cast<uint64_t>(bytes_before(request.state, step));
      return destination;
    };
    engine.carry_out_each(place, finished);
  }

  static void sums(const Request& request) {
    for (uint32_t i = 0; i < request.sum_count; ++i) {
      const PendingSum& sum = request.sums[i];
      const Tile tile = Progress::tile(sum.state, sum.step, CubeEngine::kIsPartial);
      CubeEngine engine(sum.state);
      if (request.sum_count == 1 && request.destination_count == 1 && !sum.keeps_sum && engine.follows_units()) {
        engine.compute_in_units(tile, 0, sum.state.k_blocks(), nullptr);
        engine.carry_out_units(tile, request.destinations[0]);
        return;
      }
      engine.compute_step(tile, sum.step, sum.keeps_sum);
      if (i + 1 == request.sum_count) engine.carry_out(tile, request.destinations, request.destination_count);
    }
  }

  template <typename Finished>
  static void batch(const Request& request, Finished&& finished) {
    const BatchShape& shape = request.batch;
    const State& whole = request.state;
    const auto summed = static_cast<uint32_t>(Steps::summed(whole.tiling));
    const int64_t c_matrix = CubeEngine::Out::elements(whole.single_m, whole.single_n);
    for (uint32_t loop = 0; loop < shape.loops; ++loop) {
      for (uint32_t i = 0; i < shape.count(); i += summed) {
        const uint32_t index = loop * shape.count() + i;
        Destination destination = request.destinations[0];
        destination.is_sequential = false;
        destination.atomic = shape.atomic;
        destination.address += static_cast<uint64_t>(bytes<CT>(Steps::c_offset(whole, index, c_matrix)));
        matrix(request, index, summed, destination);
      }
      finished();
    }
  }

  /// One matrix of C, the sum of several products where C lacks their axis.
  static void matrix(const Request& request, uint32_t index, uint32_t summed, const Destination& destination) {
    constexpr bool kIsBiasBatch = CubeEngine::kConfig.isBiasBatch;
    const int32_t tiles = Progress::steps(request.state, false);
    for (int32_t step = 0; step < tiles; ++step) {
      const Tile tile = Progress::tile(request.state, step, false);
      for (uint32_t i = 0; i < summed; ++i) {
        const State one = Steps::state(request.state, request.batch, index + i, kIsBiasBatch);
        CubeEngine engine(one);
        engine.compute(tile, i > 0 || request.batch.keeps_sum, 0, one.k_blocks());
        if (i + 1 == summed) engine.carry_out(tile, destination);
      }
    }
  }
};

}  // namespace opkit::matmul
