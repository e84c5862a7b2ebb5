#include "isa/cube.h"

#include <algorithm>

#include "core/names.h"
#include "isa/table.h"
#include "memory/bounds.h"

namespace opkit {

void check_cube(const Core& core, const Instr& instr, DType type) {
  const OpRow& row = row_of(instr.op);
  const bool is_coupled = core.chip->traits().is_coupled;
  OPKIT_CHECK(is_coupled || core.kind == SubCore::AIC, IllegalOperand, &instr,
              "guard it with ASCEND_IS_AIC, or launch the kernel on cube cores (__cube__, __mix__)",
              "%s runs on the cube core, and this is a vector core", row.name);
  const uint32_t types = types_of(core.chip->arch, instr.op);
  OPKIT_CHECK(types != 0, IllegalOperand, &instr, "`opkit isa` lists what each chip has", "%s does not exist on %s",
              row.name, core.chip->name.c_str());
  OPKIT_CHECK((types >> static_cast<uint32_t>(type) & 1) != 0, IllegalOperand, &instr,
              "`opkit isa` lists the types of each instruction", "%s does not take %s on %s", row.name,
              dtype_code(type), core.chip->name.c_str());
}

void for_each_move(const Instr& instr, MoveCallback callback, void* context) {
  if (instr.image != nullptr) return load_image_moves(instr, callback, context);
  load_fractals_moves(instr, callback, context);
}

void follow_unit_flags(Core& core, const Instr& instr, uint64_t address, uint64_t bytes, uint8_t unit_flag) {
  constexpr uint64_t kUnitBytes = 512;
  constexpr uint8_t kTurnsOver = 3;
  std::vector<uint8_t>& flags = core.unit_flags;
  flags.resize(core.space_bytes[static_cast<size_t>(Space::L0C)] / kUnitBytes);
  const bool is_mmad = instr.product != nullptr;
  for (uint64_t unit = address / kUnitBytes; unit < (address + bytes + kUnitBytes - 1) / kUnitBytes; ++unit) {
    const bool is_full = flags[unit] != 0;
    OPKIT_CHECK(is_full != is_mmad, Deadlock, &instr,
                is_mmad ? "carry the last result out with a Fixpipe whose unitFlag is 3, or call SetFixPipeConfig"
                        : "give unitFlag 3 to the last Mmad before it",
                "%s with unitFlag %u waits for bytes %llu and on of L0C, which %s", row_of(instr.op).name, unit_flag,
                static_cast<unsigned long long>(unit * kUnitBytes),
                is_mmad ? "hold a result that no Fixpipe has carried out" : "no Mmad with unitFlag 3 has filled");
    if (unit_flag == kTurnsOver) flags[unit] = is_mmad ? 1 : 0;
  }
  if (is_mmad || unit_flag != kTurnsOver) return;
  // A Fixpipe of a few rows empties the fractal that they lie in.
  constexpr uint64_t kFractalBytes = uint64_t{kCubeSide} * kCubeSide * sizeof(float);
  const uint64_t end = address + (bytes + kFractalBytes - 1) / kFractalBytes * kFractalBytes;
  for (uint64_t unit = address / kUnitBytes; unit < std::min<uint64_t>(end / kUnitBytes, flags.size()); ++unit) {
    flags[unit] = 0;
  }
}

void check_place(const Instr& instr, const Operand& operand, Space space, uint32_t alignment, const char* role) {
  OPKIT_CHECK(operand.space == space, IllegalOperand, &instr, "check the tensor's TPosition",
              "%s: %s lies in %s, not in %s", row_of(instr.op).name, role, space_name(operand.space),
              space_name(space));
  check_alignment(instr, operand, alignment, role);
}

}  // namespace opkit
