#include "observe/timing_core.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace opkit {
namespace {

/// Multiples of it spread evenly from 0 to 1, however many there are: which cores drift.
constexpr double kGolden = 0.6180339887498949;

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
      wait_cycles_(record.lines.size(), 0.0),
      is_second_vector_core_there_(lifted.is(Limit::VectorCores) && record.kind == SubCore::AIV),
      is_drifting_(record.kind == SubCore::AIV && std::fmod((index + 0.5) * kGolden, 1.0) < costs.drift_share),
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

void CoreReplay::Queue::pop() {
  if (++first_ < items_.size()) return;
  items_.clear();
  first_ = 0;
}

bool CoreReplay::advance(CrossReplay& cross, std::vector<CopyStart>& starts) {
  waits_for_cores_ = false;
  for (bool has_moved = true; has_moved;) {
    issue(cross);
    has_moved = false;
    for (uint32_t pipe = 0; pipe < kPipeCount; ++pipe) has_moved |= run_pipe(pipe, cross, starts);
  }
  return next_ == record_.records.size() && !owes_entry_ && is_drained();
}

void CoreReplay::issue(CrossReplay& cross) {
  for (;; ++next_) {
    if (owes_entry_ && !enter_queue(at(Pipe::V))) return;
    owes_entry_ = false;
    if (next_ == record_.records.size() || !issue_next(record_.records[next_], cross)) return;
  }
}

bool CoreReplay::issue_next(const Record& record, CrossReplay& cross) {
  switch (record.kind) {
    case RecordKind::Vector: {
      constexpr uint32_t kVector = at(Pipe::V);
      if (!enter_queue(kVector)) return false;
      charge_wait(at(Pipe::S), record.line);
      push(kVector, scalar());
      issued_[kVector] += std::min(record.instructions, kMostQueued);
      spend_scalar(record);
      owes_entry_ = record.instructions > 1;
      return true;
    }
    case RecordKind::Local:
      if (!enter_queue(record.pipe)) return false;
      charge_wait(at(Pipe::S), record.line);
      spend_scalar(record);
      push(record.pipe, scalar());
      ++issued_[record.pipe];
      return true;
    case RecordKind::Copy: {
      if (!enter_queue(record.pipe)) return false;
      const bool is_read = record.peer != 0;
      charge_wait(at(Pipe::S), record.line);
      spend_scalar(record);
      push(record.pipe, issued_at(is_read), static_cast<uint32_t>(next_copy_++));
      ++issued_[record.pipe];
      has_copied_since_read_ |= is_read;
      return true;
    }
    case RecordKind::SetFlag: {
      Flag& flag = flag_of(record);
      const bool is_full = flag.waiting > 0 && flag.issued - flag.consumed + 2 > Flag::kKept;
      if (is_full || !enter_queue(record.pipe)) return false;
      spend_scalar(record);
      push(record.pipe, scalar(), ++flag.issued);
      ++issued_[record.pipe];
      return true;
    }
    case RecordKind::WaitFlag: return issue_wait(record);
    case RecordKind::Barrier: return issue_barrier(record);
    case RecordKind::Cross: return issue_cross(record, cross);
    case RecordKind::Scalar: {
      const double begin = scalar();
      charge_wait(at(Pipe::S), record.line);
      spend_scalar(record);
      note(record.line, begin, scalar(), 0);
      return true;
    }
  }
  return true;
}

bool CoreReplay::issue_wait(const Record& record) {
  Flag& flag = flag_of(record);
  if (!is_midway_) {
    if (!enter_queue(record.peer)) return false;
    spend_scalar(record);
    ++flag.waiting;
    push(record.peer, scalar(), flag.issued);
    ++issued_[record.peer];
    is_midway_ = true;
  }
  // The scalar pipe issues nothing while it waits itself.
  if (record.peer == at(Pipe::S) && !queues_[at(Pipe::S)].empty()) return false;
  is_midway_ = false;
  return true;
}

bool CoreReplay::issue_barrier(const Record& record) {
  if (record.pipe != at(Pipe::ALL)) {
    spend_scalar(record);
    push(record.pipe, scalar());
    return true;
  }
  if (!lifted_.is(Limit::Barriers) && !is_drained()) return false;
  spend_scalar(record);
  if (lifted_.is(Limit::Barriers)) return true;
  const double issued = scalar();
  const double all = std::max(issued, all_done());
  for (uint32_t pipe = 0; pipe < kPipeCount; ++pipe) {
    hold(pipe, issued, all, WaitReason::Barrier, pipe, record.line);
  }
  return true;
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

void CoreReplay::push(uint32_t pipe, double issued, uint32_t detail, bool has_room) {
  queues_[pipe].push({static_cast<uint32_t>(next_), detail, issued, has_room});
}

bool CoreReplay::is_drained() const {
  return std::all_of(queues_, queues_ + kPipeCount, [](const Queue& queue) { return queue.empty(); });
}

bool CoreReplay::run_pipe(uint32_t pipe, CrossReplay& cross, std::vector<CopyStart>& starts) {
  Queue& queue = queues_[pipe];
  bool has_moved = false;
  for (; !queue.empty() && !transfers_[pipe].is_begun; has_moved = true) {
    const Queued& item = queue.front();
    const Record& record = record_.records[item.record];
    switch (record.kind) {
      case RecordKind::Vector: vector(record, item.issued); break;
      case RecordKind::Local:
        if (waits_for_sums(record, item)) return has_moved;
        local(record, item.issued);
        break;
      case RecordKind::SetFlag: set_flag(record, item); break;
      case RecordKind::WaitFlag:
        has_moved |= !has_begun_[pipe];
        if (!wait_flag(record, item)) return has_moved;
        break;
      case RecordKind::Barrier: hold(pipe, item.issued, done_[pipe], WaitReason::Barrier, pipe); break;
      case RecordKind::Cross:
        if (!cross_core(record, item, cross)) return has_moved;
        break;
      default: {
        if (waits_for_sums(record, item)) return has_moved;
        const double asked = std::max(free_[pipe], item.issued);
        transfers_[pipe] = {unit_flag_start(record, asked), asked, 0, 0, false, false, 0, true};
        begin_head(pipe, asked);
        starts.push_back({transfers_[pipe].start, pipe});
        return true;
      }
    }
    has_begun_[pipe] = false;
    queue.pop();
  }
  return has_moved;
}

void CoreReplay::leave_queue(uint32_t pipe, double start) { begun_[pipe][started_[pipe]++ % kMostQueued] = start; }

void CoreReplay::begin_head(uint32_t pipe, double start) {
  if (has_begun_[pipe]) return;
  has_begun_[pipe] = true;
  leave_queue(pipe, start);
}

void CoreReplay::vector(const Record& record, double issued) {
  constexpr uint32_t kVector = at(Pipe::V);
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
  const double end = std::max(ready, issued + path);
  const bool is_single = record.peer != 0;
  charge_wait(kVector, record.line);
  if (is_single) note(record.line, end - (busy - first_stall), end + costs_.vector_startup, 0);
  // The stall is the drain of the instruction before, which its own time covers.
  occupy(kVector, end - (busy - first_stall), end + costs_.vector_startup);
  const uint32_t count = record.instructions;
  for (uint32_t left = std::min(count, kMostQueued); left > 0; --left) {
    leave_queue(kVector, end - busy * left / count);
  }
  free_[kVector] = vector_end_ = end;
}

void CoreReplay::local(const Record& record, double issued) {
  const uint32_t pipe = record.pipe;
  const double asked = std::max(free_[pipe], issued);
  const double start = unit_flag_start(record, asked);
  const double share = pipe == at(Pipe::MTE1) ? base_block_share() : 1;
  const double end = unit_flag_end(record, start, start + record.busy_cycles * share);
  const double done = end + static_cast<double>(record.latency);
  charge_wait(pipe, record.line);
  note(record.line, asked, done, 0);
  occupy(pipe, asked, done);
  begin_head(pipe, asked);
  free_[pipe] = end;
  if (pipe == at(Pipe::V)) vector_end_ = end;
}

bool CoreReplay::waits_for_sums(const Record& record, const Queued& item) const {
  const bool is_product = record.pipe == at(Pipe::M);
  if (!is_product && (record.pipe != at(Pipe::FIX) || !has_unit_flag(record))) return false;
  for (const Queued& other : queues_[at(is_product ? Pipe::FIX : Pipe::M)]) {
    if (other.record > item.record) return false;
    const Record& before = record_.records[other.record];
    const bool is_sharing = before.l0c_first <= record.l0c_last && record.l0c_first <= before.l0c_last;
    const bool is_work = before.kind == RecordKind::Local || before.kind == RecordKind::Copy;
    if (is_work && is_sharing && (!is_product || has_unit_flag(before))) return true;
  }
  return false;
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

bool CoreReplay::enter_queue(uint32_t pipe) {
  const bool is_of_library = record_.has_library_work && record_.kind == SubCore::AIC;
  const double places = costs_.queue_instructions / (is_of_library ? costs_.queue_share_of_library : 1);
  const uint32_t depth = std::min(static_cast<uint32_t>(places), kMostQueued);
  if (depth == 0 || issued_[pipe] < depth) return true;
  if (issued_[pipe] - depth >= started_[pipe]) return false;
  scalar() = std::max(scalar(), begun_[pipe][(issued_[pipe] - depth) % kMostQueued]);
  return true;
}

void CoreReplay::set_flag(const Record& record, const Queued& item) {
  const double source = record.pipe == at(Pipe::S) ? item.issued : done_[record.pipe];
  Flag& flag = flag_of(record);
  flag.set = item.detail;
  flag.times[flag.set % Flag::kKept] = std::max(item.issued, source);
  begin_head(record.pipe, std::max(item.issued, free_[record.pipe]));
}

bool CoreReplay::wait_flag(const Record& record, const Queued& item) {
  begin_head(record.peer, std::max(item.issued, free_[record.peer]));
  Flag& flag = flag_of(record);
  const auto is_between = [&](Pipe one, Pipe other) { return record.pipe == at(one) && record.peer == at(other); };
  const auto end = [&] {
    flag.consumed = item.detail;
    --flag.waiting;
    return true;
  };
  if (lifted_.is(Limit::UnitFlags) && (is_between(Pipe::M, Pipe::FIX) || is_between(Pipe::FIX, Pipe::M))) return end();
  // What FIX has not carried out yet is the advice on unit flags; elsewhere buffers may take turns already.
  const bool is_for_buffer = place_of(static_cast<Pipe>(record.peer)) < place_of(static_cast<Pipe>(record.pipe)) &&
                             !is_between(Pipe::FIX, Pipe::M);
  // A wait behind which its pipe does nothing has no line; a core that only waits and signals has none at all.
  const bool rotates = record.line < record_.lines.size() && record_.lines[record.line].rotates;
  const bool is_only_one = is_for_buffer && !record.has_other && !rotates && lifted_.is(Limit::Buffers);
  const uint32_t signal = is_only_one && item.detail > 0 ? item.detail - 1 : item.detail;
  if (flag.set < signal) return false;
  const double wakes = record.peer == at(Pipe::S) ? costs_.scalar_wake_cycles : 0;
  const double cycle = flag.time(signal) + wakes;
  if (is_between(Pipe::V, Pipe::S) && cycle > scalar()) {
    if (has_copied_since_read_) read_back_ = 0;
    has_copied_since_read_ = false;
    read_back_ += cycle - scalar();
  }
  hold(record.peer, item.issued, cycle, is_for_buffer ? WaitReason::Buffer : WaitReason::Data, record.pipe);
  return end();
}

double CoreReplay::issued_at(bool is_copy_in) const {
  const double now = free_[at(Pipe::S)];
  return lifted_.is(Limit::ReadBack) && is_copy_in ? now - read_back_ : now;
}

void CoreReplay::hold(uint32_t pipe, double issued, double cycle, WaitReason reason, uint32_t cause, uint32_t line,
                      uint32_t cause_core) {
  const double begin = std::max(free_[pipe], issued);
  free_[pipe] = std::max(free_[pipe], cycle);
  // ALL is every pipe and none: reports have no row for it.
  if (cycle <= begin || pipe == at(Pipe::ALL)) return;
  totals_.wait_cycles[pipe] += cycle - begin;
  (line == kNoIndex ? held_cycles_[pipe] : wait_cycles_[line]) += cycle - begin;
  if (waits_left_ == 0) return;
  --waits_left_;
  if (line == kNoIndex) waits_of_none_[pipe].push_back(timing_.waits.size());
  timing_.waits.push_back({static_cast<uint32_t>(index_), static_cast<Pipe>(pipe), reason, static_cast<Pipe>(cause),
                           begin, cycle, line, cause_core});
}

void CoreReplay::charge_wait(uint32_t pipe, uint32_t line) {
  if (held_cycles_[pipe] == 0) return;
  wait_cycles_[line] += std::exchange(held_cycles_[pipe], 0);
  for (size_t wait : waits_of_none_[pipe]) timing_.waits[wait].line = line;
  waits_of_none_[pipe].clear();
}

double CoreReplay::all_done() const { return *std::max_element(done_, done_ + kPipeCount); }

double CoreReplay::passed_from(const CrossRecord& call, double from) const {
  if (from == 0 || lifted_.is(Limit::CrossCore)) return 0;
  const bool is_message = call.op == Op::CubeServe || call.op == Op::CubeAwait;
  return from + (is_message ? costs_.message_cycles : costs_.cross_core_cycles);
}

bool CoreReplay::issue_cross(const Record& record, CrossReplay& cross) {
  const CrossRecord& call = record_.crosses[next_cross_];
  const bool is_pipes = call.op == Op::CrossCoreSetFlag || call.op == Op::CrossCoreWaitFlag;
  if (is_pipes && call.pipe != Pipe::ALL && call.pipe != Pipe::S) {
    spend_scalar(record);
    push(record.pipe, scalar(), static_cast<uint32_t>(next_cross_++), has_more_room(call, cross));
    return true;
  }
  if (!is_midway_) {
    if (!is_wait(call.op) && !is_drained()) return false;
    spend_scalar(record);
    tickets_[at(Pipe::S)] = cross.signal(index_, call, std::max(scalar(), all_done()));
    has_room_ = has_more_room(call, cross);
    is_midway_ = true;
  }
  double from = 0;
  if (!has_room_ && !cross.may_pass(index_, call, tickets_[at(Pipe::S)], from)) {
    waits_for_cores_ = true;
    return false;
  }
  ++next_cross_;
  is_midway_ = false;
  const uint32_t sender = cross.sender_at(from);
  from = passed_from(call, from);
  if (from == 0) return true;
  const double begin = scalar();
  // A core that asks for messages again and again is busy with that.
  const bool is_message = call.op == Op::CubeServe || call.op == Op::CubeAwait;
  if (is_message) totals_.busy_cycles[at(Pipe::S)] += std::max(0.0, from - begin);
  for (uint32_t pipe = 0; pipe < kPipeCount; ++pipe) {
    // A pipe that has work left does not wait.
    if (queues_[pipe].empty()) hold(pipe, begin, from, WaitReason::Cores, pipe, record.line, sender);
  }
  note(record.line, begin, std::max(begin, from), 0);
  return true;
}

bool CoreReplay::cross_core(const Record& record, const Queued& item, CrossReplay& cross) {
  const CrossRecord& call = record_.crosses[item.detail];
  if (!has_begun_[record.pipe]) {
    tickets_[record.pipe] = cross.signal(index_, call, std::max(item.issued, done_[record.pipe]));
    has_begun_[record.pipe] = true;
  }
  double from = 0;
  if (!item.has_room && !cross.may_pass(index_, call, tickets_[record.pipe], from)) {
    waits_for_cores_ = true;
    return false;
  }
  const uint32_t sender = cross.sender_at(from);
  from = passed_from(call, from);
  if (from > 0) hold(record.pipe, item.issued, from, WaitReason::Cores, record.pipe, record.line, sender);
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

void CoreReplay::occupy(uint32_t pipe, double begin, double end) {
  totals_.busy_cycles[pipe] += std::max(0.0, end - std::max(begin, done_[pipe]));
  done_[pipe] = std::max(done_[pipe], end);
}

void CoreReplay::note(uint32_t line, double begin, double end, uint64_t bytes, uint64_t l2_bytes) {
  if (events_left_ == 0) {
    ++timing_.events_dropped;
    return;
  }
  --events_left_;
  timing_.events.push_back({static_cast<uint32_t>(index_), line, begin, end, bytes, l2_bytes});
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
