/// The state of a recorded launch before any of its instructions.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "core/launch_state.h"
#include "debug/recording.h"
#include "isa/footprint.h"

namespace opkit::debug {

/// Memory that an instruction reads or writes, with the addresses of the launch.
struct Footprint {
  uint32_t operand = 0;  ///< 0: dst, 1 and up: sources
  Space space = Space::UB;
  DType dtype = DType::U8;
  uint64_t begin = 0;
  uint64_t bytes = 0;
  bool is_write = false;
};

/// What an instruction writes lies in here.
struct Hull {
  Space space = Space::UB;
  uint64_t begin = 0;
  uint64_t end = 0;  ///< 0: it writes nothing
};

/// What a memory is called: GM, UB, L1 and so on.
OPKIT_API const char* memory_name(Space space);

class Playback {
 public:
  OPKIT_API explicit Playback(std::shared_ptr<Recording> recording);
  OPKIT_API ~Playback();
  Playback(const Playback&) = delete;
  Playback& operator=(const Playback&) = delete;

  const Recording& recording() const { return *recording_; }
  uint64_t step_count() const { return recording_->steps.size(); }

  /// Bytes as they are before instruction `step` (after the last one: step_count()); `core` for local memories. Empty
  /// where they are not part of the recording.
  OPKIT_API std::vector<uint8_t> read(uint64_t step, uint32_t core, Space space, uint64_t address, uint64_t bytes);

  /// The memory that an instruction uses, ranges that touch each other joined.
  OPKIT_API std::vector<Footprint> footprint(uint64_t step);
  OPKIT_API const std::vector<Hull>& hulls();

  /// The first instruction in [from, to) that leaves a NaN, or with `also_infinite` an infinity, in what it writes:
  /// of `core` (-1: any), in [begin, end) of `space`. step_count() where none does.
  OPKIT_API uint64_t find_nan(uint64_t from, uint64_t to, int64_t core, Space space, uint64_t begin, uint64_t end,
                              bool also_infinite);

  /// Signals of a core's flags that wait to be taken: (first pipe, second pipe, id, how many).
  struct Flag {
    Pipe first;
    Pipe second;
    uint8_t id;
    uint32_t count;
  };
  OPKIT_API std::vector<Flag> flags(uint64_t step, uint32_t core) const;

  /// How many checkpoints playing back does not reach, byte by byte: 0, unless the kernel writes by raw pointers.
  OPKIT_API uint64_t count_differing_checkpoints();

  // For the slice.
  OPKIT_API const std::vector<uint32_t>& steps_of(uint32_t core) const { return core_steps_[core]; }
  /// A core with the registers that an instruction found; its memories hold nothing.
  Core& core_before(uint64_t step);
  Instr instruction(uint64_t step, std::vector<Operand>& list) const;
  /// The same with the launch's own addresses.
  Instr recorded(uint64_t step) const { return instruction_of(*recording_, recording_->steps[step]); }

 private:
  /// The memories of one core.
  struct Shell {
    RunningCore running;
    uint8_t* memory = nullptr;
    size_t memory_bytes = 0;
    uint64_t position = 0;  ///< instructions of this core that it has executed
  };
  /// Global memory of one range.
  struct Image {
    uint8_t* memory = nullptr;
    size_t memory_bytes = 0;
    uint64_t base = 0;  ///< address of the range's first byte
  };

  Shell& shell_of(uint32_t core);
  std::unique_ptr<Shell> make_shell();
  void become(Core& core, uint32_t index) const;
  void make_images();
  void move_global(uint64_t step);
  void move_core(Shell& shell, uint32_t core, uint64_t position);
  void restore(Shell& shell, uint32_t core, uint64_t position);
  void load(Shell& shell, const Checkpoint* checkpoint);
  void execute(Shell& shell, uint64_t step);
  void swap(const StepRecord& step);
  uint64_t translated(uint64_t address) const;
  uint64_t position_of(uint32_t core, uint64_t step) const;
  const Checkpoint* checkpoint_at(uint32_t core, uint64_t position) const;
  void set_registers(Core& core, const Registers& registers) const;
  bool is_sound(const Core& core, const Instr& instr) const;

  std::shared_ptr<Recording> recording_;
  Launch launch_;
  LaunchState state_;
  std::vector<std::unique_ptr<Shell>> shells_;
  std::unique_ptr<Shell> asking_;  ///< whose registers footprints are asked with
  std::vector<Image> images_;
  bool has_images_ = false;
  std::vector<std::vector<uint32_t>> core_steps_;
  std::vector<std::vector<const Checkpoint*>> checkpoints_;  // by core, in order
  uint64_t global_position_ = 0;
  std::vector<Hull> hulls_;
};

/// One instruction of a backward slice.
struct SliceNode {
  uint64_t step = 0;
  std::vector<Footprint> wanted;   ///< what it wrote of what is asked for
  std::vector<Footprint> sources;  ///< what that was made of
  int64_t scalar_step = -1;        ///< the GetValue that its scalar may come from
};

struct Slice {
  std::vector<SliceNode> nodes;                        ///< latest first
  std::vector<std::pair<int64_t, Footprint>> origins;  ///< (core, bytes) that no instruction wrote; -1: global memory
  bool is_cut = false;                                 ///< there were too many
};

/// What led to bytes as they are before instruction `step`.
OPKIT_API Slice slice(Playback& playback, uint64_t step, uint32_t core, Space space, uint64_t address, uint64_t bytes,
                      uint64_t most_nodes);

}  // namespace opkit::debug
