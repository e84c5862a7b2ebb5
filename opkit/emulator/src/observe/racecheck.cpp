// Accesses of two pipes of one core to the same bytes that no flag, barrier or queue orders. Each pipe has a vector
// clock: SetFlag copies the signalling pipe's, WaitFlag joins the copy into the waiting pipe's, and two accesses are
// ordered when the later one's pipe has seen the earlier one's time. Eager execution hides such a race; this finds it.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "isa/table.h"
#include "memory/bounds.h"
#include "observe/core_detector.h"
#include "observe/interval_map.h"
#include "observe/merged_ranges.h"
#include "sync/cross_core.h"

namespace opkit {
namespace {

constexpr uint32_t kPipes = static_cast<uint32_t>(Pipe::ALL);  // the real ones
using Clock = std::array<uint64_t, kPipes>;

constexpr uint32_t index_of(Pipe pipe) { return static_cast<uint32_t>(pipe); }

void join(Clock& into, const Clock& from) {
  for (uint32_t i = 0; i < kPipes; ++i) into[i] = std::max(into[i], from[i]);
}

struct Access {
  uint64_t time = 0;         ///< of its pipe; 0: none
  uint64_t instruction = 0;  ///< its number
  AccessSite site;
};

/// The last write of some bytes, and what each pipe has read of them since.
struct History {
  Access write;
  std::array<Access, kPipes> reads;
  uint8_t readers = 0;  ///< a bit for each pipe with a read
};

/// One core's clocks and histories.
struct RaceCheckState : CoreFindings {
  using CoreFindings::CoreFindings;

  std::array<Clock, kPipes> clocks{};
  Clock finished{};  ///< by pipe, the time of its last instruction that was done before its next one began
  std::vector<Clock> flags[kPipes][kPipes][kEventCount];  ///< signals not yet waited for, oldest first
  Clock told_group[kCrossCoreFlags] = {};                 ///< what own signals in modes 0 and 1 cover, by flag
  Clock told_others = {};                                 ///< and in mode 2
  Clock unit_flags[2] = {};                               ///< of M and FIX at their last instruction with a unit flag
  IntervalMap<History> spaces[static_cast<size_t>(Space::kCount)];
  std::vector<ByteRange> ranges;     // of the instruction at hand
  std::vector<AccessSite> too_late;  // writes that it does not wait for, though it reads what they write

  Clock& clock(Pipe pipe) { return clocks[index_of(pipe)]; }

  void join_all() {
    Clock joined{};
    for (const Clock& clock : clocks) join(joined, clock);
    clocks.fill(joined);
    finished = joined;
  }
  /// The pipe has waited for all that another clock has seen, instructions of its own among them.
  void receive(Pipe pipe, const Clock& from) {
    join(clock(pipe), from);
    finish(pipe, from[index_of(pipe)]);
  }
  void finish(Pipe pipe, uint64_t time) { finished[index_of(pipe)] = std::max(finished[index_of(pipe)], time); }
};

std::string flag_name(Pipe first, Pipe second) {
  return "HardEvent::" + std::string(pipe_name(first)) + "_" + pipe_name(second);
}

class RaceCheck final : public CoreDetector<RaceCheckState> {
 public:
  explicit RaceCheck(const CheckOptions& options) : CoreDetector(options), options_(options) {}

  void before(const Core& core, const Instr& instr) override {
    RaceCheckState& state = state_of(core);
    const OpRow& row = row_of(instr.op);
    if (row.family == Family::Control && !is_scalar_access(instr.op)) return synchronise(state, instr, row);
    if (instr.pipe >= Pipe::ALL) return;
    start(state, instr.pipe);
    state.too_late.clear();
    if (is_scalar_access(instr.op)) {
      const bool is_write = instr.op == Op::SetValue;
      const Operand& element = is_write ? instr.dst : instr.src[0];
      touch(core, state, instr, element.space, element.address, size_bytes(element.dtype), is_write);
      return;
    }
    follow_unit_flag(state, instr);
    joined_ranges(core, instr, state.ranges);
    // Reads first: what an instruction writes in place is not what it reads.
    for (const bool is_write : {false, true}) {
      for (const ByteRange& range : state.ranges) {
        if (range.is_write != is_write) continue;
        const Space space = range.operand == 0 ? instr.dst.space : instr.src[range.operand - 1].space;
        touch(core, state, instr, space, range.begin, range.bytes, is_write);
      }
    }
    if (unit_flag_of(instr) != 0) state.unit_flags[instr.pipe == Pipe::M ? 0 : 1] = state.clock(instr.pipe);
  }

  void block_end(const Core& core) override {
    // What the core has touched no longer matters; its findings do.
    RaceCheckState* state = find_state(core);
    if (state == nullptr) return;
    for (IntervalMap<History>& space : state->spaces) space.clear();
  }

 private:
  static bool is_scalar_access(Op op) { return op == Op::GetValue || op == Op::SetValue; }

  static uint8_t unit_flag_of(const Instr& instr) {
    if (instr.product != nullptr) return instr.product->unit_flag;
    return instr.fixpipe != nullptr ? instr.fixpipe->unit_flag : 0;
  }

  /// With unit flags Mmad and Fixpipe wait for each other, block by block of L0C; here core by core.
  static void follow_unit_flag(RaceCheckState& state, const Instr& instr) {
    if (unit_flag_of(instr) != 0) join(state.clock(instr.pipe), state.unit_flags[instr.pipe == Pipe::M ? 1 : 0]);
  }

  /// An instruction joins its queue: the scalar pipe has waited for all that its clock has seen, accesses of its own
  /// excepted, and issues only then.
  static void start(RaceCheckState& state, Pipe pipe) {
    Clock& clock = state.clock(pipe);
    if (pipe != Pipe::S) {
      const Clock& scalar = state.clock(Pipe::S);
      for (uint32_t i = 0; i < kPipes; ++i) {
        if (i != index_of(Pipe::S)) clock[i] = std::max(clock[i], scalar[i]);
      }
      state.finish(pipe, scalar[index_of(pipe)]);
    }
    ++clock[index_of(pipe)];
  }

  static void synchronise(RaceCheckState& state, const Instr& instr, const OpRow& row) {
    const bool is_flag = instr.op == Op::SetFlag || instr.op == Op::WaitFlag;
    if (is_flag) {
      if (instr.pipe >= Pipe::ALL || instr.peer_pipe >= Pipe::ALL || instr.event_id >= kEventCount) return;
      std::vector<Clock>& signals = state.flags[index_of(instr.pipe)][index_of(instr.peer_pipe)][instr.event_id];
      if (instr.op == Op::SetFlag) {
        start(state, instr.pipe);
        signals.push_back(state.clock(instr.pipe));
      } else if (!signals.empty()) {
        state.receive(instr.peer_pipe, signals.front());
        signals.erase(signals.begin());
      }
      return;
    }
    if (instr.op == Op::CrossCoreSetFlag || instr.op == Op::CrossCoreWaitFlag) return follow_cores(state, instr);
    const bool is_barrier = instr.op == Op::PipeBarrier && instr.pipe == Pipe::ALL;
    // SyncAll and its like wait for every pipe of the core before they signal.
    if (is_barrier || row.cost == Cost::cross_core) return state.join_all();
    if (instr.op == Op::PipeBarrier && instr.pipe < Pipe::ALL) {
      state.finish(instr.pipe, state.clock(instr.pipe)[index_of(instr.pipe)]);
    }
  }

  /// Flags between cores come back to the core itself: a group's flag is set by this core too, and AIC and AIV answer
  /// each other. What the core did before its own signal is then done. Any answer is taken for one to every signal
  /// before.
  static void follow_cores(RaceCheckState& state, const Instr& instr) {
    if (instr.pipe >= Pipe::ALL || instr.event_id >= kCrossCoreFlags) return;
    if (instr.op == Op::CrossCoreSetFlag) {
      start(state, instr.pipe);
      const bool is_to_other_kind = instr.mode == 2;
      join(is_to_other_kind ? state.told_others : state.told_group[instr.event_id], state.clock(instr.pipe));
      return;
    }
    state.receive(instr.pipe, state.told_others);
    state.receive(instr.pipe, state.told_group[instr.event_id]);
  }

  void touch(const Core& core, RaceCheckState& state, const Instr& instr, Space space, uint64_t begin, uint64_t bytes,
             bool is_write) {
    const uint32_t pipe = index_of(instr.pipe);
    const Access access = {state.clocks[pipe][pipe], core.issued, site_of(instr)};
    IntervalMap<History>& histories = state.spaces[static_cast<size_t>(space)];
    if (is_write) {
      const auto meet = [&](uint64_t first, uint64_t last, const History& history) {
        compare(core, state, instr, "RACE-WAW", history.write, space, first, last);
        for (uint32_t i = 0; i < kPipes; ++i) {
          if ((history.readers >> i & 1) != 0) {
            compare(core, state, instr, "RACE-WAR", history.reads[i], space, first, last);
          }
        }
      };
      histories.assign(begin, begin + bytes, meet, [&](History& history) {
        history.write = access;
        history.readers = 0;
      });
      return;
    }
    histories.update(begin, begin + bytes, [&](uint64_t first, uint64_t last, History& history) {
      compare(core, state, instr, "RACE-RAW", history.write, space, first, last);
      history.reads[pipe] = access;
      history.readers = static_cast<uint8_t>(history.readers | 1u << pipe);
    });
  }

  /// Whether its compiler orders what no flag does: the caller and the kernel's own options have to say so.
  bool has_auto_sync(const Core& core) const { return options_.has_auto_sync && core.has_auto_sync; }

  void compare(const Core& core, RaceCheckState& state, const Instr& instr, const char* id, const Access& earlier,
               Space space, uint64_t first, uint64_t last) {
    const Pipe pipe = earlier.site.pipe;
    if (earlier.time == 0) return;
    const bool is_in_pipe = pipe == instr.pipe;
    if (is_in_pipe && !races_in_pipe(core, state, instr, id, earlier, space, first, last)) return;
    if (!is_in_pipe && state.clock(instr.pipe)[index_of(pipe)] >= earlier.time) return;
    const bool has_scalar = pipe == Pipe::S || instr.pipe == Pipe::S;
    if (has_scalar && has_auto_sync(core) && core.kind == SubCore::AIV) {
      state.receive(instr.pipe, state.clock(pipe));  // the flag pair that the compiler puts here
      if (options_.note && space != Space::GM) report(core, state, instr, id, earlier, space, first, last, kNoteScalar);
      return;
    }
    // In place, the flag that orders the read orders the write too.
    const auto is_same = [&](const AccessSite& site) {
      return site.line == earlier.site.line && site.op == earlier.site.op;
    };
    const bool is_told = std::any_of(state.too_late.begin(), state.too_late.end(), is_same);
    if (std::string_view(id) == "RACE-RAW") {
      state.too_late.push_back(earlier.site);
    } else if (std::string_view(id) == "RACE-WAW" && is_told) {
      return;
    }
    report(core, state, instr, id, earlier, space, first, last);
  }

  /// Instructions of one pipe start in order, and one may start before the last has written its results. The compiler
  /// puts the barriers of V where it synchronises; those of copies it does not, and they are noted here.
  /// Source: Ascend C API, PipeBarrier
  bool races_in_pipe(const Core& core, RaceCheckState& state, const Instr& instr, const char* id, const Access& earlier,
                     Space space, uint64_t first, uint64_t last) {
    const Pipe pipe = instr.pipe;
    if (state.finished[index_of(pipe)] >= earlier.time || std::string_view(id) == "RACE-WAR") return false;
    if (pipe == Pipe::V) return !has_auto_sync(core) && core.kind == SubCore::AIV;
    const bool is_copy = pipe == Pipe::MTE2 || pipe == Pipe::MTE3;
    const bool is_sum = space == Space::GM && core.atomic_op != AtomicOp::None;
    if (options_.note && is_copy && !is_sum && std::string_view(id) == "RACE-WAW") {
      report(core, state, instr, id, earlier, space, first, last, kNoteCopies);
    }
    return false;
  }

  static constexpr const char* kNoteScalar = "NOTE-SCALAR-SYNC";
  static constexpr const char* kNoteCopies = "NOTE-COPY-ORDER";

  static void report(const Core& core, RaceCheckState& state, const Instr& instr, const char* id, const Access& access,
                     Space space, uint64_t first, uint64_t last, const char* note = nullptr) {
    bool is_new = false;
    const AccessSite site = site_of(instr);
    const AccessSite& earlier = access.site;
    Finding& finding = state.findings.at(note == nullptr ? id : note, core, site, earlier, is_new);
    if (!is_new) return;
    finding.other_instruction = access.instruction;
    finding.dtype = instr.dst.dtype;
    const bool reads = std::string_view(id) == "RACE-RAW";
    const bool read = std::string_view(id) == "RACE-WAR";
    place_finding(finding, core, space, first, last);
    finding.message = std::string(row_of(instr.op).name) + " on " + pipe_name(instr.pipe) + " " +
                      (reads ? "reads" : "writes") + " bytes of " + space_name(space) + " that " +
                      row_of(earlier.op).name + " on " + pipe_name(earlier.pipe) + " may not have " +
                      (read ? "read" : "written") + " yet: ";
    if (earlier.pipe == instr.pipe) {
      finding.message += "no barrier stands between the two";
      finding.help = std::string("put PipeBarrier<PIPE_") + pipe_name(instr.pipe) + ">() before " + place_text(site);
      return;
    }
    finding.message += note == nullptr ? "no flag orders the two" : "only the compiler's automatic flags order the two";
    const std::string flag = flag_name(earlier.pipe, instr.pipe);
    finding.help = "put SetFlag<" + flag + ">(id) behind " + place_text(earlier) + " and WaitFlag<" + flag +
                   ">(id) before " + place_text(site) +
                   (read ? "; a TQue does it in FreeTensor and AllocTensor" : "; a TQue does it in EnQue and DeQue");
  }

  CheckOptions options_;
};

}  // namespace

std::unique_ptr<Detector> make_race_check(const CheckOptions& options) { return std::make_unique<RaceCheck>(options); }

}  // namespace opkit
