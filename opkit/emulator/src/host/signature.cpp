// Matching the dtypes of a call with the combinations of an OpDef.
#include "signature.h"

#include <algorithm>

#include "call_error.h"
#include "dtypes.h"

namespace opkit::host {
namespace {

void replace_by_name(std::vector<Param>& params, const std::vector<Param>& replacements) {
  for (const Param& replacement : replacements) {
    const auto same =
        std::find_if(params.begin(), params.end(), [&](const Param& param) { return param.name == replacement.name; });
    if (same == params.end()) {
      params.push_back(replacement);
    } else {
      *same = replacement;
    }
  }
}

const Param* find_param(const std::vector<Param>& params, const std::string& name) {
  const auto found = std::find_if(params.begin(), params.end(), [&](const Param& param) { return param.name == name; });
  return found == params.end() ? nullptr : &*found;
}

bool follows_dtype(const Param& param) { return (param.follow_kinds & kFollowDtype) != 0; }

/// Checks once what later code relies on: every param has types or follows one that has, and the lists are equally
/// long.
void check(const Operator& entry, const Signature& signature) {
  const std::string where = "[" + entry.type + "] its OpDef is wrong: ";
  std::string first_name;
  size_t first_count = 0;
  const auto check_param = [&](const Param& param) {
    if (param.follow_kinds != 0) {
      const Param* followed = find_param(signature.inputs, param.follow);
      if (followed == nullptr || followed == &param) {
        fail(OPKIT_USAGE, where + param.name + " follows \"" + param.follow + "\", which is not another input");
      }
    }
    if (follows_dtype(param)) return;
    if (param.dtypes.empty()) fail(OPKIT_USAGE, where + param.name + " has no DataType");
    if (param.is_dtype_list) return;
    if (first_name.empty()) {
      first_name = param.name;
      first_count = param.dtypes.size();
    } else if (param.dtypes.size() != first_count) {
      fail(OPKIT_USAGE, where + first_name + " lists " + std::to_string(first_count) + " types and " + param.name +
                            " lists " + std::to_string(param.dtypes.size()) +
                            "; the i-th types of all params form one combination");
    }
  };
  for (const Param& param : signature.inputs) check_param(param);
  for (const Param& param : signature.outputs) check_param(param);
}

/// The param that says what types `param` has: itself, or the end of its chain of Follow.
const Param& dtype_source(const Signature& signature, const Param& param) {
  const Param* source = &param;
  for (size_t hops = 0; follows_dtype(*source) && hops <= signature.inputs.size(); ++hops) {
    source = find_param(signature.inputs, source->follow);
  }
  return *source;
}

/// Whether a param takes a type in one combination.
bool takes(const Signature& signature, const Param& param, size_t column, int32_t dtype) {
  const Param& source = dtype_source(signature, param);
  if (!source.is_dtype_list) return source.dtypes[column] == dtype;
  return std::find(source.dtypes.begin(), source.dtypes.end(), dtype) != source.dtypes.end();
}

}  // namespace

Signature signature_for(const Operator& entry, const std::string& soc_config) {
  if (!entry.unsupported.empty()) {
    fail(OPKIT_USAGE,
         "[" + entry.type + "] its OpDef uses " + entry.unsupported + ", which opkit does not support yet");
  }
  auto config = std::find_if(entry.configs.begin(), entry.configs.end(),
                             [&](const Config& candidate) { return candidate.soc_config == soc_config; });
  if (config == entry.configs.end()) {
    config = std::find_if(entry.configs.begin(), entry.configs.end(),
                          [](const Config& candidate) { return stands_in(candidate.soc_config); });
  }
  if (config == entry.configs.end()) {
    std::string listed;
    for (const Config& candidate : entry.configs) listed += (listed.empty() ? "" : ", ") + candidate.soc_config;
    fail(OPKIT_USAGE, "[" + entry.type + "] is not configured for " + soc_config +
                          " (it is for: " + (listed.empty() ? "no chip" : listed) + "); add AICore().AddConfig(\"" +
                          soc_config + "\") to its OpDef, or configure another chip");
  }
  Signature signature{entry.inputs, entry.outputs};
  replace_by_name(signature.inputs, config->inputs);
  replace_by_name(signature.outputs, config->outputs);
  for (size_t index : entry.value_dependent_inputs) {
    if (index < signature.inputs.size()) signature.inputs[index].is_value_dependent = true;
  }
  check(entry, signature);
  return signature;
}

size_t column_count(const Signature& signature) {
  for (const auto* params : {&signature.inputs, &signature.outputs}) {
    for (const Param& param : *params) {
      if (!follows_dtype(param) && !param.is_dtype_list) return param.dtypes.size();
    }
  }
  return 1;
}

std::vector<int32_t> dtypes_of(const Signature& signature, const Param& param, size_t column) {
  const Param& source = dtype_source(signature, param);
  return source.is_dtype_list ? source.dtypes : std::vector<int32_t>{source.dtypes[column]};
}

bool fits(const Signature& signature, size_t column, const std::vector<std::optional<int32_t>>& inputs,
          const std::vector<std::optional<int32_t>>& outputs) {
  const auto fit = [&](const std::vector<Param>& params, const std::vector<std::optional<int32_t>>& types) {
    for (size_t i = 0; i < params.size(); ++i) {
      if (!types[i].has_value()) continue;
      if (!takes(signature, params[i], column, *types[i])) return false;
      if (!follows_dtype(params[i])) continue;
      // Following a DataTypeList means the very type of that input, not any of the list.
      for (size_t j = 0; j < signature.inputs.size(); ++j) {
        const bool is_followed = signature.inputs[j].name == params[i].follow;
        if (is_followed && inputs[j].has_value() && *inputs[j] != *types[i]) return false;
      }
    }
    return true;
  };
  return fit(signature.inputs, inputs) && fit(signature.outputs, outputs);
}

std::string describe_columns(const Signature& signature) {
  const auto describe = [&](const std::vector<Param>& params, size_t column) {
    std::string text;
    for (const Param& param : params) {
      std::string types;
      for (int32_t dtype : dtypes_of(signature, param, column)) {
        types += (types.empty() ? "" : "|") + dtype_name(dtype);
      }
      text += (text.empty() ? "" : ", ") + types;
    }
    return text;
  };
  std::string text;
  for (size_t column = 0; column < column_count(signature); ++column) {
    text +=
        (text.empty() ? "" : "; ") + describe(signature.inputs, column) + " -> " + describe(signature.outputs, column);
  }
  return text;
}

}  // namespace opkit::host
