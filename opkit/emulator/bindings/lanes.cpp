// Lane targets, and single instructions on an image of UB: how tests reach every row of the table without a kernel.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "bindings.h"
#include "core/launch.h"
#include "core/names.h"
#include "isa/lanes/lanes.h"
#include "isa/table.h"
#include "opkit/api/runtime_abi.h"

namespace py = pybind11;

namespace opkit {
namespace {

/// (byte address in UB, type code, block stride, repeat stride).
using PyOperand = std::tuple<uint64_t, std::string, uint32_t, uint32_t>;

Op find_op(const std::string& name) {
  for (uint32_t i = 0; i < static_cast<uint32_t>(Op::kCount); ++i) {
    if (name == row_of(static_cast<Op>(i)).name) return static_cast<Op>(i);
  }
  throw py::value_error("\"" + name + "\" is not an instruction");
}

DType find_type(const std::string& code) {
  for (uint32_t i = 0; i < static_cast<uint32_t>(DType::kCount); ++i) {
    if (code == dtype_code(static_cast<DType>(i))) return static_cast<DType>(i);
  }
  throw py::value_error("\"" + code + "\" is not a data type");
}

MaskForm find_form(const std::string& name) {
  if (name == "count") return MaskForm::Count;
  if (name == "prefix") return MaskForm::Prefix;
  if (name == "bits") return MaskForm::Bits;
  if (name == "register") return MaskForm::Register;
  throw py::value_error("mask_form is count, prefix, bits or register");
}

Operand make_operand(const PyOperand& from, uint64_t size) {
  Operand operand;
  operand.address = std::get<0>(from);
  operand.dtype = find_type(std::get<1>(from));
  operand.block_stride = std::get<2>(from);
  operand.repeat_stride = std::get<3>(from);
  operand.end = size;
  return operand;
}

struct Call {
  Instr instr;
  uint8_t* memory;
  uint64_t size;
  uint32_t times;
  bool is_counter;
  std::array<uint64_t, 2> vector_mask;
};

void run_call(void* const* arguments) {
  Call& call = **static_cast<Call* const*>(arguments[0]);
  uint8_t* ub = local_memory(Space::UB);
  std::memcpy(ub, call.memory, call.size);
  set_mask_mode(call.is_counter);
  set_vector_mask(call.vector_mask[1], call.vector_mask[0]);
  for (uint32_t i = 0; i < call.times; ++i) issue(call.instr);
  std::memcpy(call.memory, ub, call.size);
}

/// Runs one instruction on `memory`, an image of the first bytes of UB, in place.
void issue_one(const std::string& op, py::array_t<uint8_t> memory, const PyOperand& dst,
               const std::vector<PyOperand>& sources, const std::string& mask_form, uint32_t count, uint32_t repeat,
               std::array<uint64_t, 2> mask, std::array<uint64_t, 2> scalars, uint32_t mode, bool is_counter,
               std::array<uint64_t, 2> vector_mask, uint32_t times) {
  Call call;
  call.size = static_cast<uint64_t>(memory.nbytes());
  call.memory = memory.mutable_data();
  call.times = times;
  call.is_counter = is_counter;
  call.vector_mask = vector_mask;
  Instr& instr = call.instr;
  instr.op = find_op(op);
  instr.dst = make_operand(dst, call.size);
  if (sources.size() > 3) throw py::value_error("an instruction has at most 3 sources");
  for (size_t i = 0; i < sources.size(); ++i) instr.src[i] = make_operand(sources[i], call.size);
  instr.source_count = static_cast<uint8_t>(sources.size());
  instr.mask_form = find_form(mask_form);
  instr.count = count;
  instr.repeat = repeat;
  for (size_t i = 0; i < 2; ++i) {
    instr.mask[i] = mask[i];
    instr.scalar_bits[i] = scalars[i];
  }
  instr.mode = static_cast<uint8_t>(mode);

  Call* pointer = &call;
  void* const arguments[1] = {&pointer};
  Launch launch;
  launch.kernel = "one instruction";
  launch.invoke = &run_call;
  launch.arguments = arguments;
  if (call.size > Device::get().chip().space_bytes[static_cast<size_t>(Space::UB)]) {
    throw py::value_error("memory is larger than UB");
  }
  LaunchRecord record;
  {
    const py::gil_scoped_release release;
    record = Device::get().run(launch);
  }
  if (record.fault.fault != Fault::None) raise_kernel_fault(record.fault);
}

void choose_target(const std::string& name) {
  if (!lanes::set_lane_target(name.c_str())) throw py::value_error("this host has no lane target \"" + name + "\"");
}

std::vector<std::string> targets() {
  std::vector<std::string> names;
  for (const char* const* name = lanes::lane_targets(); *name != nullptr; ++name) names.emplace_back(*name);
  return names;
}

}  // namespace

void bind_lanes(py::module_& module) {
  module.def("lane_targets", &targets, "Return the SIMD targets that this host can run, best first.");
  module.def("lane_target", [] { return std::string(lanes::table().target); }, "Return the SIMD target in use.");
  module.def("set_lane_target", &choose_target, py::arg("name"), "Choose a SIMD target by name, or \"auto\".");
  module.def("issue", &issue_one, py::arg("op"), py::arg("memory").noconvert(), py::arg("dst"), py::arg("sources"),
             py::kw_only(), py::arg("mask_form") = "count", py::arg("count") = 0, py::arg("repeat") = 1,
             py::arg("mask") = std::array<uint64_t, 2>{0, 0}, py::arg("scalars") = std::array<uint64_t, 2>{0, 0},
             py::arg("mode") = 0, py::arg("is_counter") = false,
             py::arg("vector_mask") = std::array<uint64_t, 2>{~0ull, ~0ull}, py::arg("times") = 1,
             "Run one instruction, `times` over, on an image of UB in place. An operand is a tuple of byte address, "
             "type code, block stride and repeat stride.");
}

}  // namespace opkit
