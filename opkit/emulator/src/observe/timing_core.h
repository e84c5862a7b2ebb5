/// One core on the scoreboard: its pipes, flags and barriers, and the copies that it makes through shared memory.
#pragma once

#include <cstdint>
#include <unordered_set>
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

  std::unordered_set<uint64_t> read_by_several;  ///< begins of reads that several cores make
  FairShare hbm;
  SharedBandwidth evictions;  ///< the same link, for how fast writes can push others out
  FairShare writes;           ///< into L2
  L2Contents l2;
  SharedReads reads;
};

/// A copy that its pipe has come to.
struct CopyStart {
  double cycle;
  uint32_t pipe;
};

/// The scalar pipe issues in program order into the queues of the others, and each of these works through its own: what
/// one waits for holds nobody else, so a launch's copies begin in order of time, whatever order the program has.
class CoreReplay {
 public:
  CoreReplay(const TimingCosts& costs, const CoreRecord& record, size_t index, uint64_t event_limit, Lifted lifted,
             LaunchTiming& timing);

  void begin(double cycle);
  /// Runs as far as what is known leads, and adds the copies through GM that pipes have come to. True: to the end.
  bool advance(CrossReplay& cross, std::vector<CopyStart>& starts);
  /// Whether advance() has met a call that waits for other cores.
  bool waits_for_cores() const { return waits_for_cores_; }
  /// Serves the copy that a pipe has come to. False: it is under way in one of the links, and end_transfer() ends it.
  bool copy(uint32_t pipe, SharedMemory& memory);
  /// The pipe's copy under way has got its last byte through the link.
  void end_transfer(uint32_t pipe, double cycle);
  /// Fills the core's totals and returns when it ended.
  double finish();

  /// When the scalar pipe is through with what it has issued.
  double scalar_cycle() const { return free_[at(Pipe::S)]; }
  const CoreRecord& record() const { return record_; }
  const std::vector<double>& copy_cycles() const { return copy_cycles_; }
  const std::vector<double>& wait_cycles() const { return wait_cycles_; }

 private:
  static constexpr uint32_t at(Pipe pipe) { return static_cast<uint32_t>(pipe); }
  static constexpr uint32_t kMostQueued = 64;

  /// What a pipe's queue holds.
  struct Queued {
    uint32_t record = 0;
    uint32_t detail = 0;    ///< of a copy or a call between cores its index; of flags how many of it were set before
    double issued = 0;      ///< when the scalar pipe came to it; of vector instructions, of others was through with it
    bool has_room = false;  ///< of a call between cores: HandOver lifts its wait
  };
  class Queue {
   public:
    bool empty() const { return first_ == items_.size(); }
    const Queued& front() const { return items_[first_]; }
    void push(const Queued& item) { items_.push_back(item); }
    void pop();
    const Queued* begin() const { return items_.data() + first_; }
    const Queued* end() const { return items_.data() + items_.size(); }

   private:
    std::vector<Queued> items_;
    size_t first_ = 0;
  };
  /// How often one pipe has signalled another by one of its flags, and when the last times.
  struct Flag {
    static constexpr uint32_t kKept = 8;
    double times[kKept] = {};
    uint32_t issued = 0;    ///< signals that the scalar pipe has issued
    uint32_t set = 0;       ///< of these, how many have a time
    uint32_t waiting = 0;   ///< waits that have not ended
    uint32_t consumed = 0;  ///< the signal of the last wait that has
    double time(uint32_t signal) const { return signal == 0 ? 0 : times[signal % kKept]; }
  };
  /// A pipe's copy under way.
  struct Transfer {
    double start = 0;         ///< with its unit flag
    double asked = 0;         ///< when it reached the head of its queue
    double end = 0;           ///< the earliest, as far as the core itself goes
    double served_after = 0;  ///< that, for others that read the same lines
    bool is_hit = false;      ///< it reads L2 alone
    bool is_of_hbm = false;   ///< it reads HBM, some of it
    uint64_t l2_bytes = 0;    ///< what L2 serves or takes of it
    bool is_begun = false;
  };

  double& scalar() { return free_[at(Pipe::S)]; }
  /// The scalar pipe's side: issues in program order until it must wait for what is not known yet.
  void issue(CrossReplay& cross);
  bool issue_next(const Record& record, CrossReplay& cross);
  bool issue_wait(const Record& record);
  bool issue_barrier(const Record& record);
  bool issue_cross(const Record& record, CrossReplay& cross);
  void push(uint32_t pipe, double issued, uint32_t detail = 0, bool has_room = false);
  void spend_scalar(const Record& record);
  void note_scalar(double begin, double end);
  double scalar_cycles(const Record& record) const;
  /// The scalar pipe waits while a pipe's queue is full. False: until when is not known yet.
  bool enter_queue(uint32_t pipe);
  /// When the scalar pipe gets to a copy into the core.
  double issued_at(bool is_copy_in) const;
  /// Whether nothing that was issued is left to do.
  bool is_drained() const;
  /// A pipe's side: works through its queue. Whether it has got any further.
  bool run_pipe(uint32_t pipe, CrossReplay& cross, std::vector<CopyStart>& starts);
  /// Says when an instruction began, which makes room in the queue; of what may stay at the head, once.
  void leave_queue(uint32_t pipe, double start);
  void begin_head(uint32_t pipe, double start);
  void vector(const Record& record, double issued);
  void local(const Record& record, double issued);
  void set_flag(const Record& record, const Queued& item);
  bool wait_flag(const Record& record, const Queued& item);
  bool cross_core(const Record& record, const Queued& item, CrossReplay& cross);
  /// How long a call between cores holds those that wait; 0: not at all.
  double passed_from(const CrossRecord& call, double from) const;
  /// With a unit flag FIX takes out what the product before it has just computed, and M follows FIX.
  double unit_flag_start(const Record& record, double start) const;
  double unit_flag_end(const Record& record, double start, double end);
  /// Whether the other of M and FIX has still to do what comes before in the program and shares sums under unit flags.
  bool waits_for_sums(const Record& record, const Queued& item) const;
  /// Whether it waits until a vector core makes room for a result, and more room would let it pass.
  bool has_more_room(const CrossRecord& call, const CrossReplay& cross);
  const CopyCosts& law_of(const Record& record) const;
  Flag& flag_of(const Record& record) { return flags_[record.pipe][record.peer][record.event]; }
  /// Who a transfer of a pipe belongs to.
  size_t owner(uint32_t pipe) const { return index_ * kPipeCount + pipe; }
  double all_done() const;
  /// Holds a pipe from `issued` until `cycle`.
  /// `line`: of the call that holds it; by default of what the pipe does next.
  void hold(uint32_t pipe, double issued, double cycle, WaitReason reason, uint32_t cause, uint32_t line = kNoIndex,
            uint32_t cause_core = kNoIndex);
  /// Counts what held the pipe for the line that it was held before.
  void charge_wait(uint32_t pipe, uint32_t line);
  void end_copy(uint32_t pipe, double end);
  /// What one step of a copy or a load of this core is of its length, with BaseBlocks lifted.
  double base_block_share() const;
  bool has_unit_flag(const Record& record) const { return record.event != 0 || lifted_.is(Limit::UnitFlags); }
  double excess_bytes(const CopyRecord& shape) const;
  /// What a read takes of HBM against others of its length: 1 on cores that keep in step, else near it, the same on
  /// every run.
  double drift_of(uint32_t copy, const SharedMemory& memory) const;
  double moving_cycles(const Record& record, const CopyRecord& shape, const BurstTraffic& traffic) const;
  /// Counts a pipe busy from `begin` to `end`, what it overlaps with earlier work only once.
  void occupy(uint32_t pipe, double begin, double end);
  void note(uint32_t line, double begin, double end, uint64_t bytes, uint64_t l2_bytes = 0);

  const TimingCosts& costs_;
  const CoreRecord& record_;
  size_t index_;
  uint64_t events_left_;
  uint64_t waits_left_;
  uint64_t spans_left_;
  Lifted lifted_;
  LaunchTiming& timing_;
  CoreTiming& totals_;
  std::vector<double> copy_cycles_;                ///< by line
  std::vector<double> wait_cycles_;                ///< by line
  double held_cycles_[kPipeCount] = {};            ///< of waits whose line is not known yet
  std::vector<size_t> waits_of_none_[kPipeCount];  ///< these, in LaunchTiming::waits
  bool is_second_vector_core_there_;
  bool is_drifting_;
  size_t next_ = 0;
  size_t next_copy_ = 0;
  size_t next_cross_ = 0;
  bool is_midway_ = false;        ///< the scalar pipe has begun the call that it waits in
  bool owes_entry_ = false;       ///< it has still to wait for room behind a run of vector instructions
  bool waits_for_cores_ = false;  ///< a call of the scalar pipe or at the head of a queue
  bool has_room_ = false;         ///< of the call that the scalar pipe waits in: HandOver lifts its wait
  uint32_t handed_over_ = 0;      ///< signals to vector cores of the block
  uint32_t has_passed_ = 0;       ///< by flag, a bit for each: the first wait for room, with HandOver lifted
  uint64_t tickets_[kPipeCount] = {};
  Queue queues_[kPipeCount];
  Transfer transfers_[kPipeCount];
  bool has_begun_[kPipeCount] = {};  ///< the head of the queue
  double start_ = 0;
  double vector_end_ = -1e300;
  /// A fractal of L0C under unit flags.
  struct Sum {
    double product_start = 0;  ///< of M's last into it
    double product_end = 0;
    double carried_out = -1e300;  ///< when FIX has last emptied it
  };
  std::vector<Sum> sums_;
  double read_back_ = 0;                        ///< what the scalar pipe has waited for V since the copy before
  bool has_copied_since_read_ = true;           ///< a copy into the core, since the scalar pipe last waited for V
  double begun_[kPipeCount][kMostQueued] = {};  ///< ring: starts of the last instructions
  uint32_t issued_[kPipeCount] = {};            ///< into the queue
  uint32_t started_[kPipeCount] = {};           ///< of these, how many have begun
  double free_[kPipeCount] = {};  ///< earliest start of the pipe's next instruction; S: the scalar pipe's clock
  double done_[kPipeCount] = {};  ///< when all that it was given has taken effect
  Flag flags_[kPipeCount][kPipeCount][kEventCount] = {};
};

}  // namespace opkit
