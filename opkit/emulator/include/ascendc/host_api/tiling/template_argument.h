/// Kernels as templates: which arguments they are built for, and the tiling key that names each combination.
/// A project's header declares the parameters (ASCENDC_TPL_ARGS_DECL) and the combinations (ASCENDC_TPL_SEL); tiling
/// functions choose one of them (ASCENDC_TPL_SEL_PARAM). The build reads the same declarations out of the preprocessed
/// kernel, with OPKIT_LIST_TEMPLATES defined, and instantiates the kernel once for each combination: see
/// toolchain/source/kernel_templates.py, which numbers the combinations as EncodeTilingKey does.
/// Source: Ascend C API, utilities, tiling template programming.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/c_types.h"
#include "opkit/host/abi.h"

/// Which cores the instances of a combination run on.
enum TemplateKernelType : uint64_t {
  ASCENDC_TPL_AIV_ONLY = 0,
  ASCENDC_TPL_AIC_ONLY = 1,
  ASCENDC_TPL_MIX_AIV_1_0 = 2,
  ASCENDC_TPL_MIX_AIC_1_0 = 3,
  ASCENDC_TPL_MIX_AIC_1_1 = 4,
  ASCENDC_TPL_MIX_AIC_1_2 = 5,
  ASCENDC_TPL_AICORE = 6,
  ASCENDC_TPL_VECTORCORE = 7,
  ASCENDC_TPL_MIX_AICORE = 8,
  ASCENDC_TPL_MIX_VECTOR_CORE = 9
};

/// How the values of an unsigned parameter are written: ranges, a list, or ranges and then a list.
enum TemplateUintMode : uint64_t { ASCENDC_TPL_UI_RANGE, ASCENDC_TPL_UI_LIST, ASCENDC_TPL_UI_MIX };

namespace AscendC {

/// What a parameter is.
enum TemplateParamType : uint32_t {
  ASCENDC_TPL_DTYPE,
  ASCENDC_TPL_FORMAT,
  ASCENDC_TPL_UINT,
  ASCENDC_TPL_BOOL,
  ASCENDC_TPL_KERNEL_TYPE,
  ASCENDC_TPL_DETERMINISTIC,
  ASCENDC_TPL_SHARED_KERNEL_TYPE,
  OPKIT_TPL_TILING_STRUCT
};

/// One parameter, as declared or as a combination restricts it.
struct ParamStruct {
  const char* name;
  uint32_t paramType;
  uint8_t bitWidth;
  std::vector<uint64_t> vals;
  const char* macroType;

  ParamStruct(const char* inName, uint32_t inParamType, uint8_t inBitWidth, std::vector<uint64_t> inVals,
              const char* inMacroType)
      : name(inName), paramType(inParamType), bitWidth(inBitWidth), vals(std::move(inVals)), macroType(inMacroType) {}
};

using TilingDeclareParams = std::vector<ParamStruct>;
using TilingSelectParams = std::vector<std::vector<ParamStruct>>;

}  // namespace AscendC

namespace opkit::host {

/// Above every value: marks the type or format of an input or output, which the build takes from the operator.
constexpr uint64_t kTemplateOfInput = uint64_t{1} << 32;
constexpr uint64_t kTemplateOfOutput = uint64_t{1} << 33;

/// A parameter's values, in the order that numbers them.
inline std::vector<uint64_t> template_values(const AscendC::ParamStruct& param) {
  std::vector<uint64_t> values;
  if (param.paramType != AscendC::ASCENDC_TPL_UINT) {
    for (const uint64_t value : param.vals) {
      if (value < kTemplateOfInput) values.push_back(value);
    }
    return values;
  }
  if (param.vals.empty()) return values;
  const uint64_t mode = param.vals[0];
  size_t next = 1;
  if (mode != ASCENDC_TPL_UI_LIST) {
    const uint64_t ranges = next < param.vals.size() ? param.vals[next++] : 0;
    for (uint64_t i = 0; i < ranges && next + 1 < param.vals.size(); ++i, next += 2) {
      for (uint64_t value = param.vals[next]; value <= param.vals[next + 1]; ++value) values.push_back(value);
    }
  }
  if (mode != ASCENDC_TPL_UI_RANGE) values.insert(values.end(), param.vals.begin() + next, param.vals.end());
  return values;
}

inline bool template_allows(const AscendC::ParamStruct& param, uint64_t value) {
  const std::vector<uint64_t> values = template_values(param);
  if (values.empty() && param.paramType != AscendC::ASCENDC_TPL_UINT) return !param.vals.empty();
  for (const uint64_t allowed : values) {
    if (allowed == value) return true;
  }
  return false;
}

/// Whether a combination has a value for every parameter and allows the chosen one.
inline bool template_selects(const std::vector<AscendC::ParamStruct>& combination,
                             const AscendC::TilingDeclareParams& declared, const std::vector<uint64_t>& chosen) {
  for (size_t i = 0; i < declared.size(); ++i) {
    bool is_allowed = false;
    for (const AscendC::ParamStruct& param : combination) {
      const bool is_same = std::string(param.name) == declared[i].name;
      is_allowed = is_allowed || (is_same && template_allows(param, chosen[i]));
    }
    if (!is_allowed) return false;
  }
  return true;
}

inline uint64_t no_template_key(const std::string& why) {
  opkit_log(LogLevel::Error, "", "", 0, ("ASCENDC_TPL_SEL_PARAM: " + why).c_str());
  return kNoTilingKey;
}

}  // namespace opkit::host

namespace AscendC {

/// The tiling key of a choice: the parameters' fields, the first one lowest. An unsigned parameter's field holds the
/// value's place in the declaration, any other its value. A choice that no combination allows is an error in the log,
/// and its key is no kernel's.
inline uint64_t EncodeTilingKey(TilingDeclareParams declareParams, TilingSelectParams selectParamsVec,
                                std::vector<uint64_t> tilingParams) {
  std::string choice;
  for (const uint64_t value : tilingParams) choice += (choice.empty() ? "" : ", ") + std::to_string(value);
  if (tilingParams.size() != declareParams.size()) {
    return opkit::host::no_template_key("(" + choice + ") are " + std::to_string(tilingParams.size()) +
                                        " values for the " + std::to_string(declareParams.size()) +
                                        " parameters that ASCENDC_TPL_ARGS_DECL declares");
  }
  bool is_selected = false;
  for (const auto& combination : selectParamsVec) {
    is_selected = is_selected || opkit::host::template_selects(combination, declareParams, tilingParams);
  }
  if (!is_selected) {
    return opkit::host::no_template_key("no ASCENDC_TPL_ARGS_SEL allows (" + choice + ")");
  }
  uint64_t key = 0;
  uint32_t shift = 0;
  for (size_t i = 0; i < declareParams.size(); ++i) {
    const ParamStruct& param = declareParams[i];
    uint64_t field = tilingParams[i];
    if (param.paramType == ASCENDC_TPL_UINT) {
      const std::vector<uint64_t> values = opkit::host::template_values(param);
      for (field = 0; field < values.size() && values[field] != tilingParams[i];) ++field;
      if (field == values.size()) {
        return opkit::host::no_template_key(std::string(param.name) + " is declared without the value " +
                                            std::to_string(tilingParams[i]));
      }
    }
    if (shift + param.bitWidth > 64 || field >> param.bitWidth != 0) {
      return opkit::host::no_template_key(std::string(param.name) + " does not fit into its " +
                                          std::to_string(param.bitWidth) + " bits of the tiling key");
    }
    key |= field << shift;
    shift += param.bitWidth;
  }
  return key;
}

}  // namespace AscendC

#define ASCENDC_TPL_1_BW 1
#define ASCENDC_TPL_2_BW 2
#define ASCENDC_TPL_4_BW 4
#define ASCENDC_TPL_8_BW 8

#ifndef OPKIT_LIST_TEMPLATES
#define ASCENDC_TPL_INPUT(index) (::opkit::host::kTemplateOfInput + (index))
#define ASCENDC_TPL_OUTPUT(index) (::opkit::host::kTemplateOfOutput + (index))

#define OPKIT_TPL_PARAM(name, kind, width, macro, ...) \
  ::AscendC::ParamStruct { name, ::AscendC::kind, width, {__VA_ARGS__}, macro }

#define ASCENDC_TPL_DTYPE_DECL(x, ...) OPKIT_TPL_PARAM(#x, ASCENDC_TPL_DTYPE, 8, "DECL", __VA_ARGS__)
#define ASCENDC_TPL_DATATYPE_DECL(x, ...) OPKIT_TPL_PARAM(#x, ASCENDC_TPL_DTYPE, 8, "DECL", __VA_ARGS__)
#define ASCENDC_TPL_FORMAT_DECL(x, ...) OPKIT_TPL_PARAM(#x, ASCENDC_TPL_FORMAT, 8, "DECL", __VA_ARGS__)
#define ASCENDC_TPL_UINT_DECL(x, bw, ...) OPKIT_TPL_PARAM(#x, ASCENDC_TPL_UINT, bw, "DECL", __VA_ARGS__)
#define ASCENDC_TPL_BOOL_DECL(x, ...) OPKIT_TPL_PARAM(#x, ASCENDC_TPL_BOOL, 1, "DECL", __VA_ARGS__)
#define ASCENDC_TPL_KERNEL_TYPE_DECL(x, ...) OPKIT_TPL_PARAM(#x, ASCENDC_TPL_SHARED_KERNEL_TYPE, 8, "DECL", __VA_ARGS__)

#define ASCENDC_TPL_DTYPE_SEL(x, ...) OPKIT_TPL_PARAM(#x, ASCENDC_TPL_DTYPE, 8, "SEL", __VA_ARGS__)
#define ASCENDC_TPL_DATATYPE_SEL(x, ...) OPKIT_TPL_PARAM(#x, ASCENDC_TPL_DTYPE, 8, "SEL", __VA_ARGS__)
#define ASCENDC_TPL_FORMAT_SEL(x, ...) OPKIT_TPL_PARAM(#x, ASCENDC_TPL_FORMAT, 8, "SEL", __VA_ARGS__)
#define ASCENDC_TPL_UINT_SEL(x, ...) OPKIT_TPL_PARAM(#x, ASCENDC_TPL_UINT, 0, "SEL", __VA_ARGS__)
#define ASCENDC_TPL_BOOL_SEL(x, ...) OPKIT_TPL_PARAM(#x, ASCENDC_TPL_BOOL, 1, "SEL", __VA_ARGS__)
#define ASCENDC_TPL_KERNEL_TYPE_SEL(...) OPKIT_TPL_PARAM("kernel_type", ASCENDC_TPL_KERNEL_TYPE, 8, "SEL", __VA_ARGS__)
#define ASCENDC_TPL_DETERMINISTIC_SEL(...) \
  OPKIT_TPL_PARAM("deterministic", ASCENDC_TPL_DETERMINISTIC, 1, "SEL", __VA_ARGS__)
#define ASCENDC_TPL_SHARED_KERNEL_TYPE_SEL(x, ...) \
  OPKIT_TPL_PARAM(#x, ASCENDC_TPL_SHARED_KERNEL_TYPE, 8, "SEL", __VA_ARGS__)
/// Names the struct that GET_TILING_DATA reads in this combination's kernels; no part of the key.
#define ASCENDC_TPL_TILING_STRUCT_SEL(x, ...) OPKIT_TPL_PARAM(#x, OPKIT_TPL_TILING_STRUCT, 0, "SEL", )

#define ASCENDC_TPL_ARGS_SEL(...) {__VA_ARGS__}
#ifdef OPKIT_KERNEL_OF_OPERATOR
/// The kernel chooses nothing, and its tiling key header may come twice: only tiling functions see variables.
#define ASCENDC_TPL_ARGS_DECL(op_type, ...) static_assert(true, "")
#define ASCENDC_TPL_SEL(...) static_assert(true, "")
#else
#define ASCENDC_TPL_ARGS_DECL(op_type, ...) \
  [[maybe_unused]] static ::AscendC::TilingDeclareParams g_tilingDeclareParams { __VA_ARGS__ }
#define ASCENDC_TPL_SEL(...) \
  [[maybe_unused]] static ::AscendC::TilingSelectParams g_tilingSelectParams { __VA_ARGS__ }
#endif

/// The tiling key of a choice of values, in the order of the declaration.
#define GET_TPL_TILING_KEY(...) ::AscendC::EncodeTilingKey(g_tilingDeclareParams, g_tilingSelectParams, {__VA_ARGS__})
/// Chooses the kernel that a tiling function wants.
#define ASCENDC_TPL_SEL_PARAM(context, ...)                            \
  do {                                                                 \
    const uint64_t opkit_tiling_key = GET_TPL_TILING_KEY(__VA_ARGS__); \
    (context)->SetTilingKey(opkit_tiling_key);                         \
  } while (0)
#endif
