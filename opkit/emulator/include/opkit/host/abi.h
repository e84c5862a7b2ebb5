/// What a host library (libop_host.so) tells the emulator library, and asks it. Plain data and C functions only: the
/// two may be built by different compilers. Host sources do not use this file; the headers under register/ do.
#pragma once

#include <cstddef>
#include <cstdint>

#include "opkit/export.h"
#include "opkit/op_call.h"

namespace gert {
class InferShapeContext;
class InferDataTypeContext;
class TilingContext;
class TilingParseContext;
}  // namespace gert

namespace fe {
struct PlatFormInfos;
}  // namespace fe

namespace opkit::host {

/// Changes with any type in this file and with the contexts under exe_graph/runtime.
constexpr uint32_t kHostAbiVersion = 5;

using InferShapeFunction = uint32_t (*)(gert::InferShapeContext*);
using InferDataTypeFunction = uint32_t (*)(gert::InferDataTypeContext*);
using TilingFunction = uint32_t (*)(gert::TilingContext*);
using TilingParseFunction = uint32_t (*)(gert::TilingParseContext*);

/// What a tiling function sets that chooses none of a kernel's instances; no kernel has it.
constexpr uint64_t kNoTilingKey = UINT64_MAX;

enum class Presence : uint8_t { Required, Optional, Dynamic };

/// Bits of ParamDescription::follow_kinds.
constexpr uint8_t kFollowDtype = 1;
constexpr uint8_t kFollowFormat = 2;
constexpr uint8_t kFollowShape = 4;

/// What an output holds before the kernel runs, over and over.
struct InitialValue {
  uint64_t bits;
  uint32_t size_bytes;  ///< 1, 2, 4 or 8
};

/// One input or output of an OpDef.
struct ParamDescription {
  const char* name;
  Presence presence;
  bool is_dtype_list;       ///< the types combine with any combination of the others (DataTypeList)
  bool is_value_dependent;  ///< host functions read its data (ValueDepend)
  bool is_shape_computed;   ///< the kernel writes the output's shape (OutputShapeDependOnCompute)
  uint8_t scalar_kind;      ///< aclnn functions take it as 1: a scalar (Scalar), 2: a list of scalars (ScalarList)
  bool is_auto_contiguous;  ///< aclnn functions make it contiguous (AutoContiguous)
  bool ignores_contiguous;  ///< not even when another input asks for it (IgnoreContiguous)
  uint8_t follow_kinds;     ///< what it takes from the input `follow`
  const char* follow;       ///< null when it follows none
  const int32_t* dtypes;    ///< ge::DataType numbers; column i of all params is one supported combination
  size_t dtype_count;
  const int32_t* formats;  ///< ge::Format numbers
  size_t format_count;
  const InitialValue* initial_values;  ///< InitValue: one for all columns, or one for each
  size_t initial_value_count;          ///< 0: it holds what lies there
};

/// One attribute; `default_value.kind` is its kind even when it has no default.
struct AttrDescription {
  const char* name;
  bool is_required;
  bool has_default;
  opkit_attr default_value;
};

/// What AddConfig says of one family of chips; its params replace those of the OpDef that have the same name.
struct ConfigDescription {
  const char* soc_config;
  const char* op_file;  ///< the kernel's file (ExtendCfgInfo opFile.value); null when none is named
  const ParamDescription* inputs;
  size_t input_count;
  const ParamDescription* outputs;
  size_t output_count;
};

/// One OpDef. The library copies what it needs before the call returns.
struct OpDescription {
  uint32_t abi_version;
  const char* op_type;
  const ParamDescription* inputs;
  size_t input_count;
  const ParamDescription* outputs;
  size_t output_count;
  const AttrDescription* attrs;
  size_t attr_count;
  const ConfigDescription* configs;
  size_t config_count;
  InferShapeFunction infer_shape;
  InferDataTypeFunction infer_data_type;
  TilingFunction tiling;
  bool launches_with_empty_outputs;
  const char* unsupported;  ///< what the OpDef uses that opkit does not have yet; null when there is nothing
};

/// Functions registered apart from the OpDef (IMPL_OP and its kin); null members are left as they were.
struct OpFunctions {
  uint32_t abi_version;
  const char* op_type;
  InferShapeFunction infer_shape;
  InferDataTypeFunction infer_data_type;
  TilingFunction tiling;
  TilingParseFunction tiling_parse;
  void* (*create_compile_info)();
  const size_t* value_dependent_inputs;  ///< indices in OpDef order
  size_t value_dependent_count;
  const AttrDescription* private_attr;  ///< one that host functions find behind the OpDef's; callers do not give it
};

/// One field of tiling data that is defined by the macros of register/tilingdata_base.h.
struct TilingField {
  const char* type;  ///< as it is written, or the class of a nested struct
  const char* name;
  size_t array_length;  ///< 0 for a field that is no array
};

/// One class of tiling data: what REGISTER_TILING_DATA_CLASS(op_type, class_name) says.
struct TilingClass {
  uint32_t abi_version;
  const char* op_type;
  const char* class_name;
  const TilingField* fields;
  size_t field_count;
};

enum class LogLevel : int32_t { Debug, Info, Warning, Error };

}  // namespace opkit::host

extern "C" {

/// Registers an operator for the library that is being opened.
OPKIT_API void opkit_register_operator(const opkit::host::OpDescription* description);

/// Registers functions of an operator; its OpDef may be registered before or after.
OPKIT_API void opkit_register_functions(const opkit::host::OpFunctions* functions);

/// Registers a class of tiling data. The build writes it into the kernel's source as a plain struct.
OPKIT_API void opkit_register_tiling_class(const opkit::host::TilingClass* description);

/// Finds the functions that libraries of this process registered while it started or loaded them by itself, apart from
/// those opened through op_call.h. False where the operator has none.
OPKIT_API bool opkit_find_functions(const char* op_type, opkit::host::OpFunctions* functions);

/// Takes one line of an operator's log. Errors become part of opkit_last_error() when the operator call fails.
OPKIT_API void opkit_log(opkit::host::LogLevel level, const char* operator_name, const char* file, uint32_t line,
                         const char* message);

/// The chip of that name, or the configured one when `soc_name` is null; null when there is no such chip.
OPKIT_API fe::PlatFormInfos* opkit_platform(const char* soc_name);
}
