// Pairs of kernels: an even tiling key shows a pattern that opkit.profiling.advise knows, the next odd one applies the
// advice. Both do the same work on the same bytes.
namespace {

constexpr uint32_t kTile = 4096;  // halves
constexpr uint32_t kTiles = 24;

struct Tensors {
  GlobalTensor<half> in, out;

  __aicore__ Tensors(GM_ADDR x, GM_ADDR y, uint64_t each) {
    in.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(x) + GetBlockIdx() * each, each);
    out.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(y) + GetBlockIdx() * each, each);
  }
};

__aicore__ LocalTensor<half> place(uint32_t byte, uint32_t elements) {
  return LocalTensor<half>(TPosition::VECCALC, byte, elements);
}

template <HardEvent event>
__aicore__ void order() {
  SetFlag<event>(EVENT_ID0);
  WaitFlag<event>(EVENT_ID0);
}

// Queues of one or two buffers, tiles of one length or of half of it.
template <uint32_t buffers, uint32_t tile = kTile>
__aicore__ void queues(GM_ADDR x, GM_ADDR y) {
  const Tensors gm(x, y, kTile * kTiles);
  TPipe pipe;
  TQue<TPosition::VECIN, buffers> in;
  TQue<TPosition::VECOUT, buffers> out;
  pipe.InitBuffer(in, buffers, tile * sizeof(half));
  pipe.InitBuffer(out, buffers, tile * sizeof(half));
  for (uint32_t i = 0; i < kTile * kTiles / tile; ++i) {
    LocalTensor<half> a = in.template AllocTensor<half>();
    DataCopy(a, gm.in[i * tile], tile);
    in.EnQue(a);
    a = in.template DeQue<half>();
    LocalTensor<half> b = out.template AllocTensor<half>();
    Exp(b, a, tile);
    Exp(b, b, tile);
    out.EnQue(b);
    in.FreeTensor(a);
    b = out.template DeQue<half>();
    DataCopy(gm.out[i * tile], b, tile);
    out.FreeTensor(b);
  }
}

// Rows of 64 bytes that lie 512 apart, or as many bytes in one run.
template <bool rows>
__aicore__ void bursts(GM_ADDR x, GM_ADDR y) {
  const Tensors gm(x, y, kTile * kTiles);
  for (uint32_t i = 0; i < kTiles; ++i) {
    LocalTensor<half> local = place(0, kTile / 8);
    if constexpr (rows) {
      DataCopy(local, gm.in[i * kTile], DataCopyParams{16, 2, 14, 0});
    } else {
      DataCopy(local, gm.in[i * kTile], kTile / 8);
    }
  }
}

// Copies of 512 bytes, each waited for, or copies of 8 KB.
template <uint32_t length>
__aicore__ void copies(GM_ADDR x, GM_ADDR y) {
  const Tensors gm(x, y, kTile * kTiles);
  for (uint32_t at = 0; at < kTile * kTiles; at += length) {
    DataCopy(place(0, length), gm.in[at], length);
    order<HardEvent::MTE2_V>();
    Muls(place(0x10000, length), place(0, length), half(2), length);
    order<HardEvent::V_MTE2>();
  }
}

template <uint32_t offset>
__aicore__ void aligned(GM_ADDR x, GM_ADDR y) {
  const Tensors gm(x, y, kTile * kTiles + 256);
  for (uint32_t i = 0; i + 1 < kTiles; ++i) DataCopy(place(0, kTile), gm.in[i * kTile + offset], kTile);
}

template <uint32_t second>
__aicore__ void banks(GM_ADDR x, GM_ADDR y) {
  for (uint32_t i = 0; i < kTiles; ++i) {
    Add(place(0x18000 + i % 2 * 0x4000, kTile), place(0, kTile), place(second, kTile), kTile);
  }
}

template <bool vector>
__aicore__ void elements(GM_ADDR x, GM_ADDR y) {
  const LocalTensor<half> from = place(0, 1024), to = place(0x4000, 1024);
  if constexpr (vector) {
    Adds(to, from, half(1), 1024);
  } else {
    for (uint32_t i = 0; i < 1024; ++i) to.SetValue(i, from.GetValue(i) + half(1));
  }
}

template <bool flags>
__aicore__ void barriers(GM_ADDR x, GM_ADDR y) {
  const Tensors gm(x, y, kTile * kTiles);
  if constexpr (flags) {
    for (uint32_t i = 0; i < 2; ++i) SetFlag<HardEvent::V_MTE2>(i);
  }
  for (uint32_t i = 0; i < kTiles; ++i) {
    const uint32_t slot = i % 2;
    if constexpr (flags) WaitFlag<HardEvent::V_MTE2>(slot);
    DataCopy(place(slot * 0x4000, kTile), gm.in[i * kTile], kTile);
    if constexpr (flags) {
      SetFlag<HardEvent::MTE2_V>(slot);
      WaitFlag<HardEvent::MTE2_V>(slot);
    } else {
      PipeBarrier<PIPE_ALL>();
    }
    Exp(place(0x10000 + slot * 0x4000, kTile), place(slot * 0x4000, kTile), kTile);
    if constexpr (flags) {
      SetFlag<HardEvent::V_MTE2>(slot);
    } else {
      PipeBarrier<PIPE_ALL>();
    }
  }
  if constexpr (flags) {
    for (uint32_t i = 0; i < 2; ++i) WaitFlag<HardEvent::V_MTE2>(i);
  }
}

template <uint32_t every>
__aicore__ void cores_wait(GM_ADDR x, GM_ADDR y) {
  for (uint32_t i = 0; i < kTiles; ++i) {
    Exp(place(0x8000, kTile), place(0, kTile), kTile);
    if (i % every == every - 1) SyncAll();
  }
}

template <bool staggered>
__aicore__ void shared(GM_ADDR x, GM_ADDR y) {
  GlobalTensor<half> in;
  in.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(x), kTile * kTiles);
  in.SetL2CacheHint(CacheMode::CACHE_MODE_DISABLE);
  for (uint32_t i = 0; i < kTiles; ++i) {
    const uint32_t tile = (staggered ? i + GetBlockIdx() : i) % kTiles;
    DataCopy(place(i % 2 * 0x4000, kTile), in[tile * kTile], kTile);
  }
}

template <bool interleaved>
__aicore__ void chain(GM_ADDR x, GM_ADDR y) {
  const LocalTensor<half> a = place(0, kTile), b = place(0x4000, kTile);
  for (uint32_t i = 0; i < 64; ++i) {
    Muls(a, a, half(1), kTile);
    if constexpr (interleaved) Muls(b, b, half(1), kTile);
  }
  if constexpr (!interleaved) {
    for (uint32_t i = 0; i < 64; ++i) Muls(b, b, half(1), kTile);
  }
}

// Work shared evenly, or block 0 with twice the others' share.
template <bool even>
__aicore__ void shares(GM_ADDR x, GM_ADDR y) {
  const uint32_t blocks = GetBlockNum();
  const uint32_t all = 4800;
  uint32_t mine = all / blocks;
  if constexpr (!even) mine = all / (blocks + 1) * (GetBlockIdx() == 0 ? 2 : 1);
  for (uint32_t i = 0; i < mine; ++i) Exp(place(0x8000, kTile), place(0, kTile), kTile);
}

// A row's sum is read back before the row is scaled by it: the next row is copied in afterwards, or before.
template <bool early>
__aicore__ void reads_back(GM_ADDR x, GM_ADDR y) {
  const Tensors gm(x, y, kTile * kTiles);
  TPipe pipe;
  TQue<TPosition::VECIN, 2> in;
  TQue<TPosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, kTile * sizeof(half));
  pipe.InitBuffer(out, 2, kTile * sizeof(half));
  const auto copy_in = [&](uint32_t i) {
    LocalTensor<half> a = in.AllocTensor<half>();
    DataCopy(a, gm.in[i * kTile], kTile);
    in.EnQue(a);
  };
  const LocalTensor<half> sum = place(0x20000, 16), work = place(0x21000, kTile);
  if constexpr (early) copy_in(0);
  for (uint32_t i = 0; i < kTiles; ++i) {
    if constexpr (!early) {
      copy_in(i);
    } else if (i + 1 < kTiles) {
      copy_in(i + 1);
    }
    LocalTensor<half> a = in.DeQue<half>();
    ReduceSum(sum, a, work, kTile);
    order<HardEvent::V_S>();
    const half scale = sum.GetValue(0);
    order<HardEvent::S_V>();
    LocalTensor<half> b = out.AllocTensor<half>();
    Muls(b, a, scale, kTile);
    out.EnQue(b);
    in.FreeTensor(a);
    b = out.DeQue<half>();
    DataCopy(gm.out[i * kTile], b, kTile);
    out.FreeTensor(b);
  }
}

}  // namespace

extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  if (TILING_KEY_IS(0)) queues<1>(x, y);
  if (TILING_KEY_IS(1)) queues<2>(x, y);
  if (TILING_KEY_IS(2)) bursts<true>(x, y);
  if (TILING_KEY_IS(3)) bursts<false>(x, y);
  if (TILING_KEY_IS(4)) copies<256>(x, y);
  if (TILING_KEY_IS(5)) copies<4096>(x, y);
  if (TILING_KEY_IS(6)) aligned<16>(x, y);
  if (TILING_KEY_IS(7)) aligned<0>(x, y);
  if (TILING_KEY_IS(8)) banks<0x8000>(x, y);
  if (TILING_KEY_IS(9)) banks<0x8100>(x, y);
  if (TILING_KEY_IS(10)) elements<false>(x, y);
  if (TILING_KEY_IS(11)) elements<true>(x, y);
  if (TILING_KEY_IS(12)) barriers<false>(x, y);
  if (TILING_KEY_IS(13)) barriers<true>(x, y);
  if (TILING_KEY_IS(14)) cores_wait<1>(x, y);
  if (TILING_KEY_IS(15)) cores_wait<24>(x, y);
  if (TILING_KEY_IS(16)) shared<false>(x, y);
  if (TILING_KEY_IS(17)) shared<true>(x, y);
  if (TILING_KEY_IS(18)) queues<2, 1024>(x, y);
  if (TILING_KEY_IS(19)) queues<2, 2048>(x, y);
  if (TILING_KEY_IS(20)) chain<false>(x, y);
  if (TILING_KEY_IS(21)) chain<true>(x, y);
  if (TILING_KEY_IS(22)) shares<false>(x, y);
  if (TILING_KEY_IS(23)) shares<true>(x, y);
  if (TILING_KEY_IS(40)) reads_back<false>(x, y);
  if (TILING_KEY_IS(41)) reads_back<true>(x, y);
}
