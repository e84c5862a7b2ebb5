/// The prototype of an operator in C++. Source: Ascend C API, utilities, prototype registration and management.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "graph/ascend_string.h"
#include "graph/operator.h"
#include "graph/types.h"
#include "register/op_impl_registry.h"
#include "opkit/host/initial_value.h"
#include "opkit/host/prelude.h"

namespace optiling {

using OP_CHECK_FUNC = ge::graphStatus (*)(const ge::Operator& op, ge::AscendString& result);

/// Registers such a function by hand.
class OpCheckFuncHelper {
 public:
  OpCheckFuncHelper(const ge::AscendString&, const ge::AscendString&, OP_CHECK_FUNC) {}
};

}  // namespace optiling

namespace ops {

/// VIRTUAL: what the vendor's graph engine would make; here the caller gives it.
enum Option { IGNORE = 0, OPTIONAL = 1, REQUIRED = 2, DYNAMIC = 3, VIRTUAL = 4 };
enum class DependScope : uint32_t { ALL = 0, TILING = 1 };
enum class FollowType { ALL = 0, DTYPE = 1, FORMAT = 2, SHAPE = 3 };
enum class CommentSection { CATEGORY, BRIEF, CONSTRAINTS, RESTRICTIONS, SEE, THIRDPARTYFWKCOMPAT };
enum class FormatCheckOption { DEFAULT, STRICT };

namespace detail {
class DescriptionBuilder;
}  // namespace detail

/// One input or output.
class OpParamDef {
 public:
  explicit OpParamDef(const char* name) : name_(name) {}

  OpParamDef& ParamType(Option presence) { return presence_ = presence, *this; }
  OpParamDef& DataType(std::vector<ge::DataType> types) { return set_dtypes(types, false); }
  /// Each of these types combines with every combination of the other params.
  OpParamDef& DataTypeList(std::vector<ge::DataType> types) { return set_dtypes(types, true); }
  OpParamDef& Format(std::vector<ge::Format> formats) {
    formats_.assign(formats.begin(), formats.end());
    return *this;
  }
  OpParamDef& FormatList(std::vector<ge::Format> formats) { return Format(std::move(formats)); }
  /// Deprecated by its vendor: accepted, without effect.
  OpParamDef& UnknownShapeFormat(std::vector<ge::Format>) { return *this; }
  OpParamDef& ValueDepend(Option) { return is_value_dependent_ = true, *this; }
  OpParamDef& ValueDepend(Option, DependScope) { return is_value_dependent_ = true, *this; }

  OpParamDef& Follow(const char* name) { return Follow(name, FollowType::ALL); }
  OpParamDef& Follow(const char* name, FollowType kind) {
    using namespace opkit::host;
    const uint8_t kinds[] = {kFollowDtype | kFollowFormat | kFollowShape, kFollowDtype, kFollowFormat, kFollowShape};
    follow_ = name;
    follow_kinds_ = static_cast<uint8_t>(follow_kinds_ | kinds[static_cast<size_t>(kind)]);
    return *this;
  }

  /// Fills the output before the kernel runs, when tiling asks for it by SetNeedAtomic(true): with zeros, with one
  /// value, or with that of the combination of data types.
  OpParamDef& InitValue(uint64_t value) {
    if (value != 0) unsupported_ = "InitValue of a number other than 0: give it a ScalarType";
    initial_values_ = {{0, 1}};
    return *this;
  }
  OpParamDef& InitValue(const ScalarVar& value) { return InitValue(std::vector<ScalarVar>{value}); }
  OpParamDef& InitValue(const std::vector<ScalarVar>& values) {
    initial_values_.clear();
    for (const ScalarVar& value : values) {
      if (detail::size_bytes(value.scalar_type) == 0) unsupported_ = "InitValue of INVALID_DTYPE";
      initial_values_.push_back(detail::initial_value(value));
    }
    return *this;
  }
  /// The kernel writes the output's shape, behind the outputs of its parameters.
  OpParamDef& OutputShapeDependOnCompute() { return is_shape_computed_ = true, *this; }

  // What the aclnn functions take for this input, and whether they make tensors with gaps contiguous.
  OpParamDef& AutoContiguous() { return is_auto_contiguous_ = true, *this; }
  OpParamDef& IgnoreContiguous() { return ignores_contiguous_ = true, *this; }
  OpParamDef& Scalar() { return scalar_kind_ = 1, *this; }
  OpParamDef& ScalarList() { return scalar_kind_ = 2, *this; }

  // These shape the vendor's graph optimiser; a call of the kernel does not depend on them.
  OpParamDef& To(ge::DataType) { return *this; }
  OpParamDef& To(const char*) { return *this; }
  OpParamDef& Version(uint32_t) { return *this; }
  OpParamDef& Comment(const char*) { return *this; }
  OpParamDef& DataTypeForBinQuery(std::vector<ge::DataType>) { return *this; }
  OpParamDef& FormatForBinQuery(std::vector<ge::Format>) { return *this; }

 private:
  friend class OpAICoreConfig;
  friend class OpDef;
  friend class detail::DescriptionBuilder;

  OpParamDef& set_dtypes(const std::vector<ge::DataType>& types, bool is_list) {
    dtypes_.assign(types.begin(), types.end());
    is_dtype_list_ = is_list;
    return *this;
  }

  std::string name_;
  std::string follow_;
  std::string unsupported_;
  Option presence_ = REQUIRED;
  std::vector<int32_t> dtypes_;
  std::vector<int32_t> formats_;
  uint8_t follow_kinds_ = 0;
  bool is_dtype_list_ = false;
  bool is_value_dependent_ = false;
  std::vector<opkit::host::InitialValue> initial_values_;
  bool is_shape_computed_ = false;
  uint8_t scalar_kind_ = 0;
  bool is_auto_contiguous_ = false;
  bool ignores_contiguous_ = false;
};

/// One attribute.
class OpAttrDef {
 public:
  explicit OpAttrDef(const char* name) : name_(name) {}

  OpAttrDef& AttrType(Option presence) { return presence_ = presence, *this; }

  OpAttrDef& Int() { return set_kind(OPKIT_ATTR_INT, false); }
  OpAttrDef& Int(int64_t value) { return int_ = value, set_kind(OPKIT_ATTR_INT, true); }
  OpAttrDef& Float() { return set_kind(OPKIT_ATTR_FLOAT, false); }
  OpAttrDef& Float(float value) { return float_ = value, set_kind(OPKIT_ATTR_FLOAT, true); }
  OpAttrDef& Bool() { return set_kind(OPKIT_ATTR_BOOL, false); }
  OpAttrDef& Bool(bool value) { return int_ = value ? 1 : 0, set_kind(OPKIT_ATTR_BOOL, true); }
  OpAttrDef& String() { return set_kind(OPKIT_ATTR_STRING, false); }
  OpAttrDef& String(const char* value) { return string_ = value, set_kind(OPKIT_ATTR_STRING, true); }
  OpAttrDef& ListInt() { return set_kind(OPKIT_ATTR_LIST_INT, false); }
  OpAttrDef& ListInt(std::vector<int64_t> values) {
    ints_ = std::move(values);
    return set_kind(OPKIT_ATTR_LIST_INT, true);
  }
  OpAttrDef& ListFloat() { return set_kind(OPKIT_ATTR_LIST_FLOAT, false); }
  OpAttrDef& ListFloat(std::vector<float> values) {
    floats_.assign(values.begin(), values.end());
    return set_kind(OPKIT_ATTR_LIST_FLOAT, true);
  }
  OpAttrDef& ListBool() { return set_kind(OPKIT_ATTR_LIST_BOOL, false); }
  OpAttrDef& ListBool(std::vector<bool> values) {
    ints_.assign(values.begin(), values.end());
    return set_kind(OPKIT_ATTR_LIST_BOOL, true);
  }
  OpAttrDef& ListListInt() { return set_kind(OPKIT_ATTR_LIST_LIST_INT, false); }
  OpAttrDef& ListListInt(std::vector<std::vector<int64_t>> values) {
    ints_.clear();
    list_lengths_.clear();
    for (const std::vector<int64_t>& list : values) {
      ints_.insert(ints_.end(), list.begin(), list.end());
      list_lengths_.push_back(list.size());
    }
    return set_kind(OPKIT_ATTR_LIST_LIST_INT, true);
  }

  OpAttrDef& Version(uint32_t) { return *this; }
  OpAttrDef& Comment(const char*) { return *this; }

  ge::AscendString& GetName() const { return name_; }
  bool IsRequired() { return presence_ == REQUIRED; }

 private:
  friend class OpDef;
  friend class detail::DescriptionBuilder;

  OpAttrDef& set_kind(opkit_attr_kind kind, bool has_default) {
    kind_ = kind;
    has_default_ = has_default;
    return *this;
  }

  mutable ge::AscendString name_;
  Option presence_ = REQUIRED;
  opkit_attr_kind kind_ = OPKIT_ATTR_INT;
  bool has_default_ = false;
  int64_t int_ = 0;
  float float_ = 0;
  std::string string_;
  std::vector<int64_t> ints_;
  std::vector<size_t> list_lengths_;  ///< of a list of lists, whose values are ints_
  std::vector<double> floats_;
};

/// How the operator is configured for one family of chips.
class OpAICoreConfig {
 public:
  OpAICoreConfig() = default;
  explicit OpAICoreConfig(const char*) {}

  /// Params named here replace those of the OpDef with the same name.
  OpParamDef& Input(const char* name) { return find_or_add(inputs_, name); }
  OpParamDef& Output(const char* name) { return find_or_add(outputs_, name); }

  // These steer the vendor's graph compiler; a call of the kernel does not depend on them.
  OpAICoreConfig& DynamicCompileStaticFlag(bool) { return *this; }
  OpAICoreConfig& DynamicFormatFlag(bool) { return *this; }
  OpAICoreConfig& DynamicRankSupportFlag(bool) { return *this; }
  OpAICoreConfig& DynamicShapeSupportFlag(bool) { return *this; }
  OpAICoreConfig& NeedCheckSupportFlag(bool) { return *this; }
  OpAICoreConfig& PrecisionReduceFlag(bool) { return *this; }
  /// `opFile.value` names the kernel's file; other keys steer the vendor's build.
  OpAICoreConfig& ExtendCfgInfo(const char* key, const char* value) {
    if (std::string(key) == "opFile.value") op_file_ = value;
    return *this;
  }

 private:
  friend class OpDef;
  friend class detail::DescriptionBuilder;

  static OpParamDef& find_or_add(std::deque<OpParamDef>& params, const char* name) {
    for (OpParamDef& param : params) {
      if (param.name_ == name) return param;
    }
    params.emplace_back(name);
    return params.back();
  }

  // Deques: a reference that Input() returned stays good when more are added.
  std::deque<OpParamDef> inputs_;
  std::deque<OpParamDef> outputs_;
  std::string op_file_;
};

/// What the graph engine asks of an operator; opkit builds no graphs and never asks.
#define FUNC_CHECK_SUPPORTED "check_supported"
#define FUNC_OP_SELECT_FORMAT "op_select_format"
using optiling::OP_CHECK_FUNC;

class OpAICoreDef {
 public:
  OpAICoreDef& SetCheckSupport(OP_CHECK_FUNC function) { return check_support_ = function, *this; }
  OP_CHECK_FUNC& GetCheckSupport() { return check_support_; }
  OpAICoreDef& SetOpSelectFormat(OP_CHECK_FUNC) { return *this; }
  OpAICoreDef& SetOpSupportInfo(OP_CHECK_FUNC) { return *this; }
  OpAICoreDef& SetOpSpecInfo(OP_CHECK_FUNC) { return *this; }
  OpAICoreDef& SetParamGeneralize(OP_CHECK_FUNC) { return *this; }
  OpAICoreDef& SetTiling(gert::OpImplRegisterV2::TilingKernelFunc function) { return tiling_ = function, *this; }
  OpAICoreDef& AddConfig(const char* soc) {
    OpAICoreConfig config(soc);
    return AddConfig(soc, config);
  }
  OpAICoreDef& AddConfig(const char* soc, OpAICoreConfig& config) {
    configs_.emplace_back(soc, config);
    return *this;
  }
  /// Runs the kernel even when all outputs are empty.
  OpAICoreDef& LaunchWithZeroEleOutputTensors(bool launches) {
    launches_with_empty_outputs_ = launches;
    return *this;
  }

 private:
  friend class detail::DescriptionBuilder;

  gert::OpImplRegisterV2::TilingKernelFunc tiling_ = nullptr;
  OP_CHECK_FUNC check_support_ = nullptr;
  std::deque<std::pair<std::string, OpAICoreConfig>> configs_;
  bool launches_with_empty_outputs_ = false;
};

/// The groups of devices that a kernel communicates with. Source: Ascend C API, OpMC2Def.
class OpMC2Def {
 public:
  OpMC2Def& HcclGroup(const char*) { return *this; }
  OpMC2Def& HcclGroup(std::vector<const char*>) { return *this; }
};

/// Base of an operator's prototype class.
class OpDef {
 public:
  explicit OpDef(const char* type) : type_(type) {}

  OpParamDef& Input(const char* name) { return OpAICoreConfig::find_or_add(inputs_, name); }
  OpParamDef& Output(const char* name) { return OpAICoreConfig::find_or_add(outputs_, name); }
  OpAttrDef& Attr(const char* name) {
    for (OpAttrDef& attr : attrs_) {
      if (attr.name_ == ge::AscendString(name)) return attr;
    }
    attrs_.emplace_back(name);
    return attrs_.back();
  }

  OpDef& SetInferShape(gert::OpImplRegisterV2::InferShapeKernelFunc function) { return infer_shape_ = function, *this; }
  OpDef& SetInferDataType(gert::OpImplRegisterV2::InferDataTypeKernelFunc function) {
    return infer_data_type_ = function, *this;
  }
  /// Accepted and never called: opkit always knows the exact shapes.
  OpDef& SetInferShapeRange(gert::OpImplRegisterV2::InferShapeRangeKernelFunc) { return *this; }

  OpAICoreDef& AICore() { return ai_core_; }
  /// The kernel communicates with other devices, which calls here refuse by name.
  OpMC2Def& MC2() {
    communicates_ = true;
    return mc2_;
  }

  OpDef& Comment(CommentSection, const char*) { return *this; }
  OpDef& EnableFallBack() { return *this; }
  OpDef& FormatMatchMode(FormatCheckOption) { return *this; }

 private:
  friend class detail::DescriptionBuilder;

  std::string type_;
  std::deque<OpParamDef> inputs_;
  std::deque<OpParamDef> outputs_;
  std::deque<OpAttrDef> attrs_;
  OpAICoreDef ai_core_;
  OpMC2Def mc2_;
  bool communicates_ = false;
  gert::OpImplRegisterV2::InferShapeKernelFunc infer_shape_ = nullptr;
  gert::OpImplRegisterV2::InferDataTypeKernelFunc infer_data_type_ = nullptr;
};

}  // namespace ops
