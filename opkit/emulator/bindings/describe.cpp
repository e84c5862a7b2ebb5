// What a host library registers, as Python's own lists and dicts.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings.h"
#include "host/call_error.h"
#include "host/describe.h"

namespace py = pybind11;

namespace opkit {
namespace {

const char* presence_name(host::Presence presence) {
  switch (presence) {
    case host::Presence::Required: return "required";
    case host::Presence::Optional: return "optional";
    case host::Presence::Dynamic: return "dynamic";
  }
  return "required";
}

py::list params(const std::vector<host::Param>& entries) {
  py::list out;
  for (const host::Param& entry : entries) {
    py::dict param;
    param["name"] = entry.name;
    param["param_type"] = presence_name(entry.presence);
    param["dtypes"] = entry.dtypes;
    param["formats"] = entry.formats;
    param["is_dtype_list"] = entry.is_dtype_list;
    param["is_value_dependent"] = entry.is_value_dependent;
    param["scalar_kind"] = entry.scalar_kind;
    param["is_auto_contiguous"] = entry.is_auto_contiguous;
    param["ignores_contiguous"] = entry.ignores_contiguous;
    param["follow"] = entry.follow;
    param["follows_dtype"] = (entry.follow_kinds & host::kFollowDtype) != 0;
    out.append(std::move(param));
  }
  return out;
}

py::object default_value(const host::Attr& attr) {
  const host::AttrValue& value = attr.default_value;
  if (!attr.has_default) return py::none();
  switch (value.kind) {
    case OPKIT_ATTR_INT: return py::int_(value.int_value);
    case OPKIT_ATTR_FLOAT: return py::float_(value.float_value);
    case OPKIT_ATTR_BOOL: return py::bool_(value.int_value != 0);
    case OPKIT_ATTR_STRING: return py::str(value.string_value);
    case OPKIT_ATTR_LIST_INT: return py::cast(value.ints);
    case OPKIT_ATTR_LIST_FLOAT: return py::cast(value.floats);
    case OPKIT_ATTR_LIST_BOOL: {
      py::list flags;
      for (int64_t item : value.ints) flags.append(py::bool_(item != 0));
      return std::move(flags);
    }
    case OPKIT_ATTR_LIST_LIST_INT: {
      py::list lists;
      size_t next = 0;
      for (size_t length : value.list_lengths) {
        py::list items;
        for (size_t i = 0; i < length; ++i) items.append(value.ints[next++]);
        lists.append(std::move(items));
      }
      return std::move(lists);
    }
  }
  return py::none();
}

/// The names that op.json gives attribute types.
const char* attr_type(opkit_attr_kind kind) {
  constexpr const char* kNames[] = {"int",      "float",      "bool",      "string",
                                    "list_int", "list_float", "list_bool", "list_list_int"};
  return kNames[kind];
}

py::dict operator_dict(const host::Operator& entry) {
  py::dict result;
  result["op"] = entry.type;
  result["inputs"] = params(entry.inputs);
  result["outputs"] = params(entry.outputs);
  py::list attrs;
  for (const host::Attr& attr : entry.attrs) {
    py::dict item;
    item["name"] = attr.name;
    item["type"] = attr_type(attr.default_value.kind);
    item["is_required"] = attr.is_required;
    item["default"] = default_value(attr);
    attrs.append(std::move(item));
  }
  result["attrs"] = std::move(attrs);
  py::list configs;
  for (const host::Config& config : entry.configs) {
    py::dict item;
    item["soc_config"] = config.soc_config;
    item["stands_in"] = host::stands_in(config.soc_config);
    item["op_file"] = config.op_file;
    item["inputs"] = params(config.inputs);
    item["outputs"] = params(config.outputs);
    configs.append(std::move(item));
  }
  result["configs"] = std::move(configs);
  result["unsupported"] = entry.unsupported;
  return result;
}

py::dict describe_operators(const std::string& file) {
  host::HostDescription description;
  try {
    description = host::describe_host(file);
  } catch (const host::CallError& error) {
    throw py::value_error(error.message);
  }
  py::list operators;
  for (const auto& [type, entry] : description.operators) {
    if (entry.has_definition) operators.append(operator_dict(entry));
  }
  py::list structs;
  for (const host::TilingStruct& entry : description.tiling_structs) {
    py::list members;
    for (const host::TilingMember& member : entry.members) {
      members.append(py::make_tuple(member.type, member.name, member.array_length));
    }
    py::dict item;
    item["op"] = entry.op_type;
    item["class_name"] = entry.class_name;
    item["members"] = std::move(members);
    structs.append(std::move(item));
  }
  py::dict result;
  result["operators"] = std::move(operators);
  result["tiling_structs"] = std::move(structs);
  return result;
}

}  // namespace

void bind_describe(py::module_& module) {
  module.def("describe_host", &describe_operators, py::arg("file"),
             "Load a host library and return the operators and tiling data classes that it registers. Raises "
             "ValueError when it cannot be loaded.");
}

}  // namespace opkit
