#include "observe/timing_kept.h"

#include "observe/timing_record.h"

namespace opkit {

void KeptCore::keep(const Core& core, const Instr& instr) {
  KeptInstr kept{instr, {core.mask[0], core.mask[1]}, core.mask_mode};
  Instr& own = kept.instr;
  copy(loads_, own.load);
  copy(images_, own.image);
  copy(fills_, own.fill);
  copy(products_, own.product);
  copy(fixpipes_, own.fixpipe);
  own.list = nullptr;
  own.list_count = 0;
  own.dst.address = own.dst.space == Space::GM ? launch_relative(core, own.dst.address) : own.dst.address;
  for (uint32_t i = 0; i < own.source_count; ++i) {
    if (own.src[i].space == Space::GM) own.src[i].address = launch_relative(core, own.src[i].address);
  }
  instructions.push_back(kept);
}

LaunchTiming KeptLaunch::time(const Chip& chip, const TimingOptions& options) const {
  TimingObserver observer(options);
  LaunchInfo launch;
  launch.kernel = kernel.c_str();
  launch.chip = &chip;
  launch.block_dim = block_dim;
  launch.core_count = static_cast<uint32_t>(cores.size());
  observer.launch_begin(launch);
  for (uint32_t index = 0; index < cores.size(); ++index) {
    if (cores[index] == nullptr) continue;
    const KeptCore& kept = *cores[index];
    Core core;
    core.chip = &chip;
    core.kind = kept.kind;
    core.block = kept.block;
    core.sub_block = kept.sub_block;
    core.index = index;
    core.block_count = block_dim;
    for (const KeptInstr& instruction : kept.instructions) {
      core.mask[0] = instruction.mask[0];
      core.mask[1] = instruction.mask[1];
      core.mask_mode = instruction.mask_mode;
      observer.before(core, instruction.instr);
    }
    observer.block_end(core);
  }
  observer.launch_end();
  return observer.take().front();
}

}  // namespace opkit
