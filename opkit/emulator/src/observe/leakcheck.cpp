// What a block leaves behind: tensors that no FreeTensor gave back, event ids that were never released, flags that
// nobody waited for; and flags signalled again before the wait, because a flag is one bit. Source: Ascend C API,
// synchronisation inside a core, SetFlag; resource management, AllocTensor, AllocEventID.
#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include "core/launch_state.h"
#include "memory/bounds.h"
#include "observe/core_detector.h"

namespace opkit {
namespace {

using Action = ResourceEvent::Action;
using EventKey = std::tuple<Pipe, Pipe, uint8_t>;

struct HeldTensor {
  Where allocated;
  Space space;
  uint32_t bytes;
  bool is_queued;
};

struct HeldEvent {
  Where allocated;
  bool is_queues;
};

struct RaisedFlag {
  Where set;
  uint64_t count;
  bool is_queues;  ///< FreeTensor and EnQue leave flags up for the next tensor, which may never come
};

struct LeakCheckState : CoreFindings {
  using CoreFindings::CoreFindings;

  std::map<std::pair<const void*, uint32_t>, HeldTensor> tensors;
  std::map<EventKey, HeldEvent> events;
  std::map<EventKey, RaisedFlag> flags;
};

std::string event_text(const EventKey& key) {
  const auto& [first, second, id] = key;
  return std::string(pipe_name(first)) + "_" + pipe_name(second) + " id " + std::to_string(id);
}

AccessSite place(Where where, Op op, Pipe pipe = Pipe::S) { return {where.file, where.line, op, pipe}; }

class LeakCheck final : public CoreDetector<LeakCheckState> {
 public:
  using CoreDetector::CoreDetector;

  void launch_begin(const LaunchInfo& info) override {
    CoreDetector::launch_begin(info);
    has_faulted_ = false;
  }

  void before(const Core& core, const Instr& instr) override {
    if (instr.op == Op::CrossCoreSetFlag) {
      const std::lock_guard<std::mutex> guard(lock_);
      last_sets_[instr.event_id] = {core, site_of(instr)};
    }
    if (instr.op != Op::SetFlag && instr.op != Op::WaitFlag) return;
    LeakCheckState& state = state_of(core);
    const EventKey key = {instr.pipe, instr.peer_pipe, instr.event_id};
    const auto raised = state.flags.find(key);
    if (instr.op == Op::WaitFlag) {
      if (raised != state.flags.end() && --raised->second.count == 0) state.flags.erase(raised);
      return;
    }
    const bool is_queues = instr.mode == kQueueSignal;
    if (raised == state.flags.end()) {
      state.flags[key] = {instr.where, 1, is_queues};
      return;
    }
    ++raised->second.count;
    if (raised->second.is_queues != is_queues) {
      report_shared_id(core, state, instr, key, raised->second);
    } else {
      report_duplicate(core, state, instr, key, raised->second);
    }
    raised->second.set = instr.where;
    raised->second.is_queues = is_queues;
  }

  void resource(const Core& core, const ResourceEvent& event) override {
    LeakCheckState& state = state_of(core);
    const std::pair<const void*, uint32_t> tensor = {event.queue, event.address};
    const EventKey key = {event.first, event.second, static_cast<uint8_t>(event.event_id)};
    switch (event.action) {
      case Action::PlaceBuffer: return;
      case Action::AllocateTensor: state.tensors[tensor] = {event.where, event.space, event.bytes, false}; return;
      case Action::EnQueTensor:
      case Action::DeQueTensor: {
        const auto held = state.tensors.find(tensor);
        if (held != state.tensors.end()) held->second.is_queued = event.action == Action::EnQueTensor;
        return;
      }
      case Action::FreeTensor: state.tensors.erase(tensor); return;
      case Action::AllocateEvent: state.events[key] = {event.where, event.is_queues}; return;
      case Action::ReleaseEvent: state.events.erase(key); return;
    }
  }

  void block_end(const Core& core) override {
    // A launch that faulted ends its blocks wherever they are.
    if (core.launch->stop_from.load() != ~0u) {
      has_faulted_ = true;
      return;
    }
    launch_ = core.launch;
    LeakCheckState& state = state_of(core);
    for (const auto& [tensor, held] : state.tensors) report_tensor(core, state, held);
    for (const auto& [key, raised] : state.flags) {
      if (!raised.is_queues) report_flag(core, state, key, raised);
    }
    for (const auto& [key, held] : state.events) {
      if (!held.is_queues) report_event(core, state, key, held);
    }
  }

  void launch_end() override {
    if (!has_faulted_ && launch_ != nullptr) report_core_flags();
    launch_ = nullptr;
    last_sets_.clear();
    if (has_faulted_) drop_states();
    CoreDetector::launch_end();
  }

 private:
  static void report_duplicate(const Core& core, LeakCheckState& state, const Instr& instr, const EventKey& key,
                               const RaisedFlag& earlier) {
    bool is_new = false;
    const AccessSite before = place(earlier.set, Op::SetFlag, instr.pipe);
    Finding& finding = state.findings.at("SYNC-DUPLICATE", core, site_of(instr), before, is_new);
    if (!is_new) return;
    finding.message =
        "SetFlag signals event " + event_text(key) + " again before it was waited for: one signal is lost";
    finding.help =
        "use another event id, or call WaitFlag between " + place_text(before) + " and " + place_text(site_of(instr));
  }

  static void report_shared_id(const Core& core, LeakCheckState& state, const Instr& instr, const EventKey& key,
                               const RaisedFlag& earlier) {
    bool is_new = false;
    const AccessSite before = place(earlier.set, Op::SetFlag, instr.pipe);
    Finding& finding = state.findings.at("SYNC-EVENT-ID", core, site_of(instr), before, is_new);
    if (!is_new) return;
    finding.message = "event " + event_text(key) + " is signalled by " +
                      (earlier.is_queues ? "the kernel" : "a queue") + " while the signal of " +
                      (earlier.is_queues ? "a queue" : "the kernel") +
                      " on the same id is not yet waited for: each may end the other's wait";
    finding.help = "take the id from AllocEventID or FetchEventID, which know what the queues use";
  }

  static void report_tensor(const Core& core, LeakCheckState& state, const HeldTensor& held) {
    bool is_new = false;
    Finding& finding = state.findings.at("LEAK-TENSOR", core, place(held.allocated, Op::kCount), {}, is_new);
    if (!is_new) return ++finding.count, void();
    finding.space = space_name(held.space);
    finding.message = "a tensor of " + std::to_string(held.bytes) + " bytes in " + finding.space + " is " +
                      (held.is_queued ? "still in its queue" : "never given back") + " when the block ends";
    finding.help = held.is_queued ? "DeQue it and call FreeTensor" : "call FreeTensor on it when it is no longer used";
  }

  static void report_flag(const Core& core, LeakCheckState& state, const EventKey& key, const RaisedFlag& raised) {
    bool is_new = false;
    const Pipe first = std::get<0>(key);
    Finding& finding = state.findings.at("SYNC-UNPAIRED", core, place(raised.set, Op::SetFlag, first), {}, is_new);
    if (!is_new) return ++finding.count, void();
    finding.message = "event " + event_text(key) + " is signalled and nothing has waited for it when the block ends";
    finding.help = "call WaitFlag<HardEvent::" + std::string(pipe_name(first)) + "_" + pipe_name(std::get<1>(key)) +
                   "> with this id once for each SetFlag: the next kernel on this core finds the flag set";
  }

  static void report_event(const Core& core, LeakCheckState& state, const EventKey& key, const HeldEvent& held) {
    bool is_new = false;
    Finding& finding = state.findings.at("LEAK-EVENT", core, place(held.allocated, Op::kCount), {}, is_new);
    if (!is_new) return ++finding.count, void();
    finding.message = "the event id of " + event_text(key) + " is allocated and not released when the block ends";
    finding.help = "call ReleaseEventID with it, or use FetchEventID, which takes none";
  }

  /// Flags between cores that were signalled and that nobody has waited for, once for each flag.
  void report_core_flags() {
    const LaunchState& launch = *launch_.load();
    const CrossCoreState& state = launch.cross_core;
    for (const auto& [flag, last] : last_sets_) {
      uint64_t cores = 0;
      for (uint32_t i = 0; i < launch.core_count && !state.signals.empty(); ++i) {
        cores += state.signals[size_t{i} * kCrossCoreFlags + flag] != 0;
      }
      uint64_t unanswered = 0;
      for (uint32_t i = 0; i < launch.core_count && !state.arrivals.empty(); ++i) {
        unanswered += state.arrivals[size_t{i} * kCrossCoreFlags + flag] != 0;
      }
      if (cores == 0 && unanswered == 0) continue;
      bool is_new = false;
      Finding& finding = state_of(last.core).findings.at("SYNC-CROSS-UNPAIRED", last.core, last.site, {}, is_new);
      finding.message = "flag " + std::to_string(flag) + " between cores ";
      if (cores != 0) {
        finding.message += "is still set on " + std::to_string(cores) + " cores when the kernel ends";
        finding.help = "call CrossCoreWaitFlag once for each signal: the next kernel finds the flag set";
      } else {
        finding.message +=
            "was signalled by " + std::to_string(unanswered) + " cores, and not by all that have to before it counts";
        finding.help = "let every core of the group call CrossCoreSetFlag as often as the others";
      }
    }
  }

  /// The last signal of a flag between cores; the core as it was then.
  struct LastSet {
    Core core;
    AccessSite site;
  };

  std::mutex lock_;  // of what cores share
  std::map<uint8_t, LastSet> last_sets_;
  std::atomic<const LaunchState*> launch_{nullptr};
  std::atomic<bool> has_faulted_{false};
};

}  // namespace

std::unique_ptr<Detector> make_leak_check(const CheckOptions& options) { return std::make_unique<LeakCheck>(options); }

}  // namespace opkit
