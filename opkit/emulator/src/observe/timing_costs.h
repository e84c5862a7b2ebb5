/// The timing model's constants, read once per launch from the chip, and the laws that need no state.
#pragma once

#include <cstdint>
#include <vector>

#include "core/core.h"
#include "observe/timing.h"

namespace opkit {

/// One DMA pipe's law: cycles = per instruction + per burst + bytes / rate; the latency is paid once per drain.
struct CopyCosts {
  double startup_cycles = 0;
  double instruction_cycles = 0;
  double burst_cycles = 0;
  double bytes_per_cycle = 0;       ///< of a write; what reads do is by SubCore
  double unaligned_rate = 1;        ///< rate when the GM address is not a multiple of alignment_bytes
  double partial_block_cycles = 0;  ///< more, of a burst that is not whole blocks of UB
};

/// The law of pipes inside a cube core: cycles = per instruction + bytes / rate, and the start-up once per drain.
struct LocalCosts {
  double startup_cycles = 0;
  double instruction_cycles = 0;
  double bytes_per_cycle = 0;
};

struct TimingCosts {
  double clock_mhz = 0;
  double vector_startup = 0;
  uint32_t bank_groups = 0;
  uint32_t bank_bytes = 0;
  CopyCosts mte2;
  CopyCosts mte3;
  CopyCosts fixpipe;                        ///< L0C to GM: bytes_per_cycle is the most for any type
  double fixpipe_elements_per_cycle = 0;    ///< L0C to GM
  double hbm_read_bytes_per_cycle[2] = {};  ///< of one core, by SubCore
  double l2_hit_bytes_per_cycle[2] = {};    ///< reads, by SubCore
  double posted_bytes = 0;                  ///< of a write, what goes out at its own rate however busy the others are
  double nd_to_nz_unaligned_bytes_per_cycle = 0;  ///< where a copy reorders rows off the alignment of global memory
  double same_address_cycles = 0;                 ///< of a line of L2, for each other core that reads it in step
  uint32_t same_address_others = 0;               ///< that wait for each other at the most, where L2 serves them
  double l2_hit_startup = 0;                      ///< latency of a read that L2 serves alone
  double local_copy_bytes_per_cycle = 0;
  double local_copy_startup = 0;
  LocalCosts load_l0a;
  LocalCosts load_l0b;
  double load_3d_startup = 0;
  LocalCosts bias_table;         ///< L1 to the bias table and the fixpipe buffer
  LocalCosts fixpipe_to_l1;      ///< 16-bit results
  double fixpipe_b8_rate = 0;    ///< 8-bit results to L1
  double cube_startup = 0;       ///< of one product behind another
  double cube_startup_idle = 0;  ///< of the first
  float cube_hf32_macs = 0;
  std::vector<float> cube_macs;  ///< a cycle, by DType; 0 where the chip does not multiply it
  uint32_t alignment_bytes = 0;
  double hbm_bytes_per_cycle = 0;
  double hbm_burst_bytes = 0;        ///< HBM time that each burst wastes, as bytes
  double hbm_joint_exponent = 0;     ///< of vector cores: joins a read's own time and its share of HBM's; 0: the longer
  double drift_share = 0;            ///< of the vector cores, those that do not keep in step with the others
  double drift_variation = 0;        ///< by which a read of theirs differs in what it takes of HBM, at the most
  double write_bytes_per_cycle = 0;  ///< all cores together, into L2
  uint64_t l2_bytes = 0;
  bool has_inputs_in_l2 = false;  ///< when the launch begins
  uint64_t l0c_bytes = 0;
  double launch_one_core_us = 0;
  double launch_all_cores_us = 0;
  double scalar_wake_cycles = 0;      ///< from a result of another pipe to the scalar pipe's next instruction
  double system_counter_mhz = 0;      ///< at which the counter runs that GetSystemCycle reads
  double entry_cycles = 0;            ///< of the scalar pipe, before a core's first instruction
  double cross_core_cycles = 0;       ///< from the last core's signal to the first waiting core that goes on
  double message_cycles = 0;          ///< from a vector core's request to a Matmul object's cube core, and back
  double read_write_conflict = 0;     ///< cycles of a repeat whose write meets the next one's reads in a bank
  uint32_t queue_instructions = 0;    ///< that a pipe's queue holds before the scalar pipe waits
  double queue_share_of_library = 1;  ///< of a place, what an instruction takes on cores that run Matmul objects
  std::vector<float> library_cycles;  ///< by opkit::LibraryWork
  uint32_t core_limit[2] = {0, 0};    ///< sub-cores that run at once, by SubCore
  std::vector<float> repeat_cycles;   ///< by Op, then DType
  std::vector<float> issue_cycles;    ///< by Op: what the scalar pipe spends

  double repeat_cycles_of(Op op, DType type) const {
    return repeat_cycles[static_cast<uint32_t>(op) * static_cast<uint32_t>(DType::kCount) +
                         static_cast<uint32_t>(type)];
  }
  /// `kind`: which sub-cores the blocks run on, the cube core where both.
  double launch_us(uint32_t block_dim, SubCore kind) const;
};

/// `options` gives a clock and numbers that stand in for the chip's own.
TimingCosts read_costs(const Chip& chip, const TimingOptions& options);

/// What a vector instruction costs its pipe, without start-up.
struct VectorWork {
  double cycles = 0;
  double conflict_cycles = 0;
  uint64_t repeats = 0;
  uint64_t elements = 0;
};
VectorWork vector_work(const TimingCosts& costs, const Core& core, const Instr& instr);

/// What an instruction costs a pipe of the cube core: how long it keeps the pipe, and when its result is there.
struct LocalWork {
  double cycles = 0;
  double startup_cycles = 0;
  uint64_t bytes = 0;
  uint64_t operations = 0;
};
LocalWork local_work(const TimingCosts& costs, const Instr& instr, uint64_t copy_bytes);

/// Bytes of UB that an operand's repeats reach, for dependences between instructions.
struct Reach {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t pitch = 0;  ///< from one repeat to the next where gaps lie between them; else 0
  uint64_t width = 0;  ///< of a repeat, with pitch

  /// Whether they have a byte in common. Repeats of one pitch may lie in each other's gaps.
  bool meets(const Reach& other) const {
    if (other.begin >= end || begin >= other.end) return false;
    if (pitch == 0 || pitch != other.pitch) return true;
    const uint64_t behind = (other.begin % pitch + pitch - begin % pitch) % pitch;
    return behind < width || behind + other.width > pitch;
  }
};
Reach reach_of(const Instr& instr, const Operand& operand, uint64_t repeats);

}  // namespace opkit
