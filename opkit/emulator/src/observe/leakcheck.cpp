// What a block leaves behind: tensors that no FreeTensor gave back, event ids that were never released, flags that
// nobody waited for; and flags signalled again before the wait, because a flag is one bit. Source: Ascend C API,
// synchronisation inside a core, SetFlag; resource management, AllocTensor, AllocEventID.
#include <atomic>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "core/launch_state.h"
#include "memory/bounds.h"
#include "observe/checks.h"

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

struct CoreState {
  std::map<std::pair<const void*, uint32_t>, HeldTensor> tensors;
  std::map<EventKey, HeldEvent> events;
  std::map<EventKey, RaisedFlag> flags;
  FindingList findings;
};

std::string event_text(const EventKey& key) {
  const auto& [first, second, id] = key;
  return std::string(pipe_name(first)) + "_" + pipe_name(second) + " id " + std::to_string(id);
}

AccessSite place(Where where, Op op, Pipe pipe = Pipe::S) { return {where.file, where.line, op, pipe}; }

class LeakCheck final : public Detector {
 public:
  void launch_begin(const LaunchInfo& info) override {
    cores_.clear();
    cores_.resize(info.core_count);
    has_faulted_ = false;
  }

  void before(const Core& core, const Instr& instr) override {
    if (instr.op != Op::SetFlag && instr.op != Op::WaitFlag) return;
    CoreState& state = state_of(core);
    const EventKey key = {instr.pipe, instr.peer_pipe, instr.event_id};
    const auto raised = state.flags.find(key);
    if (instr.op == Op::WaitFlag) {
      if (raised != state.flags.end() && --raised->second.count == 0) state.flags.erase(raised);
      return;
    }
    const auto event = state.events.find(key);
    const bool is_queues = event != state.events.end() && event->second.is_queues;
    if (raised == state.flags.end()) {
      state.flags[key] = {instr.where, 1, is_queues};
      return;
    }
    ++raised->second.count;
    report_duplicate(core, state, instr, key, raised->second);
    raised->second.set = instr.where;
  }

  void resource(const Core& core, const ResourceEvent& event) override {
    CoreState& state = state_of(core);
    const std::pair<const void*, uint32_t> tensor = {event.queue, event.address};
    const EventKey key = {event.first, event.second, static_cast<uint8_t>(event.event_id)};
    switch (event.action) {
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
    CoreState& state = state_of(core);
    for (const auto& [tensor, held] : state.tensors) report_tensor(core, state, held);
    for (const auto& [key, raised] : state.flags) {
      if (!raised.is_queues) report_flag(core, state, key, raised);
    }
    for (const auto& [key, held] : state.events) {
      if (!held.is_queues) report_event(core, state, key, held);
    }
  }

  void launch_end() override {
    for (const std::unique_ptr<CoreState>& state : cores_) {
      if (state != nullptr && !has_faulted_) findings_.merge(std::move(state->findings));
    }
    cores_.clear();
  }

  std::vector<Finding> take() override { return findings_.take(); }

 private:
  CoreState& state_of(const Core& core) {
    std::unique_ptr<CoreState>& state = cores_[core.index];
    if (state == nullptr) state = std::make_unique<CoreState>();
    return *state;
  }

  static void report_duplicate(const Core& core, CoreState& state, const Instr& instr, const EventKey& key,
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

  static void report_tensor(const Core& core, CoreState& state, const HeldTensor& held) {
    bool is_new = false;
    Finding& finding = state.findings.at("LEAK-TENSOR", core, place(held.allocated, Op::kCount), {}, is_new);
    if (!is_new) return ++finding.count, void();
    finding.space = space_name(held.space);
    finding.message = "a tensor of " + std::to_string(held.bytes) + " bytes in " + finding.space + " is " +
                      (held.is_queued ? "still in its queue" : "never given back") + " when the block ends";
    finding.help = held.is_queued ? "DeQue it and call FreeTensor" : "call FreeTensor on it when it is no longer used";
  }

  static void report_flag(const Core& core, CoreState& state, const EventKey& key, const RaisedFlag& raised) {
    bool is_new = false;
    const Pipe first = std::get<0>(key);
    Finding& finding = state.findings.at("SYNC-UNPAIRED", core, place(raised.set, Op::SetFlag, first), {}, is_new);
    if (!is_new) return ++finding.count, void();
    finding.message = "event " + event_text(key) + " is signalled and nothing has waited for it when the block ends";
    finding.help = "call WaitFlag<HardEvent::" + std::string(pipe_name(first)) + "_" + pipe_name(std::get<1>(key)) +
                   "> with this id once for each SetFlag: the next kernel on this core finds the flag set";
  }

  static void report_event(const Core& core, CoreState& state, const EventKey& key, const HeldEvent& held) {
    bool is_new = false;
    Finding& finding = state.findings.at("LEAK-EVENT", core, place(held.allocated, Op::kCount), {}, is_new);
    if (!is_new) return ++finding.count, void();
    finding.message = "the event id of " + event_text(key) + " is allocated and not released when the block ends";
    finding.help = "call ReleaseEventID with it, or use FetchEventID, which takes none";
  }

  std::vector<std::unique_ptr<CoreState>> cores_;
  std::atomic<bool> has_faulted_{false};
  FindingList findings_;
};

}  // namespace

std::unique_ptr<Detector> make_leak_check() { return std::make_unique<LeakCheck>(); }

}  // namespace opkit
