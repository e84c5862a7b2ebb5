/// Matmul, the high-level API of matrix products: what kernels name. Source: Ascend C API, Matmul kernel side.
#pragma once

#include "opkit/matmul/object.h"

namespace opkit::matmul {

/// Gives each object its tiling: pairs of object and tiling, or one object alone.
inline void init_objects(AscendC::TPipe*) {}
template <typename MatmulObject>
void init_objects(AscendC::TPipe*, MatmulObject&) {}
template <typename MatmulObject, typename... Rest>
void init_objects(AscendC::TPipe* pipe, MatmulObject& object, std::nullptr_t, Rest&&... rest) {
  object.Init(nullptr, pipe);
  init_objects(pipe, rest...);
}
template <typename MatmulObject, typename Tiling, typename... Rest>
void init_objects(AscendC::TPipe* pipe, MatmulObject& object, Tiling* tiling, Rest&&... rest) {
  // Some kernels hand over void pointers.
  static_assert(std::is_void_v<Tiling> || std::is_convertible_v<Tiling*, const TCubeTiling*>,
                "REGIST_MATMUL_OBJ takes an object and the TCubeTiling of it, by its address");
  object.Init(static_cast<const TCubeTiling*>(tiling), pipe);
  init_objects(pipe, rest...);
}

/// A kernel with objects, and nothing else that says what it runs on, runs on what they need.
template <bool is_direct>
struct NeedsCubeCores {
  static inline const bool kIsTold =
      (kernel_notes.unmarked = is_direct ? KernelMode::Cube : KernelMode::Mix12) != KernelMode::Vector;
};

/// For REGIST_MATMUL_OBJ. True on a cube core that has served vector cores: its part of the kernel is over.
template <typename First, typename... Rest>
bool register_objects(AscendC::TPipe* pipe, uint8_t* workspace, Where where, First& first, Rest&&... rest) {
  (void)workspace;
  (void)NeedsCubeCores<First::kIsDirect>::kIsTold;
  init_objects(pipe, first, rest...);
  if (First::kIsDirect || !core_variables().is_cube) return false;
  serve_cube_requests(where);
  return true;
}

}  // namespace opkit::matmul

namespace AscendC {

template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE = C_TYPE, const auto& MM_CFG = CFG_NORM,
          class MM_CB = MatmulCallBackFunc<nullptr, nullptr, nullptr>, MATMUL_POLICY_DEFAULT_OF(MatmulPolicy)>
using Matmul = opkit::matmul::Object<A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE, MM_CFG, MM_CB, MATMUL_POLICY<MM_CFG>::kPolicy,
                                     opkit::matmul::kIsCubeOnly>;

/// Always computes on the cube core that calls it.
template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE = C_TYPE, const auto& MM_CFG = CFG_NORM,
          class MM_CB = MatmulCallBackFunc<nullptr, nullptr, nullptr>, MATMUL_POLICY_DEFAULT_OF(MatmulPolicy)>
using MatmulImpl =
    opkit::matmul::Object<A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE, MM_CFG, MM_CB, MATMUL_POLICY<MM_CFG>::kPolicy, true>;

}  // namespace AscendC

/// Older kernels write matmul::Matmul.
namespace matmul {
using namespace AscendC;  // NOLINT: the documented namespace has all of the other
}  // namespace matmul

/// Initialises Matmul objects. On the cube cores of a mixed kernel it serves the vector cores, and then the kernel
/// ends.
#define REGIST_MATMUL_OBJ(tpipe, workspace, ...) \
  if (::opkit::matmul::register_objects(tpipe, workspace, ::opkit::Where{__FILE__, __LINE__}, __VA_ARGS__)) return
