/// A product of two matrices of td::mm as one call: c = a b. The vendor's aclnn functions come in two phases; this is
/// the form that code over td::mm uses. The kernel below runs on the emulated cube cores of an Ascend910B.
#pragma once

#ifndef __NPU_ARCH__
#define __NPU_ARCH__ 2201
#endif
#ifndef __CCE_AICORE__
#define __CCE_AICORE__ 220
#endif
#ifndef ASCENDC_CUBE_ONLY
#define ASCENDC_CUBE_ONLY
#endif

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "acl/acl.h"
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
#include "opkit/direct_launch.h"
#include "opkit/kernel_entry.h"
#include "td/mm/memory_manager.h"

namespace opkit::aclnn_matmul {

constexpr int32_t kBlock = 128;

struct Plan {
  int32_t m, n, k;
  int32_t base_m, base_n, base_k;
  uint32_t is_half;
};

template <typename T>
__aicore__ inline void multiply(GM_ADDR a, GM_ADDR b, GM_ADDR c, const Plan& plan) {
  using Matrix = AscendC::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, T>;
  TCubeTiling tiling;
  tiling.usedCoreNum = 1;
  tiling.M = plan.m;
  tiling.N = plan.n;
  tiling.Ka = tiling.Kb = tiling.singleCoreK = plan.k;
  tiling.singleCoreM = tiling.baseM = plan.base_m;
  tiling.singleCoreN = tiling.baseN = plan.base_n;
  tiling.baseK = plan.base_k;
  tiling.depthA1 = tiling.depthB1 = 2;
  tiling.stepM = tiling.stepN = tiling.stepKa = tiling.stepKb = 1;
  tiling.dbL0A = tiling.dbL0B = 2;
  tiling.dbL0C = 1;
  AscendC::TPipe pipe;
  AscendC::Matmul<Matrix, Matrix, Matrix, Matrix> product;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), product, &tiling);
  AscendC::GlobalTensor<T> left, right, result;
  const int32_t rows = (plan.m + plan.base_m - 1) / plan.base_m;
  const int32_t columns = (plan.n + plan.base_n - 1) / plan.base_n;
  const auto cores = static_cast<int32_t>(AscendC::GetBlockNum());
  for (auto item = static_cast<int32_t>(AscendC::GetBlockIdx()); item < rows * columns; item += cores) {
    const int64_t row = int64_t{item % rows} * plan.base_m;
    const int64_t column = int64_t{item / rows} * plan.base_n;
    left.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(a) + row * plan.k);
    right.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(b) + column);
    result.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(c) + row * plan.n + column);
    product.SetOrgShape(plan.m, plan.n, plan.k, plan.k, plan.n);
    product.SetTensorA(left);
    product.SetTensorB(right);
    product.SetSingleShape(static_cast<int>(std::min<int64_t>(plan.base_m, plan.m - row)),
                           static_cast<int>(std::min<int64_t>(plan.base_n, plan.n - column)), plan.k);
    product.IterateAll(result);
  }
  product.End();
}

__global__ __aicore__ inline void kernel(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR plan_address) {
  const Plan& plan = *reinterpret_cast<__gm__ const Plan*>(plan_address);
  if (plan.is_half != 0) {
    multiply<half>(a, b, c, plan);
  } else {
    multiply<float>(a, b, c, plan);
  }
}

inline aclError refuse(const char* reason) {
  std::fprintf(stderr, "error: aclnnMatMul: %s\n", reason);
  return ACL_ERROR_INVALID_PARAM;
}

inline int32_t part(int64_t size, int64_t limit) {
  return static_cast<int32_t>(std::min<int64_t>((size + 15) / 16 * 16, limit));
}

}  // namespace opkit::aclnn_matmul

/// c = a b for matrices of one type, FLOAT32 or FLOAT16, row after row; returns when the product is there.
/// `attributes`: null. Errors are printed too: ACL_ERROR_INVALID_PARAM for matrices that do not fit, ACL_ERROR_FAILURE
/// for a fault.
inline aclError aclnnMatMul(void* a, const td::mm::TensorDesc& a_desc, void* b, const td::mm::TensorDesc& b_desc,
                            void* c, const td::mm::TensorDesc& c_desc, const void* attributes = nullptr) {
  using namespace opkit::aclnn_matmul;
  if (attributes != nullptr) return refuse("there are no attributes: pass null");
  if (a == nullptr || b == nullptr || c == nullptr) return refuse("a matrix is null");
  for (const td::mm::TensorDesc* desc : {&a_desc, &b_desc, &c_desc}) {
    if (desc->shape.size() != 2) return refuse("a tensor is no matrix");
    if (desc->dtype != a_desc.dtype) return refuse("the matrices have different types");
    if (desc->format != td::mm::MemoryFormat::CONTIGUOUS) return refuse("a matrix is not CONTIGUOUS");
  }
  const bool is_half = a_desc.dtype == td::mm::DataType::FLOAT16;
  if (!is_half && a_desc.dtype != td::mm::DataType::FLOAT32) return refuse("the type is neither FLOAT32 nor FLOAT16");
  const int64_t m = a_desc.shape[0], k = a_desc.shape[1], n = b_desc.shape[1];
  if (b_desc.shape[0] != k || c_desc.shape[0] != m || c_desc.shape[1] != n) return refuse("the shapes do not fit");
  if (std::max({m, n, k}) > INT32_MAX / 4) return refuse("a matrix is too large");
  if (m == 0 || n == 0) return ACL_SUCCESS;
  if (k == 0) return refuse("there is nothing to sum over");
  const Plan plan{static_cast<int32_t>(m), static_cast<int32_t>(n),    static_cast<int32_t>(k), part(m, kBlock),
                  part(n, kBlock),         part(k, is_half ? 64 : 32), is_half ? 1u : 0u};
  const void* addresses[] = {a, b, c, &plan};
  void* arguments[] = {&addresses[0], &addresses[1], &addresses[2], &addresses[3]};
  const opkit_gm_range ranges[] = {{a, static_cast<uint64_t>(a_desc.bytes()), "a", 1},
                                   {b, static_cast<uint64_t>(b_desc.bytes()), "b", 1},
                                   {c, static_cast<uint64_t>(c_desc.bytes()), "c", 0},
                                   {&plan, sizeof(plan), "the plan", 1}};
  const int64_t blocks = (m + plan.base_m - 1) / plan.base_m * ((n + plan.base_n - 1) / plan.base_n);
  const opkit::KernelEntry entry = opkit::kernel_entry<&kernel>("aclnnMatMul", opkit::KernelMode::Cube);
  opkit_direct_launch launch{};
  launch.kernel = entry.name;
  launch.invoke = entry.invoke;
  launch.arguments = arguments;
  launch.mode = static_cast<uint32_t>(entry.mode);
  launch.block_dim = static_cast<uint32_t>(std::clamp<int64_t>(blocks, 1, std::max(1u, opkit_core_count(0))));
  launch.ranges = ranges;
  launch.range_count = std::size(ranges);
  if (opkit_launch_direct(&launch) == OPKIT_OK) return ACL_SUCCESS;
  std::fprintf(stderr, "error: aclnnMatMul: %s\n", opkit_last_error());
  return ACL_ERROR_FAILURE;
}
