#include <cstdio>

#include "data_utils.h"
#include "tikicpulib.h"

struct ScaleTiling {
  uint32_t length;
  float factor;
};

extern "C" __global__ __aicore__ void scale_rows(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling);

int main(int argc, char**) {
  constexpr size_t kBytes = 32 * sizeof(float);
  auto* x = (float*)AscendC::GmAlloc(kBytes);
  auto* y = (float*)AscendC::GmAlloc(kBytes);
  auto* tiling = (uint8_t*)AscendC::GmAlloc(sizeof(ScaleTiling));
  *(ScaleTiling*)tiling = {argc > 1 ? 16u : 8u, 3.0f};
  float values[32];
  for (int i = 0; i < 32; ++i) values[i] = float(i);
  size_t size_bytes = 0;
  if (!WriteFile("x.bin", values, kBytes) || !ReadFile("x.bin", size_bytes, x, kBytes) || size_bytes != kBytes) return 3;
  if (ReadFile("x.bin", size_bytes, x, 8) || ReadFile("none.bin", size_bytes, x, kBytes)) return 4;
  AscendC::SetKernelMode(KernelMode::AIV_MODE);
  for (const uint64_t key : {7, 8}) {
    ICPU_SET_TILING_KEY(key);
    try {
      ICPU_RUN_KF(scale_rows, 4, (uint8_t*)x, (uint8_t*)y, nullptr, tiling);
    } catch (const std::exception& error) {
      std::printf("%s\n", error.what());
      return 1;
    }
    for (int i = 0; i < 32; ++i) {
      if (y[i] != (key == 7 ? 3.0f : 1.0f) * float(i)) return 2;
    }
  }
  AscendC::GmFree(x);
  AscendC::GmFree(x);
  AscendC::GmFree(y);
  AscendC::GmFree(tiling);
  std::printf("right\n");
  return 0;
}
