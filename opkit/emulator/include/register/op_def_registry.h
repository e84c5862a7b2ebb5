/// Registering an operator's prototype: OP_ADD(AddCustom). In a kernel it declares nothing, as op_impl_registry.h.
#pragma once

#ifndef OPKIT_KERNEL_CONSTANTS

#include "register/op_def.h"

namespace ops {
namespace detail {

/// Describes an OpDef as plain data; what it returns points into the OpDef and into the builder.
class DescriptionBuilder {
 public:
  explicit DescriptionBuilder(const OpDef& definition) : definition_(definition) {}

  void submit() {
    opkit::host::OpDescription description = {};
    const auto inputs = params(definition_.inputs_);
    const auto outputs = params(definition_.outputs_);
    const auto attrs = attributes();
    for (const auto& [soc, config] : definition_.ai_core_.configs_) {
      config_inputs_.push_back(params(config.inputs_));
      config_outputs_.push_back(params(config.outputs_));
      const char* op_file = config.op_file_.empty() ? nullptr : config.op_file_.c_str();
      configs_.push_back({soc.c_str(), op_file, config_inputs_.back().data(), config_inputs_.back().size(),
                          config_outputs_.back().data(), config_outputs_.back().size()});
    }
    if (definition_.communicates_) note_unsupported("MC2", "a kernel that communicates with other devices");
    description.abi_version = opkit::host::kHostAbiVersion;
    description.op_type = definition_.type_.c_str();
    description.inputs = inputs.data();
    description.input_count = inputs.size();
    description.outputs = outputs.data();
    description.output_count = outputs.size();
    description.attrs = attrs.data();
    description.attr_count = attrs.size();
    description.configs = configs_.data();
    description.config_count = configs_.size();
    description.infer_shape = definition_.infer_shape_;
    description.infer_data_type = definition_.infer_data_type_;
    description.tiling = definition_.ai_core_.tiling_;
    description.launches_with_empty_outputs = definition_.ai_core_.launches_with_empty_outputs_;
    description.unsupported = unsupported_.empty() ? nullptr : unsupported_.c_str();
    opkit_register_operator(&description);
  }

 private:
  std::vector<opkit::host::ParamDescription> params(const std::deque<OpParamDef>& definitions) {
    using opkit::host::Presence;
    std::vector<opkit::host::ParamDescription> out;
    for (const OpParamDef& param : definitions) {
      const Presence presence = param.presence_ == DYNAMIC    ? Presence::Dynamic
                                : param.presence_ == OPTIONAL ? Presence::Optional
                                                              : Presence::Required;
      note_unsupported(param.name_, param.unsupported_);
      const size_t values = param.initial_values_.size();
      if (values > 1 && values != param.dtypes_.size()) {
        note_unsupported(param.name_, "InitValue of " + std::to_string(values) + " values for " +
                                          std::to_string(param.dtypes_.size()) + " data types");
      }
      for (size_t i = 0; values > 1 && i < values && values == param.dtypes_.size(); ++i) {
        for (size_t j = 0; j < i; ++j) {
          const auto &first = param.initial_values_[j], &second = param.initial_values_[i];
          if (param.dtypes_[i] == param.dtypes_[j] &&
              (first.bits != second.bits || first.size_bytes != second.size_bytes)) {
            note_unsupported(param.name_, "InitValue of two values for one data type");
          }
        }
      }
      out.push_back({param.name_.c_str(), presence, param.is_dtype_list_, param.is_value_dependent_,
                     param.is_shape_computed_, param.scalar_kind_, param.is_auto_contiguous_, param.ignores_contiguous_,
                     param.follow_kinds_, param.follow_.empty() ? nullptr : param.follow_.c_str(), param.dtypes_.data(),
                     param.dtypes_.size(), param.formats_.data(), param.formats_.size(), param.initial_values_.data(),
                     param.initial_values_.size()});
    }
    return out;
  }

  std::vector<opkit::host::AttrDescription> attributes() {
    std::vector<opkit::host::AttrDescription> out;
    for (const OpAttrDef& attr : definition_.attrs_) {
      size_t list_length = attr.ints_.size();
      if (attr.kind_ == OPKIT_ATTR_LIST_FLOAT) list_length = attr.floats_.size();
      if (attr.kind_ == OPKIT_ATTR_LIST_LIST_INT) list_length = attr.list_lengths_.size();
      out.push_back(
          {attr.name_.GetString(),
           attr.presence_ == REQUIRED,
           attr.has_default_,
           {attr.name_.GetString(), attr.kind_, attr.int_, static_cast<double>(attr.float_), attr.string_.c_str(),
            attr.ints_.data(), attr.floats_.data(), list_length, attr.list_lengths_.data()}});
    }
    return out;
  }

  void note_unsupported(const std::string& name, const std::string& what) {
    if (!what.empty() && unsupported_.empty()) unsupported_ = what + " (" + name + ")";
  }

  const OpDef& definition_;
  std::deque<std::vector<opkit::host::ParamDescription>> config_inputs_;
  std::deque<std::vector<opkit::host::ParamDescription>> config_outputs_;
  std::vector<opkit::host::ConfigDescription> configs_;
  std::string unsupported_;
};

template <typename Definition>
bool add(const char* op_type) {
  const Definition definition(op_type);
  DescriptionBuilder(definition).submit();
  return true;
}

}  // namespace detail
}  // namespace ops

/// A second argument names what a vendor's build parses the chip's numbers into; here TilingParse names it.
#define OP_ADD(op_type, ...) \
  [[maybe_unused]] static const bool opkit_added_##op_type = ::ops::detail::add<op_type>(#op_type)

#endif  // OPKIT_KERNEL_CONSTANTS
