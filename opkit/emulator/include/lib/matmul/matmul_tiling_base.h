/// What the tiling classes of matrix multiplication have in common. Source: Ascend C API, Matmul tiling.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "log/log.h"
#include "opkit/host/matmul_problem.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {

#if defined(__CCE_AICORE__)
/// Programs hold host and kernel in one file: the host's class there, with the kernel's layout.
class TCubeTiling {
 public:
#define CUBE_TILING_FIELD(name)                            \
  void set_##name(int32_t value) { values_.name = value; } \
  int32_t get_##name() const { return values_.name; }
#include "opkit/host/cube_tiling_fields.inc"
#undef CUBE_TILING_FIELD
  size_t GetDataSize() const { return sizeof(values_); }
  void SaveToBuffer(void* buffer, size_t capacity) const {
    if (buffer == nullptr || capacity < sizeof(values_)) {
      OP_LOGE("TilingData", "SaveToBuffer: %zu bytes of tiling data do not fit into %zu", sizeof(values_), capacity);
      return;
    }
    std::memcpy(buffer, &values_, sizeof(values_));
  }

 private:
  AscendC::tiling::TCubeTiling values_;
};
#else
BEGIN_TILING_DATA_DEF(TCubeTiling)
#define CUBE_TILING_FIELD(name) TILING_DATA_FIELD_DEF(int32_t, name);
#include "opkit/host/cube_tiling_fields.inc"
#undef CUBE_TILING_FIELD
END_TILING_DATA_DEF;
#endif

}  // namespace optiling

namespace matmul_tiling {

enum class TPosition : int32_t {
  GM,
  A1,
  A2,
  B1,
  B2,
  C1,
  C2,
  CO1,
  CO2,
  VECIN,
  VECOUT,
  VECCALC,
  LCM,
  SPM,
  SHM = SPM,
  TSCM,
  MAX
};
enum class CubeFormat : int32_t { ND = 0, NZ, ZN, ZZ, NN, ND_ALIGN, SCALAR, VECTOR, ROW_MAJOR, COLUMN_MAJOR };
enum class DataType : int32_t {
  DT_FLOAT = 0,
  DT_FLOAT16 = 1,
  DT_INT8 = 2,
  DT_INT32 = 3,
  DT_UINT8 = 4,
  DT_INT16 = 6,
  DT_UINT16 = 7,
  DT_UINT32 = 8,
  DT_INT64 = 9,
  DT_UINT64 = 10,
  DT_BFLOAT16 = 27,
  DT_BF16 = 27,
  // As ge::DataType numbers it.
  DT_UNDEFINED = 28,
  DT_INT4 = 29,
  // Types of later chips: host code that serves several lists them, no call takes them.
  DT_HIFLOAT8 = 34,
  DT_FLOAT8_E5M2 = 35,
  DT_FLOAT8_E4M3FN = 36,
  DT_FLOAT8_E8M0 = 37,
  DT_FLOAT4_E2M1 = 40,
  DT_FLOAT4_E1M2 = 41,
};
enum class MatrixTraverse : int32_t { NOSET = 0, FIRSTM = 1, FIRSTN = 2 };
enum class ScheduleType : int32_t { INNER_PRODUCT = 0, OUTER_PRODUCT = 1, N_BUFFER_33 = 2 };
enum class DequantType : int32_t { SCALAR = 0, TENSOR = 1 };
enum class MatrixMadType : int32_t { NORMAL = 0, HF32 = 1, MXMODE = 2 };

/// What to take from the chip where no PlatformAscendC is at hand. Sizes in bytes.
struct PlatformInfo {
  platform_ascendc::SocVersion socVersion;
  uint64_t l1Size = 0;
  uint64_t l0CSize = 0;
  uint64_t ubSize = 0;
  uint64_t l0ASize = 0;
  uint64_t l0BSize = 0;
};

struct MatmulConfigParams {
  int32_t mmConfigType;  ///< 0: Norm, 1: MDL
  bool enableL1CacheUB;
  ScheduleType scheduleType;
  MatrixTraverse traverse;
  bool enVecND2NZ;

  MatmulConfigParams(int32_t mmConfigTypeIn = 1, bool enableL1CacheUBIn = false,  // NOLINT: the documented form
                     ScheduleType scheduleTypeIn = ScheduleType::INNER_PRODUCT,
                     MatrixTraverse traverseIn = MatrixTraverse::NOSET, bool enVecND2NZIn = false)
      : mmConfigType(mmConfigTypeIn),
        enableL1CacheUB(enableL1CacheUBIn),
        scheduleType(scheduleTypeIn),
        traverse(traverseIn),
        enVecND2NZ(enVecND2NZIn) {}
};

/// Temporary buffers of one Matmul object, in bytes.
struct SysTilingTempBufSize {
  int32_t ubSize = 0;
  int32_t l1Size = 0;
  int32_t l0cSize = 0;
};

/// Setters return 0, or -1 and an error in the log for what can never be right.
class MatmulApiTilingBase {
 public:
  MatmulApiTilingBase() : MatmulApiTilingBase(*platform_ascendc::PlatformAscendCManager::GetInstance()) {}
  explicit MatmulApiTilingBase(const platform_ascendc::PlatformAscendC& ascendcPlatform) {
    using platform_ascendc::CoreMemType;
    ascendcPlatform.GetCoreMemSize(CoreMemType::L1, problem_.l1_bytes);
    ascendcPlatform.GetCoreMemSize(CoreMemType::L0_A, problem_.l0a_bytes);
    ascendcPlatform.GetCoreMemSize(CoreMemType::L0_B, problem_.l0b_bytes);
    ascendcPlatform.GetCoreMemSize(CoreMemType::L0_C, problem_.l0c_bytes);
    ascendcPlatform.GetCoreMemSize(CoreMemType::BT, problem_.bias_table_bytes);
    default_ = problem_;
  }
  explicit MatmulApiTilingBase(const PlatformInfo& platform) {
    problem_.l1_bytes = platform.l1Size;
    problem_.l0a_bytes = platform.l0ASize;
    problem_.l0b_bytes = platform.l0BSize;
    problem_.l0c_bytes = platform.l0CSize;
    problem_.bias_table_bytes = 1024;  // PlatformInfo has no number for it. Source: NPU architecture version 2201
    default_ = problem_;
  }
  virtual ~MatmulApiTilingBase() = default;

  int32_t SetAType(TPosition pos, CubeFormat type, DataType dataType, bool isTrans = false) {
    return set_operand("SetAType", problem_.a, pos, type, dataType, isTrans);
  }
  int32_t SetBType(TPosition pos, CubeFormat type, DataType dataType, bool isTrans = false) {
    return set_operand("SetBType", problem_.b, pos, type, dataType, isTrans);
  }
  int32_t SetCType(TPosition pos, CubeFormat type, DataType dataType) {
    return set_operand("SetCType", problem_.c, pos, type, dataType, false);
  }
  int32_t SetBiasType(TPosition pos, CubeFormat type, DataType dataType) {
    opkit::host::MatmulOperand bias;  // its sums' type is the bias table's
    return set_operand("SetBiasType", bias, pos, type, dataType, false);
  }
  /// The mode must be the kernel's; the tiling is the same in both.
  int32_t SetDequantType(DequantType dequantType) {
    dequant_type_ = dequantType;
    return 0;
  }
  int32_t SetShape(int32_t m, int32_t n, int32_t k) {
    if (!are_sizes({m, n, k})) return fail("SetShape", "a size is neither positive nor -1");
    shape_ = {m, n, k};
    return 0;
  }
  int32_t SetOrgShape(int32_t orgMIn, int32_t orgNIn, int32_t orgKIn) {
    return SetOrgShape(orgMIn, orgNIn, orgKIn, orgKIn);
  }
  int32_t SetOrgShape(int32_t orgMIn, int32_t orgNIn, int32_t orgKaIn, int32_t orgKbIn) {
    if (std::min({orgMIn, orgNIn, orgKaIn, orgKbIn}) <= 0) return fail("SetOrgShape", "a size is not positive");
    problem_.org_m = orgMIn;
    problem_.org_n = orgNIn;
    problem_.org_ka = orgKaIn;
    problem_.org_kb = orgKbIn;
    return 0;
  }
  int32_t SetALayout(int32_t b, int32_t s, int32_t n, int32_t g, int32_t d) {
    return set(a_layout_, Layout{b, s, n, g, d});
  }
  int32_t SetBLayout(int32_t b, int32_t s, int32_t n, int32_t g, int32_t d) {
    return set(b_layout_, Layout{b, s, n, g, d});
  }
  int32_t SetCLayout(int32_t b, int32_t s1, int32_t n, int32_t g, int32_t s2) {
    return set(c_layout_, Layout{b, s1, n, g, s2});
  }
  int32_t SetBatchInfoForNormal(int32_t batchA, int32_t batchB, int32_t m, int32_t n, int32_t k) {
    if (batchA <= 0 || batchB <= 0) return fail("SetBatchInfoForNormal", "a number of batches is not positive");
    if (std::max(batchA, batchB) % std::min(batchA, batchB) != 0) {
      return fail("SetBatchInfoForNormal", "batchA and batchB are not multiples of each other");
    }
    if (std::min({m, n, k}) <= 0) return fail("SetBatchInfoForNormal", "a size is not positive");
    set(a_layout_, Layout{batchA, m, 1, 1, k});
    set(b_layout_, Layout{batchB, n, 1, 1, k});
    return set(c_layout_, Layout{std::max(batchA, batchB), m, 1, 1, n});
  }
  int32_t SetBatchNum(int32_t batch) {
    if (batch <= 0) return fail("SetBatchNum", "the number of batches is not positive");
    batch_count_ = batch;
    return 0;
  }
  int32_t EnableBias(bool isBiasIn = false) {
    problem_.has_bias = isBiasIn;
    return 0;
  }
  int32_t SetBias(bool isBiasIn = false) { return EnableBias(isBiasIn); }
  int32_t SetFixSplit(int32_t baseMIn = -1, int32_t baseNIn = -1, int32_t baseKIn = -1) {
    if (!are_sizes({baseMIn, baseNIn, baseKIn})) return fail("SetFixSplit", "a size is neither positive nor -1");
    if ((baseMIn > 0 && baseMIn % 16 != 0) || (baseNIn > 0 && baseNIn % 16 != 0)) {
      return fail("SetFixSplit", "baseM and baseN are whole fractals: multiples of 16");
    }
    problem_.fix_m = baseMIn;
    problem_.fix_n = baseNIn;
    problem_.fix_k = baseKIn;
    return 0;
  }
  int32_t SetBufferSpace(int32_t l1Size = -1, int32_t l0CSize = -1, int32_t ubSize = -1, int32_t btSize = -1) {
    (void)ubSize;  // on chips with separate cores nothing of UB is needed
    if (std::min({l1Size, l0CSize, ubSize, btSize}) < -1) return fail("SetBufferSpace", "a size is below -1");
    if (is_more(l1Size, default_.l1_bytes) || is_more(l0CSize, default_.l0c_bytes) ||
        is_more(btSize, default_.bias_table_bytes)) {
      return fail("SetBufferSpace", "a size is more than the chip has");
    }
    problem_.l1_bytes = l1Size >= 0 ? static_cast<uint64_t>(l1Size) : default_.l1_bytes;
    problem_.l0c_bytes = l0CSize >= 0 ? static_cast<uint64_t>(l0CSize) : default_.l0c_bytes;
    problem_.bias_table_bytes = btSize >= 0 ? static_cast<uint64_t>(btSize) : default_.bias_table_bytes;
    return 0;
  }
  int32_t SetTraverse(MatrixTraverse traverse) {
    if (traverse != MatrixTraverse::FIRSTM && traverse != MatrixTraverse::FIRSTN) {
      return fail("SetTraverse", "takes FIRSTM and FIRSTN");
    }
    problem_.is_n_first = traverse == MatrixTraverse::FIRSTN;
    return 0;
  }
  int32_t SetMadType(MatrixMadType madType) {
    return madType == MatrixMadType::MXMODE ? fail("SetMadType", "MXMODE is not implemented in opkit") : 0;
  }
  int32_t SetSplitRange(int32_t maxBaseM = -1, int32_t maxBaseN = -1, int32_t maxBaseK = -1, int32_t minBaseM = -1,
                        int32_t minBaseN = -1, int32_t minBaseK = -1) {
    if (minBaseM > 0 || minBaseN > 0 || minBaseK > 0)
      return fail("SetSplitRange", "minima are not implemented in opkit");
    if (!are_sizes({maxBaseM, maxBaseN, maxBaseK})) return fail("SetSplitRange", "a size is neither positive nor -1");
    problem_.base_max[0] = maxBaseM;
    problem_.base_max[1] = maxBaseN;
    problem_.base_max[2] = maxBaseK;
    return 0;
  }
  /// Reserved in the public API: it changes nothing there either.
  int32_t SetDoubleBuffer(bool, bool, bool, bool, bool = true, bool = true) { return 0; }
  /// How sparse B is packed does not change the tiling.
  int32_t SetSparse(bool isSparseIn = false) {
    is_sparse_ = isSparseIn;
    return 0;
  }
  void SetMatmulConfigParams(int32_t mmConfigTypeIn = 1, bool enableL1CacheUBIn = false,
                             ScheduleType scheduleTypeIn = ScheduleType::INNER_PRODUCT,
                             MatrixTraverse traverseIn = MatrixTraverse::NOSET, bool enVecND2NZIn = false) {
    SetMatmulConfigParams(
        MatmulConfigParams(mmConfigTypeIn, enableL1CacheUBIn, scheduleTypeIn, traverseIn, enVecND2NZIn));
  }
  void SetMatmulConfigParams(const MatmulConfigParams& configParams) {
    problem_.is_outer_product = configParams.scheduleType == ScheduleType::OUTER_PRODUCT;
    problem_.is_n_buffer_33 = configParams.scheduleType == ScheduleType::N_BUFFER_33;
    if (configParams.traverse != MatrixTraverse::NOSET) SetTraverse(configParams.traverse);
  }
  int32_t GetBaseM() const { return solved_.baseM; }
  int32_t GetBaseN() const { return solved_.baseN; }
  int32_t GetBaseK() const { return solved_.baseK; }
  /// Whether A and B can lie in the two halves of L1.
  bool EnableL1BankConflictOptimise() const { return false; }

  /// Returns -1, and says why in the log, where there is no tiling.
  int64_t GetTiling(optiling::TCubeTiling& tiling) {
    if (solve() != 0) return -1;
#define CUBE_TILING_FIELD(name) tiling.set_##name(solved_.name);
#include "opkit/host/cube_tiling_fields.inc"
#undef CUBE_TILING_FIELD
    return 0;
  }
  int64_t GetTiling(AscendC::tiling::TCubeTiling& tiling) {
    if (solve() != 0) return -1;
    tiling = solved_;
    return 0;
  }

 protected:
  struct Layout {
    int32_t b = 0, s = 0, n = 0, g = 0, d = 0;
  };
  struct Shape {
    int32_t m = -1, n = -1, k = -1;
  };

  static int32_t fail(const char* function, const char* what) {
    OP_LOGE("Matmul tiling", "%s: %s", function, what);
    return -1;
  }

  static bool are_sizes(std::initializer_list<int32_t> sizes) {
    return std::all_of(sizes.begin(), sizes.end(), [](int32_t size) { return size > 0 || size == -1; });
  }
  static bool is_more(int32_t size, uint64_t limit) { return size > 0 && static_cast<uint64_t>(size) > limit; }

  opkit::host::MatmulProblem problem_;
  opkit::host::MatmulProblem default_;  ///< the chip's sizes
  opkit::host::MatmulCores cores_;
  AscendC::tiling::TCubeTiling solved_;

 private:
  static int32_t set(Layout& layout, const Layout& value) {
    if (std::min({value.b, value.s, value.n, value.g, value.d}) <= 0) {
      return fail("Set...Layout", "an axis is not positive");
    }
    layout = value;
    return 0;
  }

  static int32_t set_operand(const char* function, opkit::host::MatmulOperand& operand, TPosition position,
                             CubeFormat format, DataType type, bool is_transposed) {
    const uint32_t bits = bits_of(type);
    if (bits == 0) return fail(function, "this data type is not one of a matrix");
    operand.element_bits = bits;
    operand.is_local = position == TPosition::TSCM;
    operand.is_transposed = is_transposed;
    operand.is_nz = format == CubeFormat::NZ;
    return 0;
  }

  static uint32_t bits_of(DataType type) {
    switch (type) {
      case DataType::DT_INT4: return 4;
      case DataType::DT_INT8:
      case DataType::DT_UINT8: return 8;
      case DataType::DT_FLOAT16:
      case DataType::DT_BFLOAT16: return 16;
      case DataType::DT_FLOAT:
      case DataType::DT_INT32: return 32;
      default: return 0;
    }
  }

  int32_t solve() {
    problem_.m = shape_.m > 0 ? shape_.m : problem_.org_m;
    problem_.n = shape_.n > 0 ? shape_.n : problem_.org_n;
    problem_.k = shape_.k > 0 ? shape_.k : problem_.org_ka;
    if (problem_.org_m == 0 && std::min({problem_.m, problem_.n, problem_.k}) > 0) {
      SetOrgShape(problem_.m, problem_.n, problem_.k);
    }
    if (const char* error = opkit::host::solve_matmul(problem_, solved_, cores_)) return fail("GetTiling", error);
    solved_.ALayoutInfoB = a_layout_.b;
    solved_.ALayoutInfoS = a_layout_.s;
    solved_.ALayoutInfoN = a_layout_.n;
    solved_.ALayoutInfoG = a_layout_.g;
    solved_.ALayoutInfoD = a_layout_.d;
    solved_.BLayoutInfoB = b_layout_.b;
    solved_.BLayoutInfoS = b_layout_.s;
    solved_.BLayoutInfoN = b_layout_.n;
    solved_.BLayoutInfoG = b_layout_.g;
    solved_.BLayoutInfoD = b_layout_.d;
    solved_.CLayoutInfoB = c_layout_.b;
    solved_.CLayoutInfoS1 = c_layout_.s;
    solved_.CLayoutInfoN = c_layout_.n;
    solved_.CLayoutInfoG = c_layout_.g;
    solved_.CLayoutInfoS2 = c_layout_.d;
    solved_.BatchNum = batch_count_;
    return 0;
  }

  Shape shape_;
  Layout a_layout_;
  Layout b_layout_;
  Layout c_layout_;
  int32_t batch_count_ = 0;
  DequantType dequant_type_ = DequantType::SCALAR;
  bool is_sparse_ = false;
};

}  // namespace matmul_tiling
