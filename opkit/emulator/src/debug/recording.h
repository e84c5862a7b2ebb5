/// What `opkit debug` keeps of one launch: every instruction, so that the state before any of them can be made again.
///
/// Local memories are made again by executing the instructions from the nearest checkpoint on; global memory by taking
/// back what was written since, from the end of the launch. A recording is one host thread's: its instructions have one
/// order. What a kernel writes through raw pointers is in no instruction: it shows from the next checkpoint on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/core.h"
#include "debug/arena.h"
#include "observe/observer.h"

namespace opkit::debug {

struct RecordOptions {
  uint64_t limit_bytes = uint64_t{8} << 30;  ///< of one recording; it ends there, the launch goes on
  std::string spill_folder;                  ///< where recordings beyond 1 GiB lie; empty: in RAM
  uint32_t launch = 0;                       ///< which launch to keep, from 1; 0: every one
  std::string kernel;                        ///< keep launches of this kernel only; empty: of any
  bool is_poisoned = true;                   ///< local memories begin as 0xff, so that their content need not be kept
};

/// What instructions read besides operands and memory, as it was when one was issued.
struct Registers {
  MaskMode mask_mode;
  uint64_t mask[2];
  uint64_t compare_mask[2];
  uint64_t deq_scale_bits;
  uint64_t pad_value_bits;
  AtomicOp atomic_op;
  DType atomic_dtype;
  DeqScale deq_scale;
  bool saturates_floats;
  bool saturates_casts;
  bool has_unit_flags;
  MatrixRegisters matrix;
};

/// One instruction. Its number in the recording is its place in the order of the launch.
struct StepRecord {
  uint64_t instr = 0;   ///< in the arena: the instruction
  uint64_t memory = 0;  ///< in the arena: bytes (see MemoryRecord); 0: none
  uint64_t number = 0;  ///< on its core, from 1
  uint32_t core = 0;
  uint32_t site = 0;
  uint32_t registers = 0;  ///< index in Recording::registers
  Op op = Op::kCount;
  Pipe pipe = Pipe::S;
  bool is_complete = false;  ///< it has executed: not so the one that faulted
};

/// Bytes of an instruction, in the arena: this, its pieces, then their data one behind the other.
struct MemoryRecord {
  enum class Kind : uint32_t {
    Swap,  ///< of GM: what stood there, and once it was taken back what it wrote
    New,   ///< of a local memory: what it wrote; it is not executed again
  };
  Kind kind = Kind::Swap;
  uint32_t piece_count = 0;
};
struct MemoryPiece {
  uint64_t address = 0;
  uint32_t bytes = 0;
  Space space = Space::GM;
};

/// A call of a queue, buffer or event, before instruction `step`.
struct EventRecord {
  uint64_t step = 0;
  uint32_t core = 0;
  uint32_t site = 0;
  uint64_t queue = 0;  ///< tells queues apart, no more
  uint32_t address = 0;
  uint32_t bytes = 0;
  ResourceEvent::Action action = ResourceEvent::Action::AllocateTensor;
  Space space = Space::UB;
  Pipe first = Pipe::S;
  Pipe second = Pipe::S;
  int8_t event_id = -1;
  bool is_queues = false;
};

struct SiteRecord {
  std::string file;
  uint32_t line = 0;
};

/// The memories of a core when it had executed `core_step` instructions.
struct Checkpoint {
  uint32_t core = 0;
  uint64_t core_step = 0;
  uint64_t data[8] = {};   ///< in the arena, by Space; 0: none
  uint32_t bytes[8] = {};  ///< the rest of each memory is as it began
  uint64_t sparse = 0;     ///< Core::sparse_indices
  uint32_t sparse_bytes = 0;
  uint64_t unit_flags = 0;  ///< Core::unit_flags
  uint32_t unit_flag_bytes = 0;
};

struct CoreRecord {
  SubCore kind = SubCore::AIV;
  uint32_t block = 0;
  uint32_t sub_block = 0;
  bool has_ended = false;
};

struct RangeRecord {
  std::string name;
  uint64_t begin = 0;
  uint64_t end = 0;
  bool is_written = true;
  std::vector<MemoryPiece> pieces;  ///< at the end of the launch, what of it was touched
  std::vector<uint64_t> data;       ///< of each piece, in the arena
};

struct Recording {
  explicit Recording(const RecordOptions& options) : arena(options.limit_bytes, options.spill_folder) {}

  std::string kernel;
  const Chip* chip = nullptr;
  uint32_t block_dim = 0;
  uint32_t launch = 0;  ///< its number in the process, from 1
  bool is_poisoned = true;
  bool is_cut = false;  ///< the limit was reached: it ends early
  FaultReport fault;
  std::vector<CoreRecord> cores;
  std::vector<RangeRecord> ranges;  ///< sorted by begin
  std::vector<StepRecord> steps;
  std::vector<EventRecord> events;
  std::vector<SiteRecord> sites;
  std::vector<Registers> registers;
  std::vector<Checkpoint> checkpoints;
  Arena arena;
};

/// An instruction as it was issued. What it points at lies in the arena; its operands have the addresses of the launch.
OPKIT_API Instr instruction_of(const Recording& recording, const StepRecord& step);

/// Keeps later launches of this process. Ends what was begun before.
OPKIT_API void begin_recording(const RecordOptions& options);
/// Ends it and returns the launches, oldest first.
OPKIT_API std::vector<std::shared_ptr<Recording>> end_recording();

/// Writes a recording to a file; false when it cannot.
OPKIT_API bool save_recording(const Recording& recording, const std::string& path);
/// Reads one. Throws std::runtime_error where the file is none of this version's.
OPKIT_API std::shared_ptr<Recording> load_recording(const std::string& path);

}  // namespace opkit::debug
