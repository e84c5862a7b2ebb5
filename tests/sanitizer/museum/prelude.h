// What exhibits share.
#pragma once

#include "kernel_operator.h"
using namespace AscendC;

inline GlobalTensor<float> input(GM_ADDR x) {
  GlobalTensor<float> tensor;
  tensor.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(x), 128);
  return tensor;
}

inline GlobalTensor<float> output(GM_ADDR y) { return input(y); }

/// One pipe waits for another.
template <HardEvent event>
inline void pass() {
  SetFlag<event>(EVENT_ID7);
  WaitFlag<event>(EVENT_ID7);
}

/// Two fractals, A and B: C of 8 x 16 from 16 x 32 and 32 x 16 halves, of which global memory holds the first half.
struct Tile {
  GlobalTensor<half> matrix;
  LocalTensor<half> a1{TPosition::A1, 0, 512}, b1{TPosition::B1, 1024, 512};
  LocalTensor<half> a2{TPosition::A2, 0, 512}, b2{TPosition::B2, 0, 512};
  LocalTensor<float> c{TPosition::CO1, 0, 256};

  explicit Tile(GM_ADDR x) { matrix.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(x), 256); }

  // Findings point at the exhibit's line, not at these.
  void copy_a(opkit::Where at = opkit::Where::here()) {
    DataCopy(a1, matrix, 256, at);
    DataCopy(a1[256], matrix, 256, at);
  }
  void copy_in(opkit::Where at = opkit::Where::here()) {
    copy_a(at);
    DataCopy(b1, matrix, 256, at);
    DataCopy(b1[256], matrix, 256, at);
  }
  void load_a(int fractals = 2, opkit::Where at = opkit::Where::here()) {
    LoadData(a2, a1, LoadData2DParams(0, fractals, 1, 0, 0, false, 0), at);
  }
  void load_b(opkit::Where at = opkit::Where::here()) {
    LoadData(b2, b1, LoadData2DParams(0, 2, 1, 0, 0, false, 0), at);
  }
  /// L0A and L0B as Mmad wants them, behind a barrier.
  void load_all(int fractals_of_a = 2) {
    copy_in();
    PipeBarrier<PIPE_ALL>();
    load_a(fractals_of_a);
    load_b();
    PipeBarrier<PIPE_ALL>();
  }
  static MmadParams product() { return MmadParams(8, 16, 32, 0, false, true); }
  void store(GM_ADDR y, opkit::Where at = opkit::Where::here()) {
    Fixpipe(output(y), c, FixpipeParamsV220(16, 8, 16, 16, false), at);
  }
};
