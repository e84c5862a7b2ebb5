// Bytes outside a tensor, a buffer or a memory; bytes never written.

// MEM-BOUNDS: the lanes of the last repeat lie behind the tensor
template <bool kMended>
inline void repeats_leave_the_tensor(GM_ADDR, GM_ADDR) {
  LocalTensor<float> a(TPosition::VECCALC, 0, 128);
  Duplicate(a, 1.0f, 64, kMended ? 2 : 3, 1, 8);  // here
}

// MEM-BOUNDS: one lane of a bit mask lies behind the tensor; the others do not
template <bool kMended>
inline void a_masked_lane_leaves_the_tensor(GM_ADDR, GM_ADDR) {
  LocalTensor<float> a(TPosition::VECCALC, 0, 32);
  const uint64_t mask[2] = {kMended ? 0x55555555ull : 0x155555555ull, 0};
  Duplicate(a, 1.0f, mask, 1, 1, 8);  // here
}

// MEM-BOUNDS: a copy reads behind the array that it was given
template <bool kMended>
inline void copy_leaves_the_array(GM_ADDR x, GM_ADDR) {
  GlobalTensor<float> array;
  array.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(x), 136);
  LocalTensor<float> a(TPosition::VECIN, 0, 136);
  DataCopy(a, array, kMended ? 128 : 136);  // here
}

// MEM-BOUNDS: the second burst of a copy with gaps ends behind the tensor
template <bool kMended>
inline void strided_copy_leaves_the_tensor(GM_ADDR x, GM_ADDR) {
  LocalTensor<float> a(TPosition::VECIN, 0, 32);
  DataCopy(a, input(x), DataCopyParams(2, 2, 0, kMended ? 0 : 1));  // here
}

// MEM-BOUNDS: a scalar is read one element behind the tensor
template <bool kMended>
inline void scalar_behind_the_tensor(GM_ADDR, GM_ADDR) {
  LocalTensor<float> a(TPosition::VECCALC, 0, 64);
  Duplicate(a, 1.0f, 64);
  (void)a.GetValue(kMended ? 63 : 64);  // here
}

// MEM-OVERFULL: buffers of UB want more than there is
template <bool kMended>
inline void too_much_ub(GM_ADDR, GM_ADDR) {
  TPipe pipe;
  TQue<TPosition::VECIN, 2> queue;
  TBuf<TPosition::VECCALC> buffer;
  pipe.InitBuffer(queue, 2, 64 * 1024);
  pipe.InitBuffer(buffer, (kMended ? 64 : 65) * 1024);  // here
}

// MEM-OVERFULL, cube: buffers of L1 want more than there is
template <bool kMended>
inline void too_much_l1(GM_ADDR, GM_ADDR) {
  TPipe pipe;
  TQue<TPosition::A1, 2> queue;
  pipe.InitBuffer(queue, 2, (kMended ? 256 : 257) * 1024);  // here
}

// MEM-OVERFULL, cube: L0A is full
template <bool kMended>
inline void too_much_l0a(GM_ADDR, GM_ADDR) {
  TPipe pipe;
  TQue<TPosition::A2, 2> queue;
  pipe.InitBuffer(queue, 2, (kMended ? 32 : 33) * 1024);  // here
}

// MEM-BOUNDS, cube: the second fractal lies behind its tensor in L1
template <bool kMended>
inline void fractal_leaves_the_tensor(GM_ADDR x, GM_ADDR) {
  Tile tile(x);
  tile.copy_in();
  PipeBarrier<PIPE_ALL>();
  LocalTensor<half> part(TPosition::A1, 0, kMended ? 512 : 256);
  LoadData(tile.a2, part, LoadData2DParams(0, 2, 1, 0, 0, false, 0));  // here
  PipeBarrier<PIPE_ALL>();
}

// MEM-ALIGN: an operand begins in the middle of a data block
template <bool kMended>
inline void operand_in_the_middle_of_a_block(GM_ADDR, GM_ADDR) {
  LocalTensor<float> a(TPosition::VECCALC, 0, 128);
  Duplicate(a[kMended ? 8 : 4], 1.0f, 64);  // here
}

// INIT-READ: one lane of a mask was never written
template <bool kMended>
inline void a_masked_lane_was_never_written(GM_ADDR, GM_ADDR) {
  LocalTensor<float> a(TPosition::VECCALC, 0, 64);
  LocalTensor<float> b(TPosition::VECCALC, 256, 64);
  Duplicate(a, 1.0f, 32);
  const uint64_t mask[2] = {kMended ? 0xffffffffull : 0x1ffffffffull, 0};
  Adds(b, a, 1.0f, mask, 1, {1, 1, 8, 8});  // here
}

// INIT-READ: a whole repeat to be compared was never written; the rest of one may lack, its count has to fill it
template <bool kMended>
inline void compared_repeat_never_written(GM_ADDR, GM_ADDR) {
  LocalTensor<float> a(TPosition::VECCALC, 0, 128);
  LocalTensor<uint8_t> is_positive(TPosition::VECCALC, 512, 32);
  Duplicate(a, 1.0f, kMended ? 70 : 64);
  CompareScalar(is_positive, a, 0.0f, CMPMODE::GT, 128);  // here
}
// INIT-READ: a scalar is read from a buffer that nothing has filled
template <bool kMended>
inline void scalar_never_written(GM_ADDR, GM_ADDR) {
  LocalTensor<float> a(TPosition::VECCALC, 0, 64);
  if (kMended) Duplicate(a, 1.0f, 64);
  (void)a.GetValue(5);  // here
}

// INIT-READ: an accumulator is added to before it is set to zero
template <bool kMended>
inline void accumulator_not_cleared(GM_ADDR, GM_ADDR) {
  LocalTensor<float> a(TPosition::VECCALC, 0, 64);
  LocalTensor<float> total(TPosition::VECCALC, 256, 64);
  Duplicate(a, 1.0f, 64);
  if (kMended) Duplicate(total, 0.0f, 64);
  Add(total, total, a, 64);  // here
}

// INIT-READ, cube: L0A was filled by half and is multiplied as a whole
template <bool kMended>
inline void half_of_l0a(GM_ADDR x, GM_ADDR) {
  Tile tile(x);
  tile.load_all(kMended ? 2 : 1);
  Mmad(tile.c, tile.a2, tile.b2, tile.product());  // here
  PipeBarrier<PIPE_ALL>();
}

// INIT-READ, cube: products are added to a C that nothing has written
template <bool kMended>
inline void c_not_cleared(GM_ADDR x, GM_ADDR) {
  Tile tile(x);
  tile.load_all();
  MmadParams params = tile.product();
  params.cmatrixInitVal = kMended;
  Mmad(tile.c, tile.a2, tile.b2, params);  // here
  PipeBarrier<PIPE_ALL>();
}

// INIT-COPY-OUT, cube: Fixpipe carries out a C that nothing has written
template <bool kMended>
inline void c_never_computed(GM_ADDR x, GM_ADDR y) {
  Tile tile(x);
  tile.load_all();
  if (kMended) Mmad(tile.c, tile.a2, tile.b2, tile.product());
  PipeBarrier<PIPE_ALL>();
  tile.store(y);  // here
}

// INIT-COPY-OUT: the last row of a tile is copied out and never computed
template <bool kMended>
inline void last_row_never_computed(GM_ADDR, GM_ADDR y) {
  LocalTensor<float> a(TPosition::VECCALC, 0, 128);
  Duplicate(a, 1.0f, kMended ? 128 : 96);
  PipeBarrier<PIPE_ALL>();
  DataCopy(output(y), a, 128);  // here
}
