/// What one core issued, in program order, compact enough for millions of instructions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "observe/timing.h"
#include "observe/timing_costs.h"

namespace opkit {

/// Of 16 x 16 sums in L0C.
constexpr uint32_t kSumBytes = 1024;

/// Places along the way of data through a core: a pipe that waits for one behind it waits for a buffer to become free.
constexpr uint32_t place_of(Pipe pipe) {
  switch (pipe) {
    case Pipe::MTE2: return 0;
    case Pipe::MTE1: return 1;
    case Pipe::M: return 2;
    case Pipe::FIX: return 3;
    case Pipe::V: return 4;
    case Pipe::MTE3: return 5;
    default: return 6;
  }
}

enum class RecordKind : uint8_t {
  Vector,  ///< one vector instruction, or a run of them with the scalar work between
  Scalar,  ///< a run of scalar accesses
  Copy,    ///< a copy through GM; the next of `copies`
  Local,   ///< a copy or a product inside the core
  SetFlag,
  WaitFlag,
  Barrier,
  Cross,  ///< synchronisation between cores; the next of `crosses`
};

/// A step of the scoreboard. For Vector it is a max-plus map, so that runs can be merged without losing exactness:
///   scalar' = scalar + scalar_cycles
///   end'    = max(end + busy_cycles, free + busy_cycles - first_stall, scalar + path_cycles)
/// where `end` is when the last vector instruction was through and `free` what a flag or barrier held the pipe until.
struct Record {
  RecordKind kind;
  uint8_t pipe;
  uint8_t peer;
  uint8_t event;  ///< of M and FIX: their unit flag
  uint32_t line;  ///< index into CoreRecord::lines
  double scalar_cycles;
  double busy_cycles;
  double path_cycles;
  double first_stall;         ///< of busy_cycles, what the first instruction waits for an earlier result
  float conflict_cycles;      ///< of busy_cycles, what bank conflicts added
  float stall_cycles;         ///< of busy_cycles, all that was waited for earlier results
  float element_cycles;       ///< of scalar_cycles, what GetValue and SetValue took
  float latency;              ///< Local: from the pipe's next start to the result
  float library_cycles = 0;   ///< of scalar_cycles, what a tiling that the compiler knows would save
  uint8_t l0c_first = 1;      ///< of M and FIX: the first fractal of L0C that they take
  uint8_t l0c_last = 0;       ///< and the last one; before the first: none
  uint32_t instructions = 1;  ///< of Vector, in the run
  bool has_other = false;     ///< WaitFlag: another buffer was handed on since this one's signal
};

struct CopyRecord {
  uint64_t address;  ///< launch-relative GM address of the first burst
  uint64_t stride;
  uint32_t burst_count;
  uint32_t burst_bytes;
  bool bypasses_l2;
  bool reorders;      ///< ND2NZ, NZ2ND
  float core_cycles;  ///< at the least, whatever memory does; of FIX
};

/// A call that signals other cores or waits for them.
struct CrossRecord {
  Op op;
  Pipe pipe;
  uint8_t mode;
  uint8_t flag;
  uint32_t count;    ///< of cores; 0: all
  uint64_t address;  ///< launch-relative, of the workspace that says who belongs together
  uint64_t numbers[2];
};

/// Whether every burst begins at an address that global memory likes.
bool is_aligned(const TimingCosts& costs, const CopyRecord& copy);

/// The same number on every run: host addresses differ from run to run, places in an allocation do not.
uint64_t launch_relative(const Core& core, uint64_t address);

struct LineTotals {
  const char* file = "";
  uint32_t line = 0;
  Op op = Op::kCount;
  Pipe pipe = Pipe::S;
  uint64_t count = 0;
  double cycles = 0;
  Space from = Space::kCount;
  Space to = Space::kCount;
  double conflict_cycles = 0;
  uint64_t bytes = 0;
  uint64_t bursts = 0;
  uint64_t unaligned = 0;
  uint64_t operations = 0;
  uint64_t first_target = ~0ull;  ///< where it wrote first after a wait
  bool rotates = false;           ///< after other waits it wrote elsewhere: buffers take turns
};

class CoreRecord {
 public:
  /// `storage`: what an earlier launch has left, to be filled anew; fresh pages cost more than what they hold.
  CoreRecord(const TimingCosts& costs, const Core& core, uint64_t detail_limit, std::vector<Record> storage = {});

  void add(const Core& core, const Instr& instr);

  uint32_t index;  ///< among all sub-cores of the launch
  uint32_t block;
  uint32_t sub_block;
  SubCore kind;
  std::vector<Record> records;
  std::vector<CopyRecord> copies;
  std::vector<CrossRecord> crosses;
  std::vector<LineTotals> lines;
  uint64_t dropped = 0;  ///< instructions merged into runs: not on the timeline
  uint64_t ub_bytes_used = 0;
  uint64_t l0c_bytes_used = 0;    ///< by one product
  bool has_library_work = false;  ///< of a Matmul object

 private:
  void add_vector(const Core& core, const Instr& instr, uint32_t line);
  void add_scalar(const Instr& instr, uint32_t line);
  void add_library(const Instr& instr, uint32_t line);
  void add_copy(const Core& core, const Instr& instr, uint32_t line);
  void add_cube(const Core& core, const Instr& instr, uint32_t line);
  void add_global(const Core& core, const Instr& instr, uint32_t line, bool is_read, CopyRecord shape);
  void add_local(const Instr& instr, uint32_t line, uint64_t copy_bytes);
  LineTotals& count(const Instr& instr, uint32_t line);
  void add_sync(const Instr& instr, RecordKind kind);
  /// Notes in the last record which part of L0C a product fills, or a copy empties.
  void note_sums(const Instr& instr);
  /// Notes what tells whether a pipe that waits for a buffer has another one meanwhile.
  void note_buffer(const Instr& instr, RecordKind kind);
  void note_target(const Instr& instr);
  void add_cross(const Core& core, const Instr& instr);
  void use_ub(const Operand& operand, uint64_t bytes) {
    if (operand.space == Space::UB) ub_bytes_used = std::max(ub_bytes_used, operand.address + bytes);
  }
  uint32_t line_of(const Instr& instr);
  double dependence_stall(const Instr& instr, uint64_t repeats);

  /// What a recent vector instruction wrote.
  struct Written {
    Reach reach;
    double issued_until = -1e300;  ///< on the vector pipe's own clock, gaps left out
  };
  static constexpr uint32_t kRecentWrites = 4;
  static constexpr uint32_t kLineCacheSize = 256;
  struct CachedLine {
    const char* file = nullptr;
    uint32_t line = 0;
    Op op = Op::kCount;
    uint32_t index = 0;
  };

  const TimingCosts& costs_;
  uint64_t detail_left_;
  double vector_clock_ = 0;
  Written recent_[kRecentWrites];
  uint32_t next_recent_ = 0;
  uint32_t consumed_[kPipeCount] = {};                               ///< waits for pipes before it in the way of data
  uint32_t signalled_at_[kPipeCount][kPipeCount][kEventCount] = {};  ///< consumed_ of the signalling pipe then
  static constexpr size_t kNone = ~size_t{0};
  size_t last_wait_[kPipeCount];  ///< the pipe's last record of a wait, until its next instruction; else kNone
  std::vector<CachedLine> line_cache_;
  std::unordered_multimap<uint64_t, uint32_t> line_index_;  ///< by hash
};

}  // namespace opkit
