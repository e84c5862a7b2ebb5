/// One core on the scoreboard: its pipes, flags and barriers, and the copies that it makes through shared memory.
#pragma once

#include <cstdint>
#include <vector>

#include "observe/timing_cross.h"
#include "observe/timing_memory.h"
#include "observe/timing_record.h"

namespace opkit {

/// Which limits a replay leaves out.
class Lifted {
 public:
  Lifted() = default;
  explicit Lifted(Limit limit) : limit_(limit) {}
  bool is(Limit limit) const { return limit_ == limit; }

 private:
  Limit limit_ = Limit::kCount;
};

/// What the cores of a launch share on the scoreboard.
struct SharedMemory {
  SharedMemory(const TimingCosts& costs, size_t core_count, Lifted lifted)
      : hbm(costs.hbm_bytes_per_cycle),
        evictions(costs.hbm_bytes_per_cycle),
        writes(costs.write_bytes_per_cycle),
        l2(lifted.is(Limit::L2Reuse) ? ~0ull : costs.l2_bytes),
        reads(core_count) {}

  FairShare hbm;
  SharedBandwidth evictions;  ///< the same link, for how fast writes can push others out
  FairShare writes;           ///< into L2
  L2Contents l2;
  SharedReads reads;
};

class CoreReplay {
 public:
  enum class Step : uint8_t { Copy, Blocked, Ended };

  CoreReplay(const TimingCosts& costs, const CoreRecord& record, size_t index, uint64_t event_limit, Lifted lifted,
             LaunchTiming& timing);

  void begin(double cycle);
  /// Runs until the next copy through GM, whose start it gives, or until it must wait for another core.
  Step advance(CrossReplay& cross, double& copy_start);
  /// Serves the copy that advance() stopped at. False: it is under way in one of the links, and end_transfer() ends it.
  bool copy(SharedMemory& memory);
  /// The copy under way has got its last byte through the link.
  void end_transfer(double cycle);
  /// Fills the core's totals and returns when it ended.
  double finish();

  const CoreRecord& record() const { return record_; }
  const std::vector<double>& copy_cycles() const { return copy_cycles_; }

 private:
  static constexpr uint32_t at(Pipe pipe) { return static_cast<uint32_t>(pipe); }
  double& scalar() { return free_[at(Pipe::S)]; }
  void spend_scalar(const Record& record);
  void note_scalar(double begin, double end);
  double scalar_cycles(const Record& record) const;
  void vector(const Record& record);
  void local(const Record& record);
  /// With a unit flag FIX takes out what the product before it has just computed, and M follows FIX.
  double unit_flag_start(const Record& record, double start) const;
  double unit_flag_end(const Record& record, double start, double end);
  /// Whether it waits until a vector core makes room for a result, and more room would let it pass.
  bool has_more_room(const CrossRecord& call, const CrossReplay& cross);
  /// The scalar pipe waits while a pipe's queue is full; leave_queue() says when an instruction began.
  void enter_queue(uint32_t pipe);
  void leave_queue(uint32_t pipe, double start);
  const CopyCosts& law_of(bool is_read) const;
  void set_flag(const Record& record);
  void wait_flag(const Record& record);
  void barrier(const Record& record);
  bool cross_core(const Record& record, CrossReplay& cross);
  double all_done() const;
  /// Holds a pipe until `cycle`.
  void hold(uint32_t pipe, double cycle, WaitReason reason, uint32_t cause);
  /// When the scalar pipe gets to a copy into the core.
  double issued_at() const;
  void end_copy(double end);
  /// What one step of a copy or a load of this core is of its length, with BaseBlocks lifted.
  double base_block_share() const;
  bool has_unit_flag(const Record& record) const { return record.event != 0 || lifted_.is(Limit::UnitFlags); }
  double excess_bytes(const CopyRecord& shape) const;
  double moving_cycles(const CopyRecord& shape, const BurstTraffic& traffic, bool is_read) const;
  /// Counts a pipe busy from `begin` to `end`, what it overlaps with earlier work only once.
  void occupy(uint32_t pipe, double begin, double end);
  void note(uint32_t line, double begin, double end, uint64_t bytes);

  struct Flag {
    double last = 0;
    double before = 0;  ///< the signal before the last
  };

  const TimingCosts& costs_;
  const CoreRecord& record_;
  size_t index_;
  uint64_t events_left_;
  uint64_t waits_left_;
  uint64_t spans_left_;
  Lifted lifted_;
  LaunchTiming& timing_;
  CoreTiming& totals_;
  std::vector<double> copy_cycles_;
  bool is_second_vector_core_there_;
  size_t next_ = 0;
  size_t next_copy_ = 0;
  size_t next_cross_ = 0;
  double asked_ = 0;            ///< when the copy under way reached the head of its queue
  double transfer_end_ = 0;     ///< the earliest, as far as the core itself goes
  double served_after_ = 0;     ///< that, for others that read the same lines
  bool is_hit_ = false;         ///< it reads L2 alone
  bool has_signalled_ = false;  ///< the call that advance() stopped at
  uint32_t handed_over_ = 0;    ///< signals to vector cores of the block
  uint32_t has_passed_ = 0;     ///< by flag, a bit for each: the first wait for room, with HandOver lifted
  uint64_t ticket_ = 0;
  double start_ = 0;
  double vector_end_ = -1e300;
  /// A fractal of L0C under unit flags.
  struct Sum {
    double product_start = 0;  ///< of M's last into it
    double product_end = 0;
    double carried_out = -1e300;  ///< when FIX has last emptied it
  };
  std::vector<Sum> sums_;
  double read_back_ = 0;               ///< what the scalar pipe has waited for V since the copy before
  bool has_copied_since_read_ = true;  ///< a copy into the core, since the scalar pipe last waited for V
  static constexpr uint32_t kMostQueued = 64;
  double begun_[kPipeCount][kMostQueued] = {};  ///< ring: starts of the last instructions
  uint32_t issued_[kPipeCount] = {};
  double free_[kPipeCount] = {};  ///< earliest start of the pipe's next instruction; S: the scalar pipe's clock
  double done_[kPipeCount] = {};  ///< when all that it was given has taken effect
  Flag flags_[kPipeCount][kPipeCount][kEventCount] = {};
};

}  // namespace opkit
