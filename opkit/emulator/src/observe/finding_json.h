/// Findings as text, for Python: `opkit.sanitizer.read_findings` reads it back.
#pragma once

#include <string>
#include <vector>

#include "observe/finding.h"
#include "opkit/export.h"

namespace opkit {

/// A JSON array with an object for each finding.
OPKIT_API std::string findings_json(const std::vector<Finding>& findings);

}  // namespace opkit
