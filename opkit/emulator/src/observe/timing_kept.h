/// A launch's instructions, kept so that it can be timed again with other numbers without running again.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "core/core.h"
#include "observe/timing.h"
#include "opkit/instr.h"

namespace opkit {

/// An instruction with what the core's registers said when it was issued.
struct KeptInstr {
  Instr instr;
  uint64_t mask[2] = {0, 0};
  MaskMode mask_mode = MaskMode::Normal;
};

struct KeptCore {
  uint32_t block = 0;
  uint32_t sub_block = 0;
  SubCore kind = SubCore::AIV;
  std::vector<KeptInstr> instructions;

  /// Keeps an instruction with all that it points to; addresses in global memory become launch-relative.
  void keep(const Core& core, const Instr& instr);

 private:
  template <typename T>
  static void copy(std::deque<T>& kept, const T*& payload) {
    if (payload == nullptr) return;
    kept.push_back(*payload);
    payload = &kept.back();
  }
  std::deque<FractalLoad> loads_;
  std::deque<ImageLoad> images_;
  std::deque<MatrixFill> fills_;
  std::deque<MatrixProduct> products_;
  std::deque<FixpipeCopy> fixpipes_;
};

struct KeptLaunch {
  LaunchInfo info;
  std::vector<std::unique_ptr<KeptCore>> cores;

  /// Times it on `chip` with `options`.
  OPKIT_API LaunchTiming time(const Chip& chip, const TimingOptions& options) const;
};

/// The launches kept since the last call, where TimingOptions::keeps_instructions asks for it; oldest first.
OPKIT_API std::vector<std::shared_ptr<const KeptLaunch>> take_kept_launches();

}  // namespace opkit
