#include "observe/timing_core.h"

#include <algorithm>
#include <cmath>

namespace opkit {
namespace {

/// The power of two that every burst's address is a multiple of.
uint64_t granule(const CopyRecord& shape) {
  const uint64_t places = shape.burst_count > 1 ? shape.address | shape.stride : shape.address;
  return places & (~places + 1);
}

}  // namespace

CoreReplay::CoreReplay(const TimingCosts& costs, const CoreRecord& record, size_t index, uint64_t event_limit,
                       Lifted lifted, LaunchTiming& timing)
    : costs_(costs),
      record_(record),
      index_(index),
      events_left_(event_limit),
      waits_left_(event_limit),
      spans_left_(event_limit),
      lifted_(lifted),
      timing_(timing),
      totals_(timing.cores[index]),
      copy_cycles_(record.lines.size(), 0.0),
      is_second_vector_core_there_(lifted.is(Limit::VectorCores) && record.kind == SubCore::AIV),
      sums_(record.kind == SubCore::AIC ? costs.l0c_bytes / kSumBytes : 0) {}

void CoreReplay::begin(double cycle) {
  start_ = cycle;
  std::fill(free_, free_ + kPipeCount, cycle);
  std::fill(done_, done_ + kPipeCount, cycle);
  if (lifted_.is(Limit::Scalar)) return;
  scalar() += costs_.entry_cycles;
  totals_.busy_cycles[at(Pipe::S)] += costs_.entry_cycles;
  note_scalar(cycle, scalar());
}

CoreReplay::Step CoreReplay::advance(CrossReplay& cross, double& copy_start) {
  for (; next_ < record_.records.size(); ++next_) {
    const Record& record = record_.records[next_];
    switch (record.kind) {
      case RecordKind::Vector: vector(record); break;
      case RecordKind::Local: local(record); break;
      case RecordKind::SetFlag: set_flag(record); break;
      case RecordKind::WaitFlag: wait_flag(record); break;
      case RecordKind::Barrier: barrier(record); break;
      case RecordKind::Cross:
        if (!cross_core(record, cross)) return Step::Blocked;
        break;
      case RecordKind::Scalar: {
        const double begin = scalar();
        spend_scalar(record);
        note(record.line, begin, scalar(), 0);
        break;
      }
      case RecordKind::Copy:
        enter_queue(record.pipe);
        copy_start = unit_flag_start(record, std::max(free_[record.pipe], issued_at() + scalar_cycles(record)));
        return Step::Copy;
    }
  }
  return Step::Ended;
}

double CoreReplay::scalar_cycles(const Record& record) const {
  if (lifted_.is(Limit::Scalar)) return 0;
  if (lifted_.is(Limit::Tiling)) return record.scalar_cycles - static_cast<double>(record.library_cycles);
  if (lifted_.is(Limit::BaseBlocks)) return record.scalar_cycles * base_block_share() * base_block_share();
  if (is_second_vector_core_there_) return record.scalar_cycles / 2;
  if (lifted_.is(Limit::Elements)) return record.scalar_cycles - static_cast<double>(record.element_cycles);
  if (lifted_.is(Limit::SmallTiles)) {
    return (record.scalar_cycles + static_cast<double>(record.element_cycles)) / 2;
  }
  return record.scalar_cycles;
}

void CoreReplay::spend_scalar(const Record& record) {
  const double cycles = scalar_cycles(record);
  const double begin = scalar();
  scalar() += cycles;
  totals_.busy_cycles[at(Pipe::S)] += cycles;
  note_scalar(begin, scalar());
}

void CoreReplay::note_scalar(double begin, double end) {
  if (spans_left_ == 0 || end <= begin) return;
  std::vector<ScalarSpan>& spans = timing_.scalar;
  if (!spans.empty() && spans.back().core == index_ && spans.back().end_cycle >= begin) {
    spans.back().end_cycle = end;
    return;
  }
  --spans_left_;
  spans.push_back({static_cast<uint32_t>(index_), begin, end});
}

void CoreReplay::vector(const Record& record) {
  constexpr uint32_t kVector = at(Pipe::V);
  enter_queue(kVector);
  double saved = 0;
  double first_stall = record.first_stall;
  if (lifted_.is(Limit::BankConflicts)) saved = static_cast<double>(record.conflict_cycles);
  if (lifted_.is(Limit::VectorStalls)) saved = static_cast<double>(record.stall_cycles);
  if (lifted_.is(Limit::SmallTiles)) saved = static_cast<double>(record.stall_cycles) / 2;
  if (lifted_.is(Limit::VectorStalls)) first_stall = 0;
  if (lifted_.is(Limit::SmallTiles)) first_stall /= 2;
  const double issue = scalar_cycles(record);
  if (is_second_vector_core_there_) saved += (record.busy_cycles - saved) / 2;
  const double busy = record.busy_cycles - saved;
  // The pipe cannot be through sooner than the scalar pipe has issued, or than its own work takes.
  const double path = std::max(record.path_cycles - saved - (record.scalar_cycles - issue), std::min(busy, issue));
  const double ready = std::max(vector_end_ + busy, free_[kVector] + busy - first_stall);
  const double end = std::max(ready, scalar() + path);
  const bool is_single = record.peer != 0;
  if (is_single) note(record.line, end - (busy - first_stall), end + costs_.vector_startup, 0);
  // The stall is the drain of the instruction before, which its own time covers.
  occupy(kVector, end - (busy - first_stall), end + costs_.vector_startup);
  const uint32_t count = record.instructions;
  for (uint32_t left = std::min(count, kMostQueued); left > 0; --left) leave_queue(kVector, end - busy * left / count);
  free_[kVector] = vector_end_ = end;
  spend_scalar(record);
  if (count > 1) enter_queue(kVector);
}

void CoreReplay::local(const Record& record) {
  const uint32_t pipe = record.pipe;
  enter_queue(pipe);
  spend_scalar(record);
  const double asked = std::max(free_[pipe], scalar());
  const double start = unit_flag_start(record, asked);
  const double share = pipe == at(Pipe::MTE1) ? base_block_share() : 1;
  const double end = unit_flag_end(record, start, start + record.busy_cycles * share);
  const double done = end + static_cast<double>(record.latency);
  note(record.line, asked, done, 0);
  occupy(pipe, asked, done);
  leave_queue(pipe, asked);
  free_[pipe] = end;
  if (pipe == at(Pipe::V)) vector_end_ = end;
}

double CoreReplay::base_block_share() const {
  if (!lifted_.is(Limit::BaseBlocks) || record_.l0c_bytes_used == 0 || costs_.l0c_bytes == 0) return 1;
  return std::sqrt(std::min(1.0, static_cast<double>(record_.l0c_bytes_used) / static_cast<double>(costs_.l0c_bytes)));
}

double CoreReplay::unit_flag_start(const Record& record, double start) const {
  if (!has_unit_flag(record)) return start;
  for (size_t i = record.l0c_first; i <= record.l0c_last && i < sums_.size(); ++i) {
    // A product fills L0C no sooner than FIX empties it, piece by piece.
    const double from =
        record.pipe == at(Pipe::FIX) ? sums_[i].product_start : sums_[i].carried_out - record.busy_cycles;
    start = std::max(start, from);
  }
  return start;
}

double CoreReplay::unit_flag_end(const Record& record, double start, double end) {
  if (record.pipe != at(Pipe::M) && record.pipe != at(Pipe::FIX)) return end;
  const size_t behind = std::min<size_t>(record.l0c_last + size_t{1}, sums_.size());
  if (record.pipe == at(Pipe::M)) {
    for (size_t i = record.l0c_first; i < behind; ++i) {
      sums_[i].product_start = start;
      sums_[i].product_end = end + static_cast<double>(record.latency);
    }
    return end;
  }
  if (!has_unit_flag(record)) return end;
  for (size_t i = record.l0c_first; i < behind; ++i) end = std::max(end, sums_[i].product_end);
  for (size_t i = record.l0c_first; i < behind; ++i) sums_[i].carried_out = end;
  return end;
}

void CoreReplay::enter_queue(uint32_t pipe) {
  const bool is_of_library = record_.has_library_work && record_.kind == SubCore::AIC;
  const double places = costs_.queue_instructions / (is_of_library ? costs_.queue_share_of_library : 1);
  const uint32_t depth = std::min(static_cast<uint32_t>(places), kMostQueued);
  if (depth == 0 || issued_[pipe] < depth) return;
  scalar() = std::max(scalar(), begun_[pipe][(issued_[pipe] - depth) % kMostQueued]);
}

void CoreReplay::leave_queue(uint32_t pipe, double start) { begun_[pipe][issued_[pipe]++ % kMostQueued] = start; }

void CoreReplay::set_flag(const Record& record) {
  enter_queue(record.pipe);
  spend_scalar(record);
  const double source = record.pipe == at(Pipe::S) ? scalar() : done_[record.pipe];
  Flag& flag = flags_[record.pipe][record.peer][record.event];
  flag = {std::max(scalar(), source), flag.last};
  leave_queue(record.pipe, std::max(scalar(), free_[record.pipe]));
}

void CoreReplay::wait_flag(const Record& record) {
  enter_queue(record.peer);
  spend_scalar(record);
  const Flag& flag = flags_[record.pipe][record.peer][record.event];
  leave_queue(record.peer, std::max(scalar(), free_[record.peer]));
  const auto is_between = [&](Pipe one, Pipe other) { return record.pipe == at(one) && record.peer == at(other); };
  if (lifted_.is(Limit::UnitFlags) && (is_between(Pipe::M, Pipe::FIX) || is_between(Pipe::FIX, Pipe::M))) return;
  // What FIX has not carried out yet is the advice on unit flags; elsewhere buffers may take turns already.
  const bool is_for_buffer = place_of(static_cast<Pipe>(record.peer)) < place_of(static_cast<Pipe>(record.pipe)) &&
                             !is_between(Pipe::FIX, Pipe::M);
  // A wait behind which its pipe does nothing has no line; a core that only waits and signals has none at all.
  const bool rotates = record.line < record_.lines.size() && record_.lines[record.line].rotates;
  const bool is_only_one = is_for_buffer && !record.has_other && !rotates;
  const double cycle = is_only_one && lifted_.is(Limit::Buffers) ? flag.before : flag.last;
  if (is_between(Pipe::V, Pipe::S) && cycle > scalar()) {
    if (has_copied_since_read_) read_back_ = 0;
    has_copied_since_read_ = false;
    read_back_ += cycle - scalar();
  }
  hold(record.peer, cycle, is_for_buffer ? WaitReason::Buffer : WaitReason::Data, record.pipe);
}

double CoreReplay::issued_at() const {
  const double now = free_[at(Pipe::S)];
  const bool is_copy_in = record_.records[next_].peer != 0;
  return lifted_.is(Limit::ReadBack) && is_copy_in ? now - read_back_ : now;
}

void CoreReplay::hold(uint32_t pipe, double cycle, WaitReason reason, uint32_t cause) {
  const double begin = std::max(free_[pipe], scalar());
  free_[pipe] = std::max(free_[pipe], cycle);
  if (cycle <= begin) return;
  totals_.wait_cycles[pipe] += cycle - begin;
  if (waits_left_ == 0) return;
  --waits_left_;
  timing_.waits.push_back(
      {static_cast<uint32_t>(index_), static_cast<Pipe>(pipe), reason, static_cast<Pipe>(cause), begin, cycle});
}

double CoreReplay::all_done() const { return *std::max_element(done_, done_ + kPipeCount); }

void CoreReplay::barrier(const Record& record) {
  spend_scalar(record);
  if (record.pipe != at(Pipe::ALL)) {
    hold(record.pipe, done_[record.pipe], WaitReason::Barrier, record.pipe);
    return;
  }
  if (lifted_.is(Limit::Barriers)) return;
  const double all = std::max(scalar(), all_done());
  for (uint32_t pipe = 0; pipe < kPipeCount; ++pipe) hold(pipe, all, WaitReason::Barrier, pipe);
}

bool CoreReplay::cross_core(const Record& record, CrossReplay& cross) {
  const CrossRecord& call = record_.crosses[next_cross_];
  const bool is_pipes = call.op == Op::CrossCoreSetFlag || call.op == Op::CrossCoreWaitFlag;
  const bool is_all = !is_pipes || call.pipe == Pipe::ALL || call.pipe == Pipe::S;
  if (!has_signalled_) {
    spend_scalar(record);
    const double done = is_all ? all_done() : done_[record.pipe];
    ticket_ = cross.signal(index_, call, std::max(scalar(), done));
    has_signalled_ = true;
  }
  double from = 0;
  if (!has_more_room(call, cross) && !cross.may_pass(index_, call, ticket_, from)) return false;
  ++next_cross_;
  has_signalled_ = false;
  if (from == 0 || lifted_.is(Limit::CrossCore)) return true;
  const bool is_message = call.op == Op::CubeServe || call.op == Op::CubeAwait;
  from += is_message ? costs_.message_cycles : costs_.cross_core_cycles;
  const double begin = scalar();
  // A core that asks for messages again and again is busy with that.
  if (is_message) totals_.busy_cycles[at(Pipe::S)] += std::max(0.0, from - begin);
  for (uint32_t pipe = 0; pipe < kPipeCount; ++pipe) {
    if (is_all || pipe == record.pipe) hold(pipe, from, WaitReason::Cores, pipe);
  }
  if (is_all) note(record.line, begin, std::max(begin, from), 0);
  return true;
}

bool CoreReplay::has_more_room(const CrossRecord& call, const CrossReplay& cross) {
  if (!lifted_.is(Limit::HandOver) || record_.kind != SubCore::AIC) return false;
  if (call.op == Op::CrossCoreSetFlag && call.mode == kBetweenKinds) ++handed_over_;
  if (call.op != Op::CrossCoreWaitFlag) return false;
  const uint32_t bit = uint32_t{1} << call.flag % 32;
  // A core that has handed over nothing yet waits for data, not for room.
  if (handed_over_ == 0 || (has_passed_ & bit) != 0 || !cross.is_of_other_kind(index_, call.flag)) return false;
  has_passed_ |= bit;
  return true;
}

const CopyCosts& CoreReplay::law_of(bool is_read) const {
  if (is_read) return costs_.mte2;
  return record_.records[next_].pipe == at(Pipe::FIX) ? costs_.fixpipe : costs_.mte3;
}

/// What a burst off the alignment fetches beyond its own bytes: it ends in one more unit of global memory than it
/// needs.
double CoreReplay::excess_bytes(const CopyRecord& shape) const {
  if (lifted_.is(Limit::Alignment) || is_aligned(costs_, shape) || shape.burst_bytes == 0) return 0;
  const uint64_t begins_at = granule(shape);
  const uint64_t tail = (shape.burst_bytes - 1) % costs_.alignment_bytes + 1;
  // Of bursts that begin anywhere on the granule, so many reach into one more unit, on average.
  return tail > begins_at ? static_cast<double>(tail - begins_at) : 0;
}

/// Cycles of the copy itself, without start-up, waiting for memory that cores share, and contention.
double CoreReplay::moving_cycles(const CopyRecord& shape, const BurstTraffic& traffic, bool is_read) const {
  const CopyCosts& law = law_of(is_read);
  const auto bytes = static_cast<double>(shape.burst_bytes);
  // L2 counts whole lines; what the core moves is the copy's own bytes, split in the same proportion.
  const uint64_t touched = traffic.hit_bytes + traffic.hbm_read_bytes;
  const double share = touched == 0 ? 0 : static_cast<double>(traffic.hit_bytes) / static_cast<double>(touched);
  const bool is_slow = !lifted_.is(Limit::Alignment) && !is_aligned(costs_, shape);
  const double hit_rate = costs_.l2_hit_bytes_per_cycle[static_cast<uint32_t>(record_.kind)];
  const bool is_split_block = is_slow && is_read && shape.reorders && granule(shape) < costs_.bank_bytes;
  const double slow = is_split_block ? costs_.nd_to_nz_unaligned_rate : is_slow ? law.unaligned_rate : 1;
  const double shortest = lifted_.is(Limit::Bursts) ? 0 : law.burst_cycles;
  double burst = (1 - share) * std::max(bytes / (law.bytes_per_cycle * slow), shortest);
  if (share > 0) burst += share * std::max(bytes / ((is_split_block ? slow : 1) * hit_rate), shortest);
  const double calls = lifted_.is(Limit::CopyStartup) ? 0 : lifted_.is(Limit::SmallTiles) ? 0.5 : 1;
  double cycles = std::max(burst * shape.burst_count, static_cast<double>(shape.core_cycles));
  if (is_read) cycles *= base_block_share();
  return (cycles + law.instruction_cycles * calls) / (is_second_vector_core_there_ ? 2 : 1);
}

bool CoreReplay::copy(SharedMemory& memory) {
  const Record& record = record_.records[next_];
  const CopyRecord& shape = record_.copies[next_copy_];
  const bool is_read = record.peer != 0;
  const bool is_shared = !lifted_.is(Limit::Hbm);
  const bool is_from_cube = record.pipe == at(Pipe::FIX);
  spend_scalar(record);
  asked_ = std::max(free_[record.pipe], issued_at());
  served_after_ = 0;
  has_copied_since_read_ |= is_read;
  const double start = unit_flag_start(record, asked_);

  using Access = L2Contents::Access;
  const Access access = is_read ? (shape.bypasses_l2 ? Access::ReadPast : Access::Read)
                                : (shape.bypasses_l2 ? Access::WritePast : Access::Write);
  BurstTraffic traffic;
  for (uint32_t burst = 0; burst < shape.burst_count; ++burst) {
    memory.l2.touch(shape.address + burst * shape.stride, shape.burst_bytes, access, traffic);
  }
  const auto bytes = static_cast<double>(shape.burst_bytes) * shape.burst_count;
  (is_read ? totals_.gm_read_bytes : totals_.gm_write_bytes) += static_cast<uint64_t>(bytes);
  totals_.l2_read_hit_bytes += traffic.hit_bytes;
  totals_.l2_write_hit_bytes += traffic.write_hit_bytes;
  totals_.hbm_read_bytes += traffic.hbm_read_bytes;
  totals_.hbm_write_bytes += traffic.hbm_write_bytes;
  timing_.l2_lost_bytes += traffic.lost_bytes;

  is_hit_ = is_read && traffic.hbm_read_bytes == 0;
  double end = start + moving_cycles(shape, traffic, is_read);
  // What leaves L2 takes HBM's time from the reads; a write itself only waits for the room.
  const auto pushed_out = static_cast<double>(traffic.hbm_write_bytes);
  if (is_shared && pushed_out > 0) memory.hbm.begin(start, pushed_out, FairShare::kNobody);
  if (is_read) {
    const uint32_t readers = memory.reads.note(index_, shape.address);
    if (readers > 1 && !lifted_.is(Limit::SameAddress)) {
      // Those that read one line in step are served one after the other.
      const uint64_t lines = uint64_t{shape.burst_count} * ((shape.burst_bytes + kL2LineBytes - 1) / kL2LineBytes);
      // Of those that L2 serves a few wait for each other at a time; past L2 all of them do.
      const uint32_t others = shape.bypasses_l2 ? readers - 1 : std::min(readers - 1, costs_.same_address_others);
      served_after_ = costs_.same_address_cycles * others * static_cast<double>(lines) * base_block_share();
    }
    if (is_shared && traffic.hbm_read_bytes > 0) {
      // L2 fetches whole units: bursts that share one waste no more than one burst of its length would.
      const double units = static_cast<double>(shape.burst_bytes) / costs_.alignment_bytes;
      const double share = shape.bypasses_l2 ? 1 : std::min(1.0, units);
      const double overhead = lifted_.is(Limit::Bursts) ? 0 : costs_.hbm_burst_bytes * share;
      const double wasted = (overhead + excess_bytes(shape)) * shape.burst_count;
      transfer_end_ = end;
      memory.hbm.begin(start, static_cast<double>(traffic.hbm_read_bytes) + wasted, index_);
      return false;
    }
  } else if (is_shared) {
    // What is posted has left the core; beyond it a write waits for room in L2, and for its share of the way there.
    const double waits = std::max(0.0, pushed_out - costs_.posted_bytes);
    if (waits > 0) end = std::max(end, memory.evictions.take(start, waits));
    const double behind = std::max(0.0, bytes - costs_.posted_bytes);
    // Reads under way are in its way: it gets no more than one of them does.
    if (!is_from_cube) end = std::max(end, start + behind * memory.hbm.cycles_per_byte());
    transfer_end_ = end;
    if (memory.writes.begin_late(start, behind, index_)) return false;
  }
  end_copy(end + served_after_);
  return true;
}

void CoreReplay::end_transfer(double cycle) { end_copy(std::max(transfer_end_, cycle) + served_after_); }

void CoreReplay::end_copy(double end) {
  const Record& record = record_.records[next_];
  const double start = asked_;
  end = unit_flag_end(record, start, end);
  const CopyCosts& law = law_of(record.peer != 0);
  const CopyRecord& shape = record_.copies[next_copy_++];
  ++next_;
  const double startup = is_hit_ ? costs_.l2_hit_startup : law.startup_cycles;
  const double latency = lifted_.is(Limit::CopyStartup) ? 0 : lifted_.is(Limit::SmallTiles) ? startup / 2 : startup;
  note(record.line, start, end + latency, uint64_t{shape.burst_count} * shape.burst_bytes);
  copy_cycles_[record.line] += end - start;
  occupy(record.pipe, start, end + latency);
  leave_queue(record.pipe, start);
  free_[record.pipe] = end;
}

void CoreReplay::occupy(uint32_t pipe, double begin, double end) {
  totals_.busy_cycles[pipe] += std::max(0.0, end - std::max(begin, done_[pipe]));
  done_[pipe] = std::max(done_[pipe], end);
}

void CoreReplay::note(uint32_t line, double begin, double end, uint64_t bytes) {
  if (events_left_ == 0) {
    ++timing_.events_dropped;
    return;
  }
  --events_left_;
  timing_.events.push_back({static_cast<uint32_t>(index_), line, begin, end, bytes});
}

double CoreReplay::finish() {
  totals_.block = record_.block;
  totals_.sub_block = record_.sub_block;
  totals_.kind = record_.kind;
  totals_.start_cycle = start_;
  totals_.end_cycle = std::max({start_, scalar(), all_done()});
  for (const LineTotals& line : record_.lines) totals_.instructions[at(line.pipe)] += line.count;
  return totals_.end_cycle;
}

}  // namespace opkit
