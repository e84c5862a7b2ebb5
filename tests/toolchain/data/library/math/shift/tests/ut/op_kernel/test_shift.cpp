#include <cstdio>
#include <string>

#include "../../../../shift_common/op_host/shift_tiling_data.h"
#include "counted.h"
#include "data_utils.h"
#include "tikicpulib.h"

extern "C" __global__ __aicore__ void shift(GM_ADDR x, GM_ADDR size, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling);

int main() {
  // Paths go out from four folders below the library.
  std::FILE* own = std::fopen("../../../../math/shift/tests/ut/op_kernel/test_shift.cpp", "rb");
  if (own == nullptr) return 2;
  std::fclose(own);
  auto* x = (float*)AscendC::GmAlloc(MOST * sizeof(float));
  // Tests give a kernel its own part of the workspace alone.
  if (AscendC::GetUserWorkspace((uint8_t*)x) != (uint8_t*)x) return 3;
  auto* y = (float*)AscendC::GmAlloc(MOST * sizeof(float));
  auto* tiling = (ShiftTilingData*)AscendC::GmAlloc(sizeof(ShiftTilingData));
  for (int i = 0; i < MOST; ++i) x[i] = float(i);
  *tiling = {MOST, MOST, 3};
  AscendC::SetKernelMode(KernelMode::AIV_MODE);
  ICPU_RUN_KF(shift, 1, (uint8_t*)x, nullptr, (uint8_t*)y, nullptr, (uint8_t*)tiling);
  const int right = counted(x, y, MOST, 3);
  for (void* memory : {(void*)x, (void*)y, (void*)tiling}) AscendC::GmFree(memory);
  std::printf(right == MOST ? "[  PASSED  ] 1 test.\n" : "[  FAILED  ] shift.one\n");
  std::printf("compare result: %s\n", right == MOST ? "True" : "False");
  return right == MOST ? 0 : 1;
}
