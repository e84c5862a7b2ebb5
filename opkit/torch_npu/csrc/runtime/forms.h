/// Forms of a function that write tensors of the caller's: `f_(x)` and `f(x, out=y)` beside `f(x)`.
#pragma once

#include <string>
#include <vector>

namespace opkit::npu {

/// Names, without aten::, of the forms of a function that PyTorch does not make of the function itself; none where it
/// writes one of its arguments.
std::vector<std::string> written_forms(const std::string& op);

/// Has each native function serve those of its forms that have no kernel of their own.
void add_forms();

}  // namespace opkit::npu
