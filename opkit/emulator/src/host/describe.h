/// What a host library registers, for tools that build around it.
#pragma once

#include <string>

#include "operator.h"

namespace opkit::host {

struct HostDescription {
  Registry operators;
  TilingStructs tiling_structs;
};

/// Loads a host library and returns what it registers. The library stays loaded. Throws CallError when it cannot be
/// loaded, or was built for another version of opkit.
OPKIT_API HostDescription describe_host(const std::string& file);

}  // namespace opkit::host
