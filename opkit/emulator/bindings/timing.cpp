// Timelines of profiled launches, for opkit.profiling.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <deque>

#include "bindings.h"
#include "core/chip.h"
#include "core/names.h"
#include "isa/table.h"
#include "observe/timing.h"
#include "observe/timing_kept.h"
#include "opkit/matrix.h"

namespace py = pybind11;

namespace opkit {
namespace {

using Numbers = std::vector<std::pair<std::string, double>>;

template <typename T>
void read(const py::dict& fields, const char* name, T& into) {
  if (fields.contains(name)) into = fields[name].cast<T>();
}

Operand operand_from(const py::dict& fields) {
  Operand operand;
  read(fields, "address", operand.address);
  read(fields, "block_stride", operand.block_stride);
  read(fields, "repeat_stride", operand.repeat_stride);
  read(fields, "bypasses_l2", operand.bypasses_l2);
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
  for (uint32_t i = 0; i < kPipeCount; ++i) {
    if (name == pipe_name(static_cast<Pipe>(i))) return static_cast<Pipe>(i);
  }
  throw py::value_error("\"" + name + "\" is not a pipe");
}

/// What the instructions of a stream point to.
struct Payloads {
  std::deque<FractalLoad> loads;
  std::deque<ImageLoad> images;
  std::deque<MatrixProduct> products;
  std::deque<FixpipeCopy> fixpipes;
};

void read_matrix(const py::dict& fields, Instr& instr, Payloads& payloads) {
  if (fields.contains("load")) {
    const auto from = fields["load"].cast<py::dict>();
    FractalLoad& load = payloads.loads.emplace_back();
    read(from, "repeat", load.repeat);
    read(from, "fractals", load.fractals);
    instr.load = &load;
  }
  if (fields.contains("image")) {
    const auto from = fields["image"].cast<py::dict>();
    ImageLoad& image = payloads.images.emplace_back();
    read(from, "repeat", image.repeat);
    read(from, "rows", image.rows);
    read(from, "columns", image.columns);
    instr.image = &image;
  }
  if (fields.contains("product")) {
    const auto from = fields["product"].cast<py::dict>();
    MatrixProduct& product = payloads.products.emplace_back();
    read(from, "m", product.m);
    read(from, "n", product.n);
    read(from, "k", product.k);
    read(from, "unit_flag", product.unit_flag);
    instr.product = &product;
  }
  if (fields.contains("fixpipe")) {
    const auto from = fields["fixpipe"].cast<py::dict>();
    FixpipeCopy& copy = payloads.fixpipes.emplace_back();
    read(from, "m", copy.m);
    read(from, "n", copy.n);
    read(from, "is_nd", copy.is_nd);
    read(from, "unit_flag", copy.unit_flag);
    read(from, "dst_stride", copy.dst_stride);
    instr.fixpipe = &copy;
  }
}

/// An instruction from a dict with the field names of opkit::Instr; `repeats` given means the mask-and-repeat form.
Instr instr_from(const py::dict& fields, Payloads& payloads) {
  Instr instr;
  instr.op = op_from(fields["op"].cast<std::string>());
  if (fields.contains("pipe")) instr.pipe = pipe_from(fields["pipe"].cast<std::string>());
  if (fields.contains("peer_pipe")) instr.peer_pipe = pipe_from(fields["peer_pipe"].cast<std::string>());
  read(fields, "event_id", instr.event_id);
  read(fields, "mode", instr.mode);
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
  read(fields, "plane_count", instr.copy.plane_count);
  read(fields, "last_plane_bytes", instr.copy.last_plane_bytes);
  read(fields, "line", instr.where.line);
  read_matrix(fields, instr, payloads);
  return instr;
}

/// A launch whose instructions no kernel issues and nothing executes, an iterable of dicts a core.
std::shared_ptr<KeptLaunch> launch_of(const py::list& cores, const std::string& kind) {
  auto launch = std::make_shared<KeptLaunch>();
  launch->kernel = "instructions";
  launch->block_dim = static_cast<uint32_t>(cores.size());
  Core nowhere;
  for (const py::handle instructions : cores) {
    auto core = std::make_unique<KeptCore>();
    core->block = static_cast<uint32_t>(launch->cores.size());
    core->kind = kind == "aic" ? SubCore::AIC : SubCore::AIV;
    for (const py::handle fields : instructions) {
      Payloads payloads;
      core->keep(nowhere, instr_from(fields.cast<py::dict>(), payloads));
    }
    launch->cores.push_back(std::move(core));
  }
  return launch;
}

}  // namespace

void bind_timing(py::module_& module) {
  module.def(
      "timing_options",
      [](uint64_t event_limit, double clock_mhz, bool lift_limits, bool keeps_instructions) {
        set_timing_options({event_limit, clock_mhz, lift_limits, keeps_instructions});
      },
      py::arg("event_limit"), py::arg("clock_mhz") = 0.0, py::arg("lift_limits") = false,
      py::arg("keeps_instructions") = false,
      "Set how many timeline events a profiled launch keeps, the clock (0 is the chip's own), and whether the launch "
      "is "
      "timed again without each of its limits.");
  py::class_<LaunchTiming>(module, "TimedLaunch", "A launch that was timed.")
      .def("json", &timing_json, "Return it as JSON text; see opkit.profiling.Timeline.");
  module.def("take_timings", &take_timings,
             "Return what was timed since the last call, a TimedLaunch each, oldest first.");
  module.def("count_timings", &count_timings, "Return how many launches the next take_timings returns.");
  py::class_<KeptLaunch, std::shared_ptr<KeptLaunch>>(module, "KeptLaunch", "A launch's instructions, to time again.")
      .def(
          "time",
          [](const KeptLaunch& launch, const std::string& chip_name, uint64_t event_limit, double clock_mhz,
             bool lift_limits, const Numbers& numbers) {
            const Chip* chip = find_chip(chip_name);
            if (chip == nullptr) throw py::value_error("\"" + chip_name + "\" is not a chip that this build knows");
            return timing_json(launch.time(*chip, {event_limit, clock_mhz, lift_limits, false, numbers}));
          },
          py::arg("chip"), py::arg("event_limit") = 100000, py::arg("clock_mhz") = 0.0, py::arg("lift_limits") = false,
          py::arg("numbers") = Numbers(),
          "Return the JSON text of the timed launch; `numbers` stand in for the chip's own.")
      .def(
          "pack", [](const KeptLaunch& launch) { return py::bytes(launch.pack()); },
          "Return the launch as bytes, for `unpack` in another process.")
      .def_static(
          "unpack", [](const py::bytes& bytes) { return KeptLaunch::unpack(std::string_view(bytes)); },
          py::arg("bytes"),
          "Return the launch that was packed by a build with the same table of instructions; else ValueError.")
      .def_static("of", &launch_of, py::arg("cores"), py::arg("kind") = "aiv",
                  "Return a launch of instructions that nothing executes, an iterable of dicts a core.");
  module.def(
      "take_kept_launches",
      [] {
        py::list result;
        for (const auto& launch : take_kept_launches()) result.append(std::const_pointer_cast<KeptLaunch>(launch));
        return result;
      },
      "Return the launches kept since the last call, where timing_options asks for it; oldest first.");
}

}  // namespace opkit
