/// Running a kernel on the emulated device.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/core.h"
#include "opkit/kernel_entry.h"

namespace opkit {

class WrittenBits;

/// One allocation of global memory that a kernel may touch.
struct GmRange {
  uint64_t begin;
  uint64_t end;
  bool is_written = true;          ///< whether it holds data when the launch begins; for the check of what is read
  std::string name;                ///< what messages call it; may be empty
  WrittenBits* written = nullptr;  ///< what was written by earlier launches and transfers, where that is followed
  uint64_t padding_bytes = 0;      ///< at its end: they only round it up to a whole block
  uint64_t readable_bytes = 0;     ///< behind its end, where the chip's bounds count: the rest of its page
  bool is_output = false;          ///< what its bytes become is the launch's result
};

/// What a launch runs on. Configuration arrives as this struct; nothing reads the environment.
struct DeviceConfig {
  const Chip* chip = nullptr;  ///< Ascend910B2 when null
  uint32_t threads = 0;        ///< host threads; 0: as many as the host has cores
  bool poison = false;         ///< fill local memories with NaN patterns before each block
  bool profile = false;        ///< attach the timing observer
  bool timing_only = false;    ///< with it: what steers kernels runs, tensors are not computed
  uint64_t seed = 0;           ///< cores start in an order, memories with a byte drawn from it; 0: in turn, as they are
  /// Tensors end where the chip's memories do: local ones with their memory, those of an operator's call with a block
  /// of PyTorch's allocator; what programs allocate is read to the end of a page.
  bool chip_bounds = false;
  /// Instructions whose pages state an accuracy are as far off as that, which way is drawn from this; 0: rounded once.
  uint64_t inaccuracy_seed = 0;

  /// Whether a kernel may change outputs through raw pointers, past all instructions: the chip's compiler takes that,
  /// and nothing here knows its cost.
  bool allows_raw_writes = true;

  /// What new memory is filled with; none: it is left as it is.
  std::optional<uint8_t> fill() const;
};

struct Launch {
  const char* kernel = "";
  void (*invoke)(void* const* arguments) = nullptr;
  void* const* arguments = nullptr;
  KernelMode mode = KernelMode::Vector;
  uint32_t block_dim = 1;
  uint64_t tiling_key = 0;
  bool chooses_branch = false;          ///< the key is a tiling function's: the kernel must have a branch for it
  bool ends_before_interrupt = false;   ///< the first interrupt lets it end; the second, seconds later, ends it
  uint8_t* system_workspace = nullptr;  ///< what GetSysWorkSpacePtr gives before the kernel sets another
  std::vector<GmRange> gm;              ///< sorted by begin
  std::vector<GmRange> freed;           ///< what the program gave back, sorted by begin
  std::vector<GmRange> host;            ///< the host's own memory where it is known, sorted by begin; for messages
};

/// What remains of a launch.
struct LaunchRecord {
  std::string kernel;
  uint32_t block_dim = 0;
  uint64_t instructions = 0;
  FaultReport fault;  ///< fault.fault == None when it ran to its end
};

/// The process's device. Thread-safe: launches are serialised.
class OPKIT_API Device {
 public:
  static Device& get();

  void configure(const DeviceConfig& config);
  DeviceConfig config() const;
  const Chip& chip() const;

  /// Runs all blocks; returns when the last has ended or one has faulted. Never throws for a kernel's fault.
  LaunchRecord run(const Launch& launch);

  /// Observers attached to every later launch, beside those that the configuration asks for.
  void attach(Observer* observer);
  void detach(Observer* observer);
  bool is_watched() const;
  /// Tells observers that a part of the last launch's global memory has been copied to where its caller has it.
  void tell_moved(const void* from, const void* to, uint64_t bytes);

 private:
  Device();
  ~Device();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace opkit
