// Registration: descriptions from host libraries become operators.
#include "operator.h"

namespace opkit::host {
namespace {

thread_local Registry* open_registry = nullptr;
thread_local RegistrationScope* open_scope = nullptr;

/// Of a process that has host code in itself, such as a test of a tiling function.
struct ProcessRegistry {
  std::mutex lock;
  Registry operators;
};
ProcessRegistry& process_registry() {
  static auto* const registry = new ProcessRegistry();  // never freed: libraries register while the process ends, too
  return *registry;
}

Operator& operator_in(Registry& registry, const char* op_type) {
  Operator& entry = registry[op_type];
  entry.type = op_type;
  return entry;
}

/// Calls `fill` with the operator in the library that is being opened; outside one, in the process.
template <typename Fill>
void fill_operator(const char* op_type, Fill&& fill) {
  if (open_registry != nullptr) return fill(operator_in(*open_registry, op_type));
  ProcessRegistry& process = process_registry();
  const std::lock_guard<std::mutex> guard(process.lock);
  fill(operator_in(process.operators, op_type));
}

std::vector<Param> params(const ParamDescription* descriptions, size_t count) {
  std::vector<Param> out;
  for (size_t i = 0; i < count; ++i) {
    const ParamDescription& from = descriptions[i];
    Param param;
    param.name = from.name;
    param.presence = from.presence;
    param.is_dtype_list = from.is_dtype_list;
    param.is_value_dependent = from.is_value_dependent;
    param.is_shape_computed = from.is_shape_computed;
    param.scalar_kind = from.scalar_kind;
    param.is_auto_contiguous = from.is_auto_contiguous;
    param.ignores_contiguous = from.ignores_contiguous;
    param.follow_kinds = from.follow_kinds;
    param.follow = from.follow == nullptr ? "" : from.follow;
    param.dtypes.assign(from.dtypes, from.dtypes + from.dtype_count);
    param.formats.assign(from.formats, from.formats + from.format_count);
    param.initial_values.assign(from.initial_values, from.initial_values + from.initial_value_count);
    out.push_back(std::move(param));
  }
  return out;
}

bool has_our_version(uint32_t version, const char* op_type);

template <typename Function>
void take(Function& target, Function function) {
  if (function != nullptr) target = function;
}

}  // namespace

void refuse(const std::string& reason) {
  if (open_scope != nullptr && open_scope->refusal_.empty()) open_scope->refusal_ = reason;
}

void take_tiling_struct(TilingStruct&& description) {
  if (open_scope == nullptr || open_scope->tiling_structs_ == nullptr) return;
  open_scope->tiling_structs_->push_back(std::move(description));
}

namespace {

bool has_our_version(uint32_t version, const char* op_type) {
  if (version == kHostAbiVersion) return true;
  refuse(std::string(op_type) + " was built against host headers of version " + std::to_string(version) +
         ", this opkit has version " + std::to_string(kHostAbiVersion) + ": build the project again");
  return false;
}

void define(Operator& entry, const OpDescription& description) {
  if (entry.has_definition) {
    refuse(std::string("two OpDefs register the operator ") + description.op_type);
    return;
  }
  entry.has_definition = true;
  entry.inputs = params(description.inputs, description.input_count);
  entry.outputs = params(description.outputs, description.output_count);
  for (size_t i = 0; i < description.attr_count; ++i) {
    const AttrDescription& attr = description.attrs[i];
    entry.attrs.push_back({attr.name, attr.is_required, attr.has_default, attr_value(attr.default_value)});
  }
  for (size_t i = 0; i < description.config_count; ++i) {
    const ConfigDescription& config = description.configs[i];
    entry.configs.push_back({config.soc_config, config.op_file == nullptr ? "" : config.op_file,
                             params(config.inputs, config.input_count), params(config.outputs, config.output_count)});
  }
  take(entry.infer_shape, description.infer_shape);
  take(entry.infer_data_type, description.infer_data_type);
  take(entry.tiling, description.tiling);
  entry.launches_with_empty_outputs = description.launches_with_empty_outputs;
  entry.unsupported = description.unsupported == nullptr ? "" : description.unsupported;
}

void add_functions(Operator& entry, const OpFunctions& functions) {
  take(entry.infer_shape, functions.infer_shape);
  take(entry.infer_data_type, functions.infer_data_type);
  take(entry.tiling, functions.tiling);
  take(entry.tiling_parse, functions.tiling_parse);
  take(entry.create_compile_info, functions.create_compile_info);
  entry.value_dependent_inputs.insert(entry.value_dependent_inputs.end(), functions.value_dependent_inputs,
                                      functions.value_dependent_inputs + functions.value_dependent_count);
  if (const AttrDescription* attr = functions.private_attr; attr != nullptr) {
    entry.private_attrs.push_back({attr->name, attr->is_required, attr->has_default, attr_value(attr->default_value)});
  }
}

}  // namespace

RegistrationScope::RegistrationScope(Registry& registry, TilingStructs* tiling_structs)
    : outer_(open_scope), tiling_structs_(tiling_structs), outer_registry_(open_registry) {
  open_registry = &registry;
  open_scope = this;
}

RegistrationScope::~RegistrationScope() {
  open_registry = outer_registry_;
  open_scope = outer_;
}

AttrValue attr_value(const opkit_attr& attr) {
  AttrValue value;
  value.kind = attr.kind;
  value.int_value = attr.int_value;
  value.float_value = attr.float_value;
  switch (attr.kind) {
    case OPKIT_ATTR_STRING: value.string_value = attr.string_value == nullptr ? "" : attr.string_value; break;
    case OPKIT_ATTR_LIST_INT:
    case OPKIT_ATTR_LIST_BOOL:
      if (attr.int_list != nullptr) value.ints.assign(attr.int_list, attr.int_list + attr.list_length);
      break;
    case OPKIT_ATTR_LIST_LIST_INT: {
      size_t count = 0;
      for (size_t i = 0; attr.list_lengths != nullptr && i < attr.list_length; ++i) {
        value.list_lengths.push_back(attr.list_lengths[i]);
        count += attr.list_lengths[i];
      }
      if (count != 0) value.ints.assign(attr.int_list, attr.int_list + count);
      break;
    }
    case OPKIT_ATTR_LIST_FLOAT:
      if (attr.float_list != nullptr) value.floats.assign(attr.float_list, attr.float_list + attr.list_length);
      break;
    default: break;
  }
  return value;
}

const char* kind_name(opkit_attr_kind kind) {
  switch (kind) {
    case OPKIT_ATTR_INT: return "int";
    case OPKIT_ATTR_FLOAT: return "float";
    case OPKIT_ATTR_BOOL: return "bool";
    case OPKIT_ATTR_STRING: return "string";
    case OPKIT_ATTR_LIST_INT: return "list of int";
    case OPKIT_ATTR_LIST_FLOAT: return "list of float";
    case OPKIT_ATTR_LIST_BOOL: return "list of bool";
    case OPKIT_ATTR_LIST_LIST_INT: return "list of lists of int";
  }
  return "unknown kind";
}

}  // namespace opkit::host

void opkit_register_operator(const opkit::host::OpDescription* description) {
  using namespace opkit::host;
  if (!has_our_version(description->abi_version, description->op_type)) return;
  fill_operator(description->op_type, [&](Operator& entry) { define(entry, *description); });
}

void opkit_register_functions(const opkit::host::OpFunctions* functions) {
  using namespace opkit::host;
  if (!has_our_version(functions->abi_version, functions->op_type)) return;
  fill_operator(functions->op_type, [&](Operator& entry) { add_functions(entry, *functions); });
}

bool opkit_find_functions(const char* op_type, opkit::host::OpFunctions* functions) {
  using namespace opkit::host;
  ProcessRegistry& process = process_registry();
  const std::lock_guard<std::mutex> guard(process.lock);
  const auto found = process.operators.find(op_type);
  if (found == process.operators.end()) return false;
  const Operator& entry = found->second;
  *functions = {};
  functions->abi_version = kHostAbiVersion;
  functions->op_type = entry.type.c_str();
  functions->infer_shape = entry.infer_shape;
  functions->infer_data_type = entry.infer_data_type;
  functions->tiling = entry.tiling;
  functions->tiling_parse = entry.tiling_parse;
  functions->create_compile_info = entry.create_compile_info;
  return true;
}

void opkit_register_tiling_class(const opkit::host::TilingClass* description) {
  using namespace opkit::host;
  if (!has_our_version(description->abi_version, description->op_type)) return;
  TilingStruct entry;
  entry.op_type = description->op_type;
  entry.class_name = description->class_name;
  for (size_t i = 0; i < description->field_count; ++i) {
    const TilingField& field = description->fields[i];
    entry.members.push_back({field.type, field.name, field.array_length});
  }
  take_tiling_struct(std::move(entry));
}
