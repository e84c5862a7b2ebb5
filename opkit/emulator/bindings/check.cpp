// Checking launches: begin, run whatever launches kernels, end and read the findings.
#include <pybind11/pybind11.h>

#include <string>

#include "bindings.h"
#include "observe/checks.h"
#include "observe/finding_json.h"

namespace py = pybind11;

namespace opkit {
namespace {

void begin(const std::string& detectors, bool auto_sync, int64_t only_block, bool witness, uint64_t key) {
  CheckOptions options;
  const std::string unknown = choose_detectors(options, detectors);
  if (!unknown.empty()) throw py::value_error("\"" + unknown + "\" is not a detector");
  options.has_auto_sync = auto_sync;
  if (only_block >= 0) options.only_block = static_cast<uint32_t>(only_block);
  options.witness = witness;
  begin_checks(options, key);
}

std::string end_checking(uint64_t key) { return findings_json(end_checks(key)); }

}  // namespace

void bind_check(py::module_& module) {
  module.def("begin_checks", &begin, py::kw_only(), py::arg("detectors"), py::arg("auto_sync"), py::arg("only_block"),
             py::arg("witness"), py::arg("key") = 0, "Attach the detectors asked for to every later launch.");
  module.def("end_checks", &end_checking, py::arg("key") = 0,
             "Detach the detectors of that key and return what they found, a JSON array; see opkit.sanitizer.Finding.");
}

}  // namespace opkit
