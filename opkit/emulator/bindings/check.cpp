// Checking launches: begin, run whatever launches kernels, end and read the findings.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>

#include "bindings.h"
#include "observe/checks.h"

namespace py = pybind11;

namespace opkit {
namespace {

py::object site_dict(const Site& site) {
  if (site.file.empty()) return py::none();
  py::dict fields;
  fields["file"] = site.file;
  fields["line"] = site.line;
  fields["instruction"] = site.instruction;
  fields["pipe"] = pipe_name(site.pipe);
  return std::move(fields);
}

py::dict finding_dict(const Finding& finding) {
  py::dict fields;
  fields["id"] = finding.id;
  fields["message"] = finding.message;
  fields["help"] = finding.help;
  fields["kernel"] = finding.kernel;
  fields["site"] = site_dict(finding.site);
  fields["other"] = site_dict(finding.other);
  fields["block"] = finding.block;
  fields["sub_core"] = finding.is_cube ? "aic" : "aiv";
  fields["sub_block"] = finding.sub_block;
  fields["other_block"] = finding.other_block;
  fields["instruction"] = finding.instruction;
  fields["space"] = finding.space;
  fields["begin"] = finding.begin;
  fields["end"] = finding.end;
  fields["count"] = finding.count;
  return fields;
}

void begin(bool race, bool cross, bool init, bool leak, bool auto_sync) {
  begin_checks({race, cross, init, leak, auto_sync});
}

py::list end() {
  py::list findings;
  for (const Finding& finding : end_checks()) findings.append(finding_dict(finding));
  return findings;
}

}  // namespace

void bind_check(py::module_& module) {
  module.def("begin_checks", &begin, py::kw_only(), py::arg("race"), py::arg("cross"), py::arg("init"), py::arg("leak"),
             py::arg("auto_sync"), "Attach the detectors asked for to every later launch.");
  module.def("end_checks", &end,
             "Detach the detectors and return what they found, one dict a finding; see opkit.sanitizer.Finding.");
}

}  // namespace opkit
