// Checking launches: begin, run whatever launches kernels, end and read the findings.
#include <pybind11/pybind11.h>

#include <string>

#include "bindings.h"
#include "observe/checks.h"
#include "observe/finding_json.h"

namespace py = pybind11;

namespace opkit {
namespace {

void begin(const std::string& detectors, bool auto_sync, int64_t only_block, bool witness) {
  CheckOptions options;
  const std::string unknown = choose_detectors(options, detectors);
  if (!unknown.empty()) throw py::value_error("\"" + unknown + "\" is not a detector");
  options.has_auto_sync = auto_sync;
  if (only_block >= 0) options.only_block = static_cast<uint32_t>(only_block);
  options.witness = witness;
  begin_checks(options);
}

std::string end_checking() { return findings_json(end_checks()); }

}  // namespace

void bind_check(py::module_& module) {
  module.def("begin_checks", &begin, py::kw_only(), py::arg("detectors"), py::arg("auto_sync"), py::arg("only_block"),
             py::arg("witness"), "Attach the detectors asked for to every later launch.");
  module.def("end_checks", &end_checking,
             "Detach the detectors and return what they found, a JSON array; see opkit.sanitizer.Finding.");
}

}  // namespace opkit
