// opkit.emulator._emulator: the device, its chips and the instruction table, for Python.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <string>

#include "bindings.h"
#include "core/launch.h"
#include "core/names.h"
#include "isa/table.h"
#include "sched/time_limit.h"

namespace py = pybind11;

namespace opkit {

void raise_kernel_fault(const FaultReport& report) {
  // An interrupted launch: Python has noted the signal and raises KeyboardInterrupt here.
  if (report.fault == Fault::Interrupted && PyErr_CheckSignals() != 0) throw py::error_already_set();
  const py::object type = py::module_::import("opkit.errors").attr("KernelFault");
  const py::object path = py::module_::import("pathlib").attr("Path");
  const py::object none = py::none();
  const py::object error =
      type(report.message, py::arg("category") = fault_name(report.fault),
           py::arg("file") = report.file.empty() ? none : path(report.file),
           py::arg("line") = report.line == 0 ? none : py::cast(report.line), py::arg("kernel") = report.kernel,
           py::arg("block") = report.block, py::arg("sub_core") = report.sub_core,
           py::arg("pipe") = pipe_name(report.pipe), py::arg("instruction") = report.instruction,
           py::arg("help") = report.help.empty() ? none : py::cast(report.help));
  PyErr_SetObject(type.ptr(), error.ptr());
  throw py::error_already_set();
}

void raise_usage(const std::string& message) {
  const py::object type = py::module_::import("opkit.errors").attr("UsageError");
  PyErr_SetObject(type.ptr(), type(message).ptr());
  throw py::error_already_set();
}

namespace {

py::list dtype_codes(uint32_t types) {
  py::list result;
  for (size_t i = 0; i < static_cast<size_t>(DType::kCount); ++i) {
    if ((types >> i & 1) != 0) result.append(dtype_code(static_cast<DType>(i)));
  }
  return result;
}

py::list isa_table() {
  py::list rows;
  for (uint32_t i = 0; i < static_cast<uint32_t>(Op::kCount); ++i) {
    const OpRow& row = row_of(static_cast<Op>(i));
    py::dict entry;
    entry["name"] = row.name;
    entry["family"] = family_name(row.family);
    py::dict types;
    for (size_t arch = 0; arch < kArchCount; ++arch) {
      types[("dav-" + std::to_string(kArchs[arch].number)).c_str()] = dtype_codes(types_of(arch, static_cast<Op>(i)));
    }
    entry["dtypes"] = types;
    entry["cost"] = cost_name(row.cost);
    entry["semantics"] = row.semantics;
    rows.append(entry);
  }
  return rows;
}

void configure(const std::string& chip, uint32_t threads, bool poison, bool profile, uint64_t seed, bool chip_bounds,
               uint64_t inaccuracy_seed, bool allow_raw_writes, bool timing_only) {
  DeviceConfig config;
  config.chip = find_chip(chip);
  if (config.chip == nullptr) raise_usage("\"" + chip + "\" is not a chip that this build knows");
  config.threads = threads;
  config.poison = poison;
  config.profile = profile;
  config.seed = seed;
  config.chip_bounds = chip_bounds;
  config.inaccuracy_seed = inaccuracy_seed;
  config.allows_raw_writes = allow_raw_writes;
  config.timing_only = timing_only;
  Device::get().configure(config);
}

py::dict configuration() {
  const DeviceConfig config = Device::get().config();
  py::dict result;
  result["chip"] = config.chip->name;
  result["threads"] = config.threads;
  result["poison"] = config.poison;
  result["profile"] = config.profile;
  result["seed"] = config.seed;
  result["chip_bounds"] = config.chip_bounds;
  result["inaccuracy_seed"] = config.inaccuracy_seed;
  result["allow_raw_writes"] = config.allows_raw_writes;
  result["timing_only"] = config.timing_only;
  return result;
}

}  // namespace
}  // namespace opkit

PYBIND11_MODULE(_emulator, module) {
  module.doc() = "The AI-core emulator.";
  module.attr("abi_version") = opkit::kAbiVersion;
  module.def("isa_table", &opkit::isa_table, "Return the instruction table, one dict an instruction.");
  module.def("configure", &opkit::configure, py::arg("chip"), py::arg("threads"), py::arg("poison"), py::arg("profile"),
             py::arg("seed") = 0, py::arg("chip_bounds") = false, py::arg("inaccuracy_seed") = 0,
             py::arg("allow_raw_writes") = true, py::arg("timing_only") = false,
             "Set what later launches run on; threads 0 means one for each host core.");
  module.def("configuration", &opkit::configuration, "Return what launches run on.");
  py::class_<opkit::TimeLimit>(module, "TimeLimit", "Ends launches of which no core has ended for so many seconds.")
      .def(py::init<double, bool>(), py::arg("seconds"), py::arg("counts_host") = false);
  module.def(
      "fault_ids",
      [] {
        std::map<std::string, std::string> ids;
        for (int i = 1; i < static_cast<int>(opkit::Fault::kCount); ++i) {
          const auto fault = static_cast<opkit::Fault>(i);
          ids[opkit::fault_name(fault)] = opkit::fault_id(fault);
        }
        return ids;
      },
      "Return what reports call each fault, by its category.");
  opkit::bind_check(module);
  opkit::bind_kernel(module);
  opkit::bind_lanes(module);
  opkit::bind_debug(module);
  opkit::bind_describe(module);
  opkit::bind_op_call(module);
  opkit::bind_optimisers(module);
  opkit::bind_process(module);
  opkit::bind_timing(module);
  opkit::bind_wide(module);
}
