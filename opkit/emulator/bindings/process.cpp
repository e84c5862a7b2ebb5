// What this process tells of itself: its log, and its state for npu-smi.
#include <pybind11/pybind11.h>

#include "bindings.h"
#include "opkit/process_files.h"

namespace py = pybind11;

namespace opkit {

void bind_process(py::module_& module) {
  module.def("start_log", &process::start_log, "Send the emulator's records to the log that the environment names.");
  module.def(
      "show_process", [](const std::string& chip, int32_t devices) { process::State::get().start(chip, devices); },
      py::arg("chip"), py::arg("devices"), "Let npu-smi see this process and the memory that it holds.");
}

}  // namespace opkit
