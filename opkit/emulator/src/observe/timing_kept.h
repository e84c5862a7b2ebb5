/// A launch's instructions, kept so that it can be timed again with other numbers without running again.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
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
  OPKIT_API void keep(const Core& core, const Instr& instr);

  /// Keeps the payload that an instruction had before it was packed; where `payload` is null, it had none.
  template <typename Reader, typename T>
  void unpack(Reader& reader, const T*& payload) {
    if (payload == nullptr) return;
    const T read = reader.template value<T>();
    payload = &read;
    copy(kept_of(payload), payload);
  }

 private:
  std::deque<FractalLoad>& kept_of(const FractalLoad* /*kind*/) { return loads_; }
  std::deque<ImageLoad>& kept_of(const ImageLoad* /*kind*/) { return images_; }
  std::deque<MatrixFill>& kept_of(const MatrixFill* /*kind*/) { return fills_; }
  std::deque<MatrixProduct>& kept_of(const MatrixProduct* /*kind*/) { return products_; }
  std::deque<FixpipeCopy>& kept_of(const FixpipeCopy* /*kind*/) { return fixpipes_; }

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
  std::string kernel;
  uint32_t block_dim = 0;
  std::vector<std::unique_ptr<KeptCore>> cores;  ///< by index; null where a sub-core issued nothing
  std::deque<std::string> files;                 ///< that instructions name, where unpack() made them

  /// Times it on `chip` with `options`.
  OPKIT_API LaunchTiming time(const Chip& chip, const TimingOptions& options) const;

  /// The launch as bytes, for unpack() of a build with the same table of instructions.
  OPKIT_API std::string pack() const;
  /// Throws std::invalid_argument where the bytes are not of this build's pack().
  OPKIT_API static std::shared_ptr<KeptLaunch> unpack(std::string_view bytes);
};

/// The launches kept since the last call, where TimingOptions::keeps_instructions asks for it; oldest first.
OPKIT_API std::vector<std::shared_ptr<const KeptLaunch>> take_kept_launches();

}  // namespace opkit
