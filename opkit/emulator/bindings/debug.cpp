// Recordings of launches and what they were like at any instruction, for opkit.debugging.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bindings.h"
#include "core/names.h"
#include "debug/playback.h"
#include "debug/recording.h"
#include "isa/table.h"

namespace py = pybind11;

namespace opkit {
namespace {

using debug::Footprint;
using debug::Playback;
using debug::Recording;

Space space_of_name(const std::string& name) {
  for (uint8_t space = 0; space < static_cast<uint8_t>(Space::kCount); ++space) {
    if (name == debug::memory_name(static_cast<Space>(space))) return static_cast<Space>(space);
  }
  throw py::value_error("\"" + name + "\" is not a memory");
}

py::dict footprint_dict(const Footprint& piece) {
  py::dict fields;
  fields["operand"] = piece.operand;
  fields["space"] = debug::memory_name(piece.space);
  fields["dtype"] = dtype_code(piece.dtype);
  fields["begin"] = piece.begin;
  fields["bytes"] = piece.bytes;
  fields["is_write"] = piece.is_write;
  return fields;
}

py::list footprint_list(const std::vector<Footprint>& pieces) {
  py::list list;
  for (const Footprint& piece : pieces) list.append(footprint_dict(piece));
  return list;
}

py::dict operand_dict(const Operand& operand) {
  py::dict fields;
  fields["space"] = debug::memory_name(operand.space);
  fields["address"] = operand.address;
  fields["begin"] = operand.begin;
  fields["end"] = operand.end;
  fields["dtype"] = dtype_code(operand.dtype);
  return fields;
}

const char* action_name(ResourceEvent::Action action) {
  static constexpr const char* kNames[] = {"PlaceBuffer", "AllocTensor",  "EnQue",         "DeQue",
                                           "FreeTensor",  "AllocEventID", "ReleaseEventID"};
  return kNames[static_cast<size_t>(action)];
}

template <typename T>
py::array_t<T> column(size_t count) {
  return py::array_t<T>(static_cast<py::ssize_t>(count));
}

/// One recorded launch.
class RecordedLaunch {
 public:
  explicit RecordedLaunch(std::shared_ptr<Recording> recording) : playback_(std::move(recording)) {}

  py::dict about() const {
    const Recording& recording = playback_.recording();
    py::dict fields;
    fields["kernel"] = recording.kernel;
    fields["chip"] = recording.chip->name;
    fields["block_dim"] = recording.block_dim;
    fields["launch"] = recording.launch;
    fields["steps"] = recording.steps.size();
    fields["is_cut"] = recording.is_cut;
    fields["bytes"] = recording.arena.used();
    py::list cores;
    for (const debug::CoreRecord& core : recording.cores) {
      cores.append(py::make_tuple(core.kind == SubCore::AIC ? "aic" : "aiv", core.block, core.sub_block));
    }
    fields["cores"] = cores;
    py::list ranges;
    for (const debug::RangeRecord& range : recording.ranges) {
      ranges.append(py::make_tuple(range.name, range.begin, range.end - range.begin));
    }
    fields["ranges"] = ranges;
    py::list sites;
    for (const debug::SiteRecord& site : recording.sites) sites.append(py::make_tuple(site.file, site.line));
    fields["sites"] = sites;
    py::dict spaces;
    for (uint32_t space = 1; space < 8; ++space) {
      spaces[debug::memory_name(static_cast<Space>(space))] = recording.chip->space_bytes[space];
    }
    fields["space_bytes"] = spaces;
    const FaultReport& fault = recording.fault;
    if (fault.fault == Fault::None) {
      fields["fault"] = py::none();
      return fields;
    }
    py::dict report;
    report["category"] = fault_name(fault.fault);
    report["message"] = fault.message;
    report["help"] = fault.help;
    report["file"] = fault.file;
    report["line"] = fault.line;
    report["block"] = fault.block;
    report["sub_core"] = fault.sub_core;
    report["instruction"] = fault.instruction;
    fields["fault"] = report;
    return fields;
  }

  /// One array a field, one element an instruction.
  py::dict columns() {
    const std::vector<debug::StepRecord>& steps = playback_.recording().steps;
    const size_t count = steps.size();
    auto core = column<uint32_t>(count);
    auto number = column<uint64_t>(count);
    auto site = column<uint32_t>(count);
    auto op = column<uint16_t>(count);
    auto pipe = column<uint8_t>(count);
    auto complete = column<bool>(count);
    for (size_t i = 0; i < count; ++i) {
      core.mutable_data()[i] = steps[i].core;
      number.mutable_data()[i] = steps[i].number;
      site.mutable_data()[i] = steps[i].site;
      op.mutable_data()[i] = static_cast<uint16_t>(steps[i].op);
      pipe.mutable_data()[i] = static_cast<uint8_t>(steps[i].pipe);
      complete.mutable_data()[i] = steps[i].is_complete;
    }
    py::dict fields;
    fields["core"] = core;
    fields["number"] = number;
    fields["site"] = site;
    fields["op"] = op;
    fields["pipe"] = pipe;
    fields["complete"] = complete;
    return fields;
  }

  /// Where each instruction writes: (space numbers, begins, ends); an end of 0: nowhere.
  py::tuple hulls() {
    const std::vector<debug::Hull>& hulls = playback_.hulls();
    auto space = column<uint8_t>(hulls.size());
    auto begin = column<uint64_t>(hulls.size());
    auto end = column<uint64_t>(hulls.size());
    for (size_t i = 0; i < hulls.size(); ++i) {
      space.mutable_data()[i] = static_cast<uint8_t>(hulls[i].space);
      begin.mutable_data()[i] = hulls[i].begin;
      end.mutable_data()[i] = hulls[i].end;
    }
    return py::make_tuple(space, begin, end);
  }

  py::list events() const {
    py::list list;
    for (const debug::EventRecord& event : playback_.recording().events) {
      py::dict fields;
      fields["step"] = event.step;
      fields["core"] = event.core;
      fields["site"] = event.site;
      fields["queue"] = event.queue;
      fields["address"] = event.address;
      fields["bytes"] = event.bytes;
      fields["action"] = action_name(event.action);
      fields["space"] = debug::memory_name(event.space);
      fields["first"] = pipe_name(event.first);
      fields["second"] = pipe_name(event.second);
      fields["event_id"] = event.event_id;
      fields["is_queues"] = event.is_queues;
      list.append(fields);
    }
    return list;
  }

  py::dict instruction(uint64_t step) {
    check(step);
    const debug::StepRecord& record = playback_.recording().steps[step];
    const Instr instr = playback_.recorded(step);
    const OpRow& row = row_of(record.op);
    py::dict fields;
    fields["op"] = row.name;
    fields["family"] = family_name(row.family);
    fields["pipe"] = pipe_name(instr.pipe);
    fields["peer_pipe"] = pipe_name(instr.peer_pipe);
    fields["event_id"] = instr.event_id;
    fields["mode"] = instr.mode;
    fields["count"] = instr.count;
    fields["repeat"] = instr.repeat;
    fields["is_complete"] = record.is_complete;
    fields["dst"] = operand_dict(instr.dst);
    py::list sources;
    for (uint32_t i = 0; i < instr.source_count && i < 3; ++i) sources.append(operand_dict(instr.src[i]));
    fields["sources"] = sources;
    const bool has_scalar = row.family == Family::VecBinaryScalar || record.op == Op::Duplicate ||
                            record.op == Op::CompareScalar || record.op == Op::CreateVecIndex;
    fields["scalar_bits"] = has_scalar ? py::cast(instr.scalar_bits[0]) : py::none();
    fields["scalar_dtype"] = dtype_code(record.op == Op::Duplicate ? instr.dst.dtype : instr.scalar_dtype);
    fields["footprint"] = footprint_list(playback_.footprint(step));
    return fields;
  }

  py::object read(uint64_t step, uint32_t core, const std::string& space, uint64_t address, uint64_t bytes) {
    const std::vector<uint8_t> found = playback_.read(step, core, space_of_name(space), address, bytes);
    if (found.empty() && bytes != 0) return py::none();
    return py::bytes(reinterpret_cast<const char*>(found.data()), found.size());
  }

  uint64_t find_nan(uint64_t from, uint64_t to, int64_t core, const std::string& space, uint64_t begin, uint64_t end,
                    bool also_infinite) {
    return playback_.find_nan(from, to, core, space_of_name(space), begin, end, also_infinite);
  }

  py::list flags(uint64_t step, uint32_t core) const {
    py::list list;
    for (const Playback::Flag& flag : playback_.flags(step, core)) {
      list.append(py::make_tuple(pipe_name(flag.first), pipe_name(flag.second), flag.id, flag.count));
    }
    return list;
  }

  py::dict slice(uint64_t step, uint32_t core, const std::string& space, uint64_t address, uint64_t bytes,
                 uint64_t most_nodes) {
    const debug::Slice found = debug::slice(playback_, step, core, space_of_name(space), address, bytes, most_nodes);
    py::list nodes;
    for (const debug::SliceNode& node : found.nodes) {
      py::dict fields;
      fields["step"] = node.step;
      fields["wanted"] = footprint_list(node.wanted);
      fields["sources"] = footprint_list(node.sources);
      fields["scalar_step"] = node.scalar_step;
      nodes.append(fields);
    }
    py::list origins;
    for (const auto& [owner, piece] : found.origins) {
      py::dict fields = footprint_dict(piece);
      fields["core"] = owner;
      origins.append(fields);
    }
    py::dict fields;
    fields["nodes"] = nodes;
    fields["origins"] = origins;
    fields["is_cut"] = found.is_cut;
    return fields;
  }

  uint64_t count_differing_checkpoints() { return playback_.count_differing_checkpoints(); }
  void save(const std::string& path) const {
    if (!debug::save_recording(playback_.recording(), path)) throw std::runtime_error("it cannot be written");
  }

 private:
  void check(uint64_t step) const {
    if (step >= playback_.step_count()) throw py::index_error("there is no such instruction");
  }

  Playback playback_;
};

void begin_recording(uint64_t limit_bytes, const std::string& spill_folder, uint32_t launch, const std::string& kernel,
                     bool is_poisoned) {
  debug::RecordOptions options;
  options.limit_bytes = limit_bytes;
  options.spill_folder = spill_folder;
  options.launch = launch;
  options.kernel = kernel;
  options.is_poisoned = is_poisoned;
  debug::begin_recording(options);
}

std::vector<std::unique_ptr<RecordedLaunch>> end_recording() {
  std::vector<std::unique_ptr<RecordedLaunch>> launches;
  for (auto& recording : debug::end_recording())
    launches.push_back(std::make_unique<RecordedLaunch>(std::move(recording)));
  return launches;
}

}  // namespace

void bind_debug(py::module_& module) {
  py::class_<RecordedLaunch>(module, "RecordedLaunch", "One recorded launch; `step` means before that instruction.")
      .def("about", &RecordedLaunch::about, "Return what is known of the launch as a whole.")
      .def("columns", &RecordedLaunch::columns, "Return one array a field, one element an instruction.")
      .def("hulls", &RecordedLaunch::hulls, "Return (space numbers, begins, ends) of what each instruction writes.")
      .def("events", &RecordedLaunch::events, "Return the calls of queues, buffers and events, in order.")
      .def("instruction", &RecordedLaunch::instruction, py::arg("step"), "Return an instruction with its operands.")
      .def("read", &RecordedLaunch::read, py::arg("step"), py::arg("core"), py::arg("space"), py::arg("address"),
           py::arg("bytes"), "Return bytes of a memory; None where they are not known.")
      .def("find_nan", &RecordedLaunch::find_nan, py::arg("start"), py::arg("stop"), py::arg("core"), py::arg("space"),
           py::arg("begin"), py::arg("end"), py::arg("also_infinite"),
           "Return the first instruction that writes a NaN there; the number of instructions where none does.")
      .def("flags", &RecordedLaunch::flags, py::arg("step"), py::arg("core"),
           "Return (first pipe, second pipe, id, count) of signals that wait to be taken.")
      .def("slice", &RecordedLaunch::slice, py::arg("step"), py::arg("core"), py::arg("space"), py::arg("address"),
           py::arg("bytes"), py::arg("most_nodes"), "Return the instructions that led to bytes, latest first.")
      .def("count_differing_checkpoints", &RecordedLaunch::count_differing_checkpoints,
           "Return how many checkpoints playing back does not reach.")
      .def("save", &RecordedLaunch::save, py::arg("path"), "Write it to a file.");
  module.def("begin_recording", &begin_recording, py::kw_only(), py::arg("limit_bytes"), py::arg("spill_folder"),
             py::arg("launch"), py::arg("kernel"), py::arg("is_poisoned"), "Record later launches of this process.");
  module.def("end_recording", &end_recording, "Stop that and return the recorded launches.");
  module.def(
      "load_recording",
      [](const std::string& path) { return std::make_unique<RecordedLaunch>(debug::load_recording(path)); },
      py::arg("path"), "Return the launch that a file holds.");
  module.def(
      "memory_names",
      [] {
        std::vector<std::string> names;
        for (uint8_t space = 0; space < static_cast<uint8_t>(Space::kCount); ++space)
          names.push_back(debug::memory_name(static_cast<Space>(space)));
        return names;
      },
      "Return the names of the memories, by number.");
  module.def(
      "op_names",
      [] {
        std::vector<std::string> names;
        for (uint16_t op = 0; op < static_cast<uint16_t>(Op::kCount); ++op)
          names.push_back(row_of(static_cast<Op>(op)).name);
        return names;
      },
      "Return the names of the instructions, by number.");
}

}  // namespace opkit
