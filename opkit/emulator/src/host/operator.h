/// Operators as the library keeps them: what their OpDef says and the functions that came with it.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "opkit/host/abi.h"

namespace opkit::host {

struct Param {
  std::string name;
  Presence presence = Presence::Required;
  bool is_dtype_list = false;
  bool is_value_dependent = false;
  bool is_shape_computed = false;
  uint8_t scalar_kind = 0;
  bool is_auto_contiguous = false;
  bool ignores_contiguous = false;
  uint8_t follow_kinds = 0;
  std::string follow;
  std::vector<int32_t> dtypes;
  std::vector<int32_t> formats;
  std::vector<InitialValue> initial_values;
};

/// A value of any kind; which members count depends on `kind`.
struct AttrValue {
  opkit_attr_kind kind = OPKIT_ATTR_INT;
  int64_t int_value = 0;
  double float_value = 0;
  std::string string_value;
  std::vector<int64_t> ints;
  std::vector<size_t> list_lengths;  ///< of a list of lists, whose values are `ints`
  std::vector<double> floats;
};

struct Attr {
  std::string name;
  bool is_required = true;
  bool has_default = false;
  AttrValue default_value;
};

struct Config {
  std::string soc_config;
  std::string op_file;  ///< empty when none is named
  std::vector<Param> inputs;
  std::vector<Param> outputs;
};

/// Whether what an OpDef says for a family of chips may count for another one's: those whose kernels are written with
/// the functions that chips here have. Contests' projects name the chip of the contest alone.
inline bool stands_in(const std::string& soc_config) {
  for (const char* known : {"ascend910b", "ascend910_93", "ascend910", "ascend310p", "ascend310b"}) {
    if (soc_config == known) return true;
  }
  return false;
}

/// One field of a tiling data class; `array_length` is 0 for one that is no array.
struct TilingMember {
  std::string type;
  std::string name;
  size_t array_length = 0;
};

struct TilingStruct {
  std::string op_type;
  std::string class_name;
  std::vector<TilingMember> members;
};

struct Operator {
  std::string type;
  bool has_definition = false;
  std::vector<Param> inputs;
  std::vector<Param> outputs;
  std::vector<Attr> attrs;
  std::vector<Attr> private_attrs;  ///< behind `attrs`; callers do not give them
  std::vector<Config> configs;
  InferShapeFunction infer_shape = nullptr;
  InferDataTypeFunction infer_data_type = nullptr;
  TilingFunction tiling = nullptr;
  TilingParseFunction tiling_parse = nullptr;
  void* (*create_compile_info)() = nullptr;
  std::vector<size_t> value_dependent_inputs;  ///< beside those whose Param says so
  bool launches_with_empty_outputs = false;
  std::string unsupported;
};

/// The params of one operator on one chip: the OpDef's, replaced by name with those of the chip's AddConfig.
struct Signature {
  std::vector<Param> inputs;
  std::vector<Param> outputs;
};

/// All operators of one library, by type.
using Registry = std::map<std::string, Operator>;

/// What a library registers beside operators: its tiling data classes, in order.
using TilingStructs = std::vector<TilingStruct>;

/// Registrations on this thread go to `registry` while this object lives.
class RegistrationScope {
 public:
  explicit RegistrationScope(Registry& registry, TilingStructs* tiling_structs = nullptr);
  ~RegistrationScope();
  RegistrationScope(const RegistrationScope&) = delete;
  RegistrationScope& operator=(const RegistrationScope&) = delete;

  /// Why a registration was refused; empty when none was.
  const std::string& refusal() const { return refusal_; }

 private:
  friend void refuse(const std::string& reason);
  friend void take_tiling_struct(TilingStruct&& description);
  RegistrationScope* outer_;
  TilingStructs* tiling_structs_;
  Registry* outer_registry_;
  std::string refusal_;
};

/// AttrValue from the C form.
AttrValue attr_value(const opkit_attr& attr);

/// What an attribute kind is called in messages, such as "list of int".
const char* kind_name(opkit_attr_kind kind);

}  // namespace opkit::host
