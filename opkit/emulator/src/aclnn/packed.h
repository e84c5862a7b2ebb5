/// Artifact folders that programs carry inside, written out for the loader, which reads files only.
#pragma once

#include <string>

#include "opkit/aclnn_call.h"

namespace opkit::aclnn {

/// Where a folder was written out; it is deleted when the process ends. Sets `reason` where it cannot be written.
std::string unpacked(const PackedFolder& folder, std::string* reason);

}  // namespace opkit::aclnn
