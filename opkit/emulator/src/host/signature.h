/// Which dtypes an operator takes together, and which of them a call has.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator.h"

namespace opkit::host {

/// The params of an operator on the chips that `soc_config` names. Throws CallError when the OpDef does not list it, or
/// contradicts itself.
Signature signature_for(const Operator& entry, const std::string& soc_config);

/// Number of columns: the vertical combinations of the params' dtype lists.
size_t column_count(const Signature& signature);

/// Types that a param may have in a column: one, or several for a DataTypeList.
std::vector<int32_t> dtypes_of(const Signature& signature, const Param& param, size_t column);

/// Whether types fit a column; an unset one (absent input, unknown output) fits any.
bool fits(const Signature& signature, size_t column, const std::vector<std::optional<int32_t>>& inputs,
          const std::vector<std::optional<int32_t>>& outputs);

/// All combinations for a message, such as "float16, float16 -> float16; float32, float32 -> float32".
std::string describe_columns(const Signature& signature);

}  // namespace opkit::host
