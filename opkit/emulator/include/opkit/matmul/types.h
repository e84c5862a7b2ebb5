/// The template parameters of Matmul besides its configuration. Source: Ascend C API, Matmul template parameters.
#pragma once

#include "opkit/api/cube_tiling.h"
#include "opkit/api/tensor.h"
#include "opkit/matmul/config.h"

namespace AscendC {

template <TPosition POSITION, CubeFormat FORMAT, typename TYPE, bool ISTRANS = false,
          LayoutMode LAYOUT = LayoutMode::NONE, bool IBSHARE = false, TPosition SRC_POSITION = TPosition::GM>
struct MatmulType {
  using T = TYPE;
  static constexpr TPosition pos = POSITION;
  static constexpr CubeFormat format = FORMAT;
  static constexpr bool isTrans = ISTRANS;
  static constexpr LayoutMode layout = LAYOUT;
  static constexpr bool ibShare = IBSHARE;
  static constexpr TPosition srcPos = SRC_POSITION;
};

/// B with two of every four weights left out; SetSparseIndex says which. POSITION is GM, TYPE int8_t, ISTRANS true.
template <TPosition POSITION, TPosition INDEX_POSITION, CubeFormat FORMAT, typename TYPE, bool ISTRANS = false,
          LayoutMode LAYOUT = LayoutMode::NONE, bool IBSHARE = false>
struct SparseMatmulType : MatmulType<POSITION, FORMAT, TYPE, ISTRANS, LAYOUT, IBSHARE> {
  static constexpr TPosition indexPosition = INDEX_POSITION;
  static_assert(POSITION == TPosition::GM && INDEX_POSITION == TPosition::GM && ISTRANS,
                "Matmul: a sparse B and its index lie in GM, transposed");
  static_assert(std::is_same<TYPE, int8_t>::value, "Matmul: a sparse B is int8_t");
};

/// The type in which L0C sums products of T.
template <typename T>
struct GetMmDstType {
  using Type = std::conditional_t<std::is_same<T, int8_t>::value || std::is_same<T, int4b_t>::value, int32_t, float>;
};

/// How Matmul would carry a block out: what DataCopyOut is told.
struct DataCopyOutParams {
  uint16_t cBurstNum = 0;
  uint16_t burstLen = 0;
  uint16_t srcStride = 0;
  uint32_t dstStride = 0;
  uint16_t oriNSize = 0;
  bool enUnitFlag = false;
  uint64_t quantScalar = 0;
  uint64_t cbufWorkspaceAddr = 0;
};

using MatmulCopyOut = void (*)(const void* gm, const LocalTensor<int8_t>& co1Local, const void* dataCopyOutParams,
                               const uint64_t tilingPtr, const uint64_t dataPtr);
using MatmulCopyIn = void (*)(const LocalTensor<int8_t>& matrix, const void* gm, int row, int col, int useFirst,
                              int useSecond, const uint64_t tilingPtr, const uint64_t dataPtr);

/// The kernel's own copies; null for Matmul's.
template <MatmulCopyOut copyOut = nullptr, MatmulCopyIn copyA1 = nullptr, MatmulCopyIn copyB1 = nullptr>
struct MatmulCallBackFunc {
  static constexpr MatmulCopyOut CopyOut = copyOut;
  static constexpr MatmulCopyIn CopyA1 = copyA1;
  static constexpr MatmulCopyIn CopyB1 = copyB1;
};

/// A configuration with the tiling's numbers, all known to the compiler. 0 where they are not.
struct MatmulApiStaticTiling {
#define CUBE_TILING_FIELD(name) int32_t name = 0;
#include "opkit/host/cube_tiling_fields.inc"
#undef CUBE_TILING_FIELD
  MatmulConfig cfg;
};

namespace Impl {
constexpr int32_t L1_SIZE = 512 * 1024;
constexpr int32_t QUEUE_DEPTH = 1;
}  // namespace Impl

/// The configuration in either form of Matmul's template argument.
constexpr const MatmulConfig& ToMatmulConfig(const MatmulConfig& config) { return config; }
constexpr const MatmulConfig& ToMatmulConfig(const MatmulApiStaticTiling& tiling) { return tiling.cfg; }

}  // namespace AscendC

namespace opkit::matmul {

template <typename TYPE, typename = void>
struct IsSparse : std::false_type {};
template <typename TYPE>
struct IsSparse<TYPE, std::void_t<decltype(TYPE::indexPosition)>> : std::true_type {};

/// A type whose matrix lies in global memory, whatever it says.
template <typename TYPE>
struct FromGm : TYPE {
  static constexpr AscendC::TPosition pos = AscendC::TPosition::GM;
};

/// Whether a matrix lies in L1 already, or goes there.
constexpr bool is_in_l1(AscendC::TPosition position) {
  return position == AscendC::TPosition::TSCM || position == AscendC::TPosition::A1 ||
         position == AscendC::TPosition::B1;
}

enum class Policy : uint8_t { Default, UpperTriangle, LowerTriangle, NBuffer33 };

template <typename T>
constexpr int32_t element_bits() {
  return std::is_same<T, AscendC::int4b_t>::value ? 4 : static_cast<int32_t>(sizeof(T)) * 8;
}
/// Elements of a data block: the width of a fractal.
template <typename T>
constexpr int32_t block_elements() {
  return 256 / element_bits<T>();
}
template <typename T>
constexpr int64_t bytes(int64_t elements) {
  return elements * element_bits<T>() / 8;
}

constexpr int32_t ceil_div(int32_t a, int32_t b) { return (a + b - 1) / b; }
constexpr int32_t align_up(int32_t value, int32_t to) { return ceil_div(value, to) * to; }

using AscendC::ToMatmulConfig;

constexpr bool is_static_tiling(const AscendC::MatmulConfig&) { return false; }
constexpr bool is_static_tiling(const AscendC::MatmulApiStaticTiling&) { return true; }

/// Writes the numbers that the compiler knows over those that came from the host.
inline void apply_static(TCubeTiling&, const AscendC::MatmulConfig&) {}
inline void apply_static(TCubeTiling& tiling, const AscendC::MatmulApiStaticTiling& known) {
#define CUBE_TILING_FIELD(name) \
  if (known.name != 0) tiling.name = known.name;
#include "opkit/host/cube_tiling_fields.inc"
#undef CUBE_TILING_FIELD
}

}  // namespace opkit::matmul

namespace AscendC {

namespace Impl::Detail {

template <const auto& MM_CFG = CFG_NORM, typename...>
struct MatmulPolicy {
  static constexpr opkit::matmul::Policy kPolicy = opkit::matmul::Policy::Default;
};
template <const auto& MM_CFG = CFG_NORM, typename...>
struct TrianUpperMatmulPolicy {
  static constexpr opkit::matmul::Policy kPolicy = opkit::matmul::Policy::UpperTriangle;
};
template <const auto& MM_CFG = CFG_NORM, typename...>
struct TrianLowerMatmulPolicy {
  static constexpr opkit::matmul::Policy kPolicy = opkit::matmul::Policy::LowerTriangle;
};
template <const auto& MM_CFG = CFG_NORM, typename...>
struct NBuffer33MatmulPolicy {
  static constexpr opkit::matmul::Policy kPolicy = opkit::matmul::Policy::NBuffer33;
};

}  // namespace Impl::Detail

/// The numbers of a tiling from a configuration that has basicM, basicN and basicK, and perhaps singleCoreM and so on.
template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE>
constexpr MatmulApiStaticTiling GetMatmulApiTiling(const MatmulConfig& mmCFG, int32_t l1Size = Impl::L1_SIZE) {
  using AT = typename A_TYPE::T;
  using BT = typename B_TYPE::T;
  MatmulApiStaticTiling tiling;
  tiling.cfg = mmCFG;
  tiling.baseM = static_cast<int32_t>(mmCFG.basicM);
  tiling.baseN = static_cast<int32_t>(mmCFG.basicN);
  tiling.baseK = static_cast<int32_t>(mmCFG.basicK);
  tiling.singleCoreM = static_cast<int32_t>(mmCFG.singleCoreM);
  tiling.singleCoreN = static_cast<int32_t>(mmCFG.singleCoreN);
  tiling.singleCoreK = static_cast<int32_t>(mmCFG.singleCoreK);
  tiling.M = tiling.singleCoreM;
  tiling.N = tiling.singleCoreN;
  tiling.Ka = tiling.singleCoreK;
  tiling.Kb = tiling.singleCoreK;
  tiling.usedCoreNum = 1;
  tiling.stepM = 1;
  tiling.stepN = 1;
  tiling.dbL0A = 2;
  tiling.dbL0B = 2;
  tiling.dbL0C = tiling.baseM * tiling.baseN * 4 * 2 <= 128 * 1024 ? 2 : 1;
  const int64_t block_bytes = opkit::matmul::bytes<AT>(int64_t{tiling.baseM} * tiling.baseK) +
                              opkit::matmul::bytes<BT>(int64_t{tiling.baseN} * tiling.baseK);
  const int32_t k_blocks =
      tiling.singleCoreK > 0 && tiling.baseK > 0 ? opkit::matmul::ceil_div(tiling.singleCoreK, tiling.baseK) : 1;
  int32_t step = 1;
  while (step * 2 <= k_blocks && block_bytes * step * 4 <= l1Size) step *= 2;
  tiling.stepKa = step;
  tiling.stepKb = step;
  tiling.depthA1 = step * 2;
  tiling.depthB1 = step * 2;
  return tiling;
}

}  // namespace AscendC

using AscendC::MatmulApiStaticTiling;

/// For templates around Matmul that pass a policy on.
#define MATMUL_POLICY_DEFAULT_OF(DEFAULT)      \
  template <const auto& = MM_CFG, typename...> \
  class MATMUL_POLICY = AscendC::Impl::Detail::DEFAULT
