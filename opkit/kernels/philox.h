// Uniform random numbers in (0, 1], by Philox 4x32 with ten rounds.
// Source of the generator: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011.
#pragma once

#include "kernel_operator.h"
#include "plans.h"

namespace opkit::kernels {

using namespace AscendC;

struct FourWords {
  uint32_t at[4];
};

__aicore__ inline FourWords philox(uint64_t counter, uint64_t stream, uint64_t seed) {
  uint32_t c0 = static_cast<uint32_t>(counter);
  uint32_t c1 = static_cast<uint32_t>(counter >> 32);
  uint32_t c2 = static_cast<uint32_t>(stream);
  uint32_t c3 = static_cast<uint32_t>(stream >> 32);
  uint32_t k0 = static_cast<uint32_t>(seed);
  uint32_t k1 = static_cast<uint32_t>(seed >> 32);
  for (uint32_t round = 0; round < 10; ++round) {
    const uint64_t a = static_cast<uint64_t>(0xD2511F53u) * c0;
    const uint64_t b = static_cast<uint64_t>(0xCD9E8D57u) * c2;
    const uint32_t next0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ k0;
    const uint32_t next2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(b);
    c3 = static_cast<uint32_t>(a);
    c0 = next0;
    c2 = next2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

constexpr uint32_t kRandomTile = 8192;

__aicore__ inline void random_uniform(GM_ADDR out, const RandomPlan& p) {
  TPipe pipe;
  TBuf<TPosition::VECCALC> space;
  pipe.InitBuffer(space, kRandomTile * sizeof(float));
  const LocalTensor<float> local = space.Get<float>();
  const int64_t cores = GetBlockNum();
  for (int64_t first = GetBlockIdx() * static_cast<int64_t>(kRandomTile); first < p.count;
       first += cores * kRandomTile) {
    const int64_t left = p.count - first;
    const auto count = static_cast<uint32_t>(left < kRandomTile ? left : kRandomTile);
    for (uint32_t i = 0; i < count; i += 4) {
      const FourWords four = philox(static_cast<uint64_t>(first + i) / 4, p.offset, p.seed);
      for (uint32_t k = 0; k < 4; ++k) {
        // The upper 24 bits, which a float holds.
        local.SetValue(i + k, static_cast<float>((four.at[k] >> 8) + 1) * (1.0f / 16777216.0f));
      }
    }
    PipeBarrier<PIPE_ALL>();
    GlobalTensor<float> to;
    to.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(out) + first);
    DataCopyPad(to, local, DataCopyExtParams(1, count * sizeof(float), 0, 0, 0));
    PipeBarrier<PIPE_ALL>();
  }
}

}  // namespace opkit::kernels
