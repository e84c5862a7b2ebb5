// Timelines of profiled launches, for opkit.profiling.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings.h"
#include "core/chip.h"
#include "isa/table.h"
#include "observe/timing.h"

namespace py = pybind11;

namespace opkit {
namespace {

constexpr const char* kPipeNames[] = {"S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX"};
constexpr size_t kPipeNameCount = sizeof(kPipeNames) / sizeof(kPipeNames[0]);

py::dict core_dict(const CoreTiming& core) {
  py::dict busy;
  for (size_t pipe = 0; pipe < kPipeNameCount; ++pipe) busy[kPipeNames[pipe]] = core.busy_cycles[pipe];
  py::dict result;
  result["block"] = core.block;
  result["sub_block"] = core.sub_block;
  result["kind"] = core.kind == SubCore::AIC ? "aic" : "aiv";
  result["start_cycle"] = core.start_cycle;
  result["end_cycle"] = core.end_cycle;
  result["busy_cycles"] = busy;
  return result;
}

py::dict line_dict(const LineTiming& line) {
  py::dict result;
  result["file"] = line.file;
  result["line"] = line.line;
  result["instruction"] = row_of(line.op).name;
  result["pipe"] = kPipeNames[static_cast<size_t>(line.pipe)];
  result["count"] = line.count;
  result["cycles"] = line.cycles;
  result["conflict_cycles"] = line.conflict_cycles;
  result["bytes"] = line.bytes;
  return result;
}

py::dict launch_dict(const LaunchTiming& timing) {
  py::list cores;
  for (const CoreTiming& core : timing.cores) cores.append(core_dict(core));
  py::list lines;
  for (const LineTiming& line : timing.lines) lines.append(line_dict(line));
  py::list events;
  for (const TimelineEvent& event : timing.events) {
    events.append(py::make_tuple(event.core, event.line, event.start_cycle, event.end_cycle, event.bytes));
  }
  py::dict result;
  result["kernel"] = timing.kernel;
  result["chip"] = timing.chip;
  result["block_dim"] = timing.block_dim;
  result["clock_mhz"] = timing.clock_mhz;
  result["launch_us"] = timing.launch_us;
  result["task_us"] = timing.task_us;
  result["total_cycles"] = timing.total_cycles;
  result["cores"] = cores;
  result["lines"] = lines;
  result["events"] = events;
  result["events_dropped"] = timing.events_dropped;
  result["gm_read_bytes"] = timing.gm_read_bytes;
  result["gm_write_bytes"] = timing.gm_write_bytes;
  result["l2_hit_bytes"] = timing.l2_hit_bytes;
  result["hbm_read_bytes"] = timing.hbm_read_bytes;
  result["hbm_write_bytes"] = timing.hbm_write_bytes;
  return result;
}

py::list launch_list(const std::vector<LaunchTiming>& timings) {
  py::list result;
  for (const LaunchTiming& timing : timings) result.append(launch_dict(timing));
  return result;
}

template <typename T>
void read(const py::dict& fields, const char* name, T& into) {
  if (fields.contains(name)) into = fields[name].cast<T>();
}

Operand operand_from(const py::dict& fields) {
  Operand operand;
  read(fields, "address", operand.address);
  read(fields, "block_stride", operand.block_stride);
  read(fields, "repeat_stride", operand.repeat_stride);
  operand.space =
      static_cast<Space>(fields.contains("space") ? fields["space"].cast<int>() : static_cast<int>(Space::UB));
  operand.dtype = static_cast<DType>(fields.contains("dtype") ? fields["dtype"].cast<int>() : 0);
  return operand;
}

Op op_from(const std::string& name) {
  for (uint32_t i = 0; i < static_cast<uint32_t>(Op::kCount); ++i) {
    if (name == row_of(static_cast<Op>(i)).name) return static_cast<Op>(i);
  }
  throw py::value_error("\"" + name + "\" is not an instruction");
}

Pipe pipe_from(const std::string& name) {
  for (size_t i = 0; i < kPipeNameCount; ++i) {
    if (name == kPipeNames[i]) return static_cast<Pipe>(i);
  }
  if (name == "ALL") return Pipe::ALL;
  throw py::value_error("\"" + name + "\" is not a pipe");
}

/// An instruction from a dict with the field names of opkit::Instr; `repeats` given means the mask-and-repeat form.
Instr instr_from(const py::dict& fields) {
  Instr instr;
  instr.op = op_from(fields["op"].cast<std::string>());
  if (fields.contains("pipe")) instr.pipe = pipe_from(fields["pipe"].cast<std::string>());
  if (fields.contains("peer_pipe")) instr.peer_pipe = pipe_from(fields["peer_pipe"].cast<std::string>());
  read(fields, "event_id", instr.event_id);
  read(fields, "count", instr.count);
  if (fields.contains("repeat")) {
    instr.mask_form = MaskForm::Prefix;
    instr.repeat = fields["repeat"].cast<uint32_t>();
  }
  if (fields.contains("dst")) instr.dst = operand_from(fields["dst"]);
  if (fields.contains("src")) {
    for (const py::handle source : fields["src"].cast<py::list>()) {
      instr.src[instr.source_count++] = operand_from(source.cast<py::dict>());
    }
  }
  read(fields, "burst_count", instr.copy.burst_count);
  read(fields, "burst_bytes", instr.copy.burst_bytes);
  read(fields, "src_stride", instr.copy.src_stride);
  read(fields, "dst_stride", instr.copy.dst_stride);
  read(fields, "line", instr.where.line);
  return instr;
}

py::dict time_streams(const std::string& chip_name, const py::list& cores, uint64_t event_limit, double clock_mhz) {
  const Chip* chip = find_chip(chip_name);
  if (chip == nullptr) throw py::value_error("\"" + chip_name + "\" is not a chip that this build knows");
  std::vector<InstructionStream> streams;
  for (const py::handle core : cores) {
    streams.push_back([core](const std::function<void(const Instr&)>& issue) {
      for (const py::handle instr : core) issue(instr_from(instr.cast<py::dict>()));
    });
  }
  return launch_dict(time_instructions(*chip, {event_limit, clock_mhz}, streams));
}

}  // namespace

void bind_timing(py::module_& module) {
  module.def(
      "timing_options", [](uint64_t event_limit, double clock_mhz) { set_timing_options({event_limit, clock_mhz}); },
      py::arg("event_limit"), py::arg("clock_mhz") = 0.0,
      "Set how many timeline events a profiled launch keeps, and the clock; 0 is the chip's own.");
  module.def(
      "take_timings", [] { return launch_list(take_timings()); },
      "Return what was timed since the last call, one dict a launch; see opkit.profiling.Timeline.");
  module.def("time_instructions", &time_streams, py::arg("chip"), py::arg("cores"), py::arg("event_limit") = 100000,
             py::arg("clock_mhz") = 0.0,
             "Time instruction streams, one iterable of dicts a core, without executing them.");
}

}  // namespace opkit
