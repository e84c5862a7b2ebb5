// The wider run beside a kernel's own, for opkit.testing's explanations.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cmath>

#include "bindings.h"
#include "isa/table.h"
#include "observe/wide.h"

namespace py = pybind11;

namespace opkit {
namespace {

/// (wider values, cores, stores) of an array that the launch wrote: NaN and -1 where nothing is known.
py::tuple values(const py::array& array) {
  const auto count = static_cast<size_t>(array.size());
  const auto bytes = static_cast<uint32_t>(array.itemsize());
  py::array_t<double> wide(static_cast<py::ssize_t>(count));
  py::array_t<int32_t> cores(static_cast<py::ssize_t>(count));
  py::array_t<int32_t> stores(static_cast<py::ssize_t>(count));
  const auto begin = reinterpret_cast<uint64_t>(array.data());
  for (size_t i = 0; i < count; ++i) {
    const WideCell* cell = wide_cell(begin + i * bytes, bytes);
    wide.mutable_data()[i] = cell == nullptr ? std::nan("") : cell->wide;
    cores.mutable_data()[i] = cell == nullptr ? -1 : cell->core;
    stores.mutable_data()[i] = cell == nullptr ? -1 : static_cast<int32_t>(cell->store);
  }
  return py::make_tuple(wide, cores, stores);
}

py::list trace(const py::array& array, size_t element) {
  const auto bytes = static_cast<uint32_t>(array.itemsize());
  py::list result;
  for (const auto& [number, node] : wide_trace(reinterpret_cast<uint64_t>(array.data()) + element * bytes, bytes)) {
    py::dict fields;
    fields["number"] = number;
    fields["instruction"] = node.instruction;
    fields["op"] = row_of(node.op).name;
    fields["file"] = node.file;
    fields["line"] = node.line;
    fields["actual"] = node.actual;
    fields["wide"] = node.wide;
    fields["gm_address"] = node.gm_address;
    fields["scalar"] = node.has_scalar ? py::cast(node.scalar) : py::none();
    py::list sources;
    py::list operands;
    for (uint8_t i = 0; i < node.source_count; ++i) {
      sources.append(node.sources[i]);
      operands.append(node.source_actual[i]);
    }
    fields["sources"] = sources;
    fields["operands"] = operands;
    result.append(fields);
  }
  return result;
}

py::list unfollowed() {
  py::list result;
  for (const Unfollowed& one : wide_unfollowed()) {
    py::dict fields;
    fields["op"] = row_of(one.op).name;
    fields["file"] = one.file;
    fields["line"] = one.line;
    fields["count"] = one.count;
    result.append(fields);
  }
  return result;
}

}  // namespace

void bind_wide(py::module_& module) {
  module.def(
      "begin_wide", [](bool is_double, int32_t traced_core) { begin_wide({is_double, traced_core}); },
      py::arg("is_double"), py::arg("traced_core") = -1,
      "Compute the arithmetic of later launches, which must use one thread, a second time in a wider type.");
  module.def("end_wide", &end_wide, "Stop that.");
  module.def("wide_values", &values, py::arg("array"),
             "Return (wider values, cores, stores) for each element of an array that the last launch wrote.");
  module.def("wide_trace", &trace, py::arg("array"), py::arg("element"),
             "Return the instructions that led to an element, in program order, one dict each.");
  module.def("wide_unfollowed", &unfollowed, "Return the instructions whose float results count as exact.");
  module.def("wide_trace_is_cut", &wide_trace_is_cut, "Return whether the trace ran out of room.");
}

}  // namespace opkit
