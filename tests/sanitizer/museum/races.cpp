// Two pipes of one core, or two cores, at the same bytes in no order.

// RACE-RAW, cube: fractals are loaded from L1 before the copy from global memory is done
template <bool kMended>
inline void l1_read_too_early(GM_ADDR x, GM_ADDR) {
  Tile tile(x);
  tile.copy_in();
  if (kMended) pass<HardEvent::MTE2_MTE1>();
  tile.load_a();  // here
  PipeBarrier<PIPE_ALL>();
}

// RACE-WAR, cube: the next matrix is copied into L1 while fractals of this one are loaded
template <bool kMended>
inline void l1_overwritten(GM_ADDR x, GM_ADDR) {
  Tile tile(x);
  tile.copy_in();
  PipeBarrier<PIPE_ALL>();
  tile.load_a();
  if (kMended) pass<HardEvent::MTE1_MTE2>();
  tile.copy_a();  // here
  PipeBarrier<PIPE_ALL>();
}

// RACE-RAW, cube: Mmad begins before L0A is loaded
template <bool kMended>
inline void l0a_multiplied_too_early(GM_ADDR x, GM_ADDR) {
  Tile tile(x);
  tile.copy_in();
  PipeBarrier<PIPE_ALL>();
  tile.load_b();
  pass<HardEvent::MTE1_M>();
  tile.load_a();
  if (kMended) pass<HardEvent::MTE1_M>();
  Mmad(tile.c, tile.a2, tile.b2, tile.product());  // here
  PipeBarrier<PIPE_ALL>();
}

// RACE-WAR, cube: L0A is loaded anew while Mmad reads it
template <bool kMended>
inline void l0a_overwritten(GM_ADDR x, GM_ADDR) {
  Tile tile(x);
  tile.load_all();
  Mmad(tile.c, tile.a2, tile.b2, tile.product());
  if (kMended) pass<HardEvent::M_MTE1>();
  tile.load_a();  // here
  PipeBarrier<PIPE_ALL>();
}

// RACE-RAW, cube: C is carried out before Mmad is done
template <bool kMended>
inline void c_carried_out_too_early(GM_ADDR x, GM_ADDR y) {
  Tile tile(x);
  tile.load_all();
  Mmad(tile.c, tile.a2, tile.b2, tile.product());
  if (kMended) pass<HardEvent::M_FIX>();
  tile.store(y);  // here
  PipeBarrier<PIPE_ALL>();
}

// RACE-WAR, cube: the next product overwrites C while it is carried out
template <bool kMended>
inline void c_overwritten(GM_ADDR x, GM_ADDR y) {
  Tile tile(x);
  tile.load_all();
  Mmad(tile.c, tile.a2, tile.b2, tile.product());
  PipeBarrier<PIPE_ALL>();
  tile.store(y);
  if (kMended) pass<HardEvent::FIX_M>();
  Mmad(tile.c, tile.a2, tile.b2, tile.product());  // here
  PipeBarrier<PIPE_ALL>();
}

// RACE-RAW, cube: the bias table is read before it is filled
template <bool kMended>
inline void bias_read_too_early(GM_ADDR x, GM_ADDR) {
  Tile tile(x);
  tile.load_all();
  LocalTensor<float> bias1(TPosition::C1, 8192, 16), bias2(TPosition::C2, 0, 16);
  DataCopy(bias1, input(x), 16);
  pass<HardEvent::MTE2_MTE1>();
  DataCopy(bias2, bias1, DataCopyParams(1, 1, 0, 0));
  if (kMended) pass<HardEvent::MTE1_M>();
  MmadParams params = tile.product();
  params.cmatrixInitVal = false;
  Mmad(tile.c, tile.a2, tile.b2, bias2, params);  // here
  PipeBarrier<PIPE_ALL>();
}

// RACE-RAW: flags of another pair of pipes order nothing here
template <bool kMended>
inline void flag_of_the_wrong_pair(GM_ADDR x, GM_ADDR) {
  LocalTensor<float> a(TPosition::VECIN, 0, 64);
  DataCopy(a, input(x), 64);
  pass<kMended ? HardEvent::MTE2_V : HardEvent::MTE2_MTE3>();
  Adds(a, a, 1.0f, 64);  // here
}

// RACE-RAW: global memory is read back before it is written
template <bool kMended>
inline void global_memory_read_back(GM_ADDR, GM_ADDR y) {
  LocalTensor<float> a(TPosition::VECIN, 0, 64), b(TPosition::VECIN, 256, 64);
  Duplicate(a, 1.0f, 64);
  PipeBarrier<PIPE_ALL>();
  DataCopy(output(y), a, 64);
  if (kMended) pass<HardEvent::MTE3_MTE2>();
  DataCopy(b, output(y), 64);  // here
}

// RACE-RAW: lanes of a mask meet what another pipe writes; the twin's lie beside it
template <bool kMended>
inline void lanes_that_meet(GM_ADDR x, GM_ADDR) {
  LocalTensor<float> a(TPosition::VECIN, 0, 64);
  Duplicate(a, 1.0f, 64);
  PipeBarrier<PIPE_ALL>();
  DataCopy(a, input(x), 32);
  const uint64_t mask[2] = {kMended ? 0xffffffff00000000ull : 0xffffffff80000000ull, 0};
  Adds(a, a, 1.0f, mask, 1, {1, 1, 8, 8});  // here
  PipeBarrier<PIPE_ALL>();
}

// RACE-WAW: a copy and a fill of the same buffer
template <bool kMended>
inline void fill_behind_a_copy(GM_ADDR x, GM_ADDR) {
  LocalTensor<float> a(TPosition::VECIN, 0, 64);
  DataCopy(a, input(x), 64);
  if (kMended) pass<HardEvent::MTE2_V>();
  Duplicate(a, 1.0f, 8);  // here
}

// RACE-CORES-READ, 2 blocks: a block reads its neighbour's part without SyncAll
template <bool kMended>
inline void neighbour_read_without_barrier(GM_ADDR x, GM_ADDR y) {
  LocalTensor<float> a(TPosition::VECIN, 0, 8);
  const int mine = GetBlockIdx();
  Duplicate(a, 1.0f, 8);
  PipeBarrier<PIPE_ALL>();
  DataCopy(output(y)[mine * 8], a, 8);
  if (kMended) SyncAll();
  PipeBarrier<PIPE_ALL>();
  DataCopy(a, output(y)[(1 - mine) * 8], 8);  // here
}

// RACE-CORES-WRITE, 2 blocks: one of two writers is not atomic
template <bool kMended>
inline void plain_write_meets_atomic_one(GM_ADDR, GM_ADDR y) {
  LocalTensor<float> a(TPosition::VECIN, 0, 8);
  Duplicate(a, 1.0f, 8);
  PipeBarrier<PIPE_ALL>();
  if (kMended || GetBlockIdx() == 1) SetAtomicAdd<float>();
  DataCopy(output(y), a, 8);  // here
  SetAtomicNone();
}

// RACE-CORES-READ, mixed: vector cores read what the cube core carries out, in no order
template <bool kMended>
inline void product_read_too_early(GM_ADDR x, GM_ADDR y) {
  if ASCEND_IS_AIC {
    Tile tile(x);
    tile.load_all();
    Mmad(tile.c, tile.a2, tile.b2, tile.product());
    pass<HardEvent::M_FIX>();
    tile.store(y);
    CrossCoreSetFlag<2, PIPE_FIX>(4);
  } else {
    LocalTensor<float> a(TPosition::VECIN, 0, 64);
    if (kMended) CrossCoreWaitFlag(4);
    DataCopy(a, output(y), 64);  // here
    if (!kMended) CrossCoreWaitFlag(4);
  }
}

// RACE-RAW, mixed: a vector core reads back what it has written; the twin waits for the cube core's answer first
template <bool kMended>
inline void read_back_behind_an_answer(GM_ADDR, GM_ADDR y) {
  if ASCEND_IS_AIC {
    CrossCoreWaitFlag(5);
    CrossCoreSetFlag<2, PIPE_FIX>(6);
  } else {
    LocalTensor<float> a(TPosition::VECIN, 0, 8), b(TPosition::VECIN, 256, 8);
    Duplicate(a, 1.0f, 8);
    PipeBarrier<PIPE_ALL>();
    DataCopy(output(y)[GetSubBlockIdx() * 8], a, 8);
    CrossCoreSetFlag<2, PIPE_MTE3>(5);
    if (kMended) CrossCoreWaitFlag(6);
    DataCopy(b, output(y)[GetSubBlockIdx() * 8], 8);  // here
    if (!kMended) CrossCoreWaitFlag(6);
  }
}

// RACE-RAW, 2 blocks: sums are read back; in the twin behind a flag that every core sets, this one too
template <bool kMended>
inline void read_back_behind_a_flag_of_all(GM_ADDR, GM_ADDR y) {
  LocalTensor<float> a(TPosition::VECIN, 0, 8), b(TPosition::VECIN, 256, 8);
  Duplicate(a, 1.0f, 8);
  PipeBarrier<PIPE_ALL>();
  DataCopy(output(y)[GetBlockIdx() * 8], a, 8);
  CrossCoreSetFlag<0, PIPE_MTE3>(3);
  if (kMended) CrossCoreWaitFlag(3);
  DataCopy(b, output(y)[GetBlockIdx() * 8], 8);  // here
  if (!kMended) CrossCoreWaitFlag(3);
}

// RACE-RAW: what a queue for both ways holds goes out before it is computed
template <bool kMended>
inline void queue_for_both_ways(GM_ADDR x, GM_ADDR y) {
  GlobalTensor<float> input, output;
  input.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(x), 64);
  output.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(y), 64);
  TPipe pipe;
  TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> queue;
  pipe.InitBuffer(queue, 1, 256);
  LocalTensor<float> a = queue.AllocTensor<float>();
  DataCopy(a, input, 64);
  queue.EnQue<TPosition::GM, TPosition::VECIN>(a);
  a = queue.DeQue<TPosition::GM, TPosition::VECIN, float>();
  Adds(a, a, 1.0f, 64);
  if (kMended) {
    queue.EnQue<TPosition::VECOUT, TPosition::GM>(a);
    a = queue.DeQue<TPosition::VECOUT, TPosition::GM, float>();
  }
  DataCopy(output, a, 64);  // here
  queue.FreeTensor(a);
}
