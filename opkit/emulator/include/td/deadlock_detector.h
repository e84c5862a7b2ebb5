/// Finds streams that wait for each other in a circle, when the last edge of the circle is made.
///
/// What stands in a stream runs in order; a wait runs after the recording that it is for: the last one before it, or,
/// where the event has not been recorded yet, the next one. A circle of those two never ends on a device that waits for
/// recordings to come. The acl runtime and torch let a wait for an event without a recording pass: there the circle
/// does not hang, but the wait protects nothing.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "opkit/stream_order.h"

namespace td {

/// A place in a program; `file` empty: unknown. With `offset`, `file` is a loaded file and the line not looked up yet.
struct Place {
  std::string file;
  uint32_t line = 0;
  uint64_t offset = 0;
  std::string text() const { return file.empty() ? "" : file + (line == 0 ? "" : ":" + std::to_string(line)); }
};

class DeadlockDetector {
 public:
  /// One wait of a circle: what follows in `stream` waits at `wait` for what `next stream` does at `record`.
  struct Link {
    uint64_t stream = 0;
    std::string stream_name, event_name;
    Place wait, record;
  };
  using Cycle = std::vector<Link>;

  /// The article's form, for programs that know their streams' tasks: `tasks` in the order in which they were issued.
  enum class Action { Record, Wait };
  struct Task {
    Action action;
    std::string stream, event;
    Place place;
  };
  static std::vector<Cycle> check_deadlock(const std::vector<Task>& tasks, std::ostream& out = std::cerr) {
    DeadlockDetector detector;
    detector.on_cycle([&](const Cycle& cycle) { out << report(cycle); });
    std::map<std::string, uint64_t> numbers;
    const auto number = [&](const std::string& name) {
      return numbers.emplace(name, numbers.size() + 1).first->second;
    };
    for (const Task& task : tasks) {
      const uint64_t stream = number("stream " + task.stream);
      const uint64_t event = number("event " + task.event);
      detector.name_stream(stream, task.stream);
      detector.name_event(event, task.event);
      task.action == Action::Record ? detector.record(stream, event, task.place)
                                    : detector.wait(stream, event, task.place);
    }
    return detector.cycles();
  }

  DeadlockDetector() = default;
  DeadlockDetector(const DeadlockDetector&) = delete;
  DeadlockDetector& operator=(const DeadlockDetector&) = delete;
  ~DeadlockDetector() { stop(); }

  /// Watches every stream of this process from now on, of the acl runtime and of torch's device.
  void watch() {
    if (is_watching_) return;
    if (opkit_watch_streams(&DeadlockDetector::told, this) != 0) {
      throw std::runtime_error("[DeadlockDetector] 16 watch already; stop one first");
    }
    is_watching_ = true;
  }
  void stop() {
    if (is_watching_) opkit_unwatch_streams(&DeadlockDetector::told, this);
    is_watching_ = false;
  }

  /// What is called with each circle, inside the call that closes it. Without one the report goes to stderr.
  void on_cycle(std::function<void(const Cycle&)> handler) { handler_ = std::move(handler); }
  /// What says where a call of a runtime stands in the program, where return addresses do not: in interpreters.
  void locate_by(std::function<Place(const opkit_stream_note&)> locate) { locate_ = std::move(locate); }
  void name_stream(uint64_t stream, std::string name) { stream_names_[stream] = std::move(name); }
  void name_event(uint64_t event, std::string name) { event_names_[event] = std::move(name); }

  void record(uint64_t stream, uint64_t event, Place place = {}) {
    add(stream, event, Action::Record, std::move(place));
  }
  void wait(uint64_t stream, uint64_t event, Place place = {}) { add(stream, event, Action::Wait, std::move(place)); }
  /// The event was destroyed or reset: nobody waits for its next recording any more.
  void end_event(uint64_t event) {
    const std::lock_guard<std::mutex> guard(lock_);
    last_record_.erase(event);
    pending_.erase(event);
    forget_what_cannot_close();
  }
  void end_stream(uint64_t stream) {
    const std::lock_guard<std::mutex> guard(lock_);
    streams_.erase(stream);
  }

  std::vector<Cycle> cycles() const {
    const std::lock_guard<std::mutex> guard(lock_);
    return cycles_;
  }
  /// Waits whose event nobody has recorded yet.
  std::vector<Link> unrecorded() const {
    const std::lock_guard<std::mutex> guard(lock_);
    std::vector<Link> all;
    for (const auto& [event, waits] : pending_) {
      for (const Where& wait : waits) {
        if (!exists(wait)) continue;
        const Place place = resolved(streams_.at(wait.first)[wait.second].place);
        all.push_back({wait.first, stream_name(wait.first), event_name(event), place, {}});
      }
    }
    return all;
  }

  /// A circle and the article's advice for one of its length, as text.
  static std::string report(const Cycle& cycle) {
    std::string text = "deadlock risk: ";
    for (const Link& link : cycle) text += link.stream_name + " -> ";
    text += cycle.front().stream_name + "\n";
    for (size_t i = 0; i < cycle.size(); ++i) {
      const Link& link = cycle[i];
      const std::string& other = cycle[(i + 1) % cycle.size()].stream_name;
      text += "  " + link.stream_name + " waits for " + link.event_name + at(link.wait) + ", which " + other +
              " records" + at(link.record) + "\n";
    }
    if (cycle.size() == 1) {
      text += "  advice: record " + cycle[0].event_name + " before " + cycle[0].stream_name + " waits for it\n";
    } else if (cycle.size() == 2) {
      text += "  advice: 1. put the tasks of " + cycle[0].stream_name + " and " + cycle[1].stream_name +
              " into one stream\n          2. synchronise explicitly between the two\n";
    } else {
      text += "  advice: 1. design the dependencies anew\n          2. schedule all of it on one stream\n";
    }
    return text;
  }

 private:
  struct Step {
    Action action;
    uint64_t event;
    Place place;
    bool is_bound = false;  ///< a wait whose recording is known
    std::pair<uint64_t, size_t> record{};
  };
  using Where = std::pair<uint64_t, size_t>;  ///< stream, index in it

  static std::string at(const Place& place) { return place.file.empty() ? "" : " at " + place.text(); }

  std::string stream_name(uint64_t stream) const {
    const auto found = stream_names_.find(stream);
    return found != stream_names_.end() ? found->second : numbered("stream ", stream_numbers_, stream);
  }
  std::string event_name(uint64_t event) const {
    const auto found = event_names_.find(event);
    return found != event_names_.end() ? found->second : numbered("event ", event_numbers_, event);
  }
  static std::string numbered(const char* what, std::map<uint64_t, size_t>& numbers, uint64_t handle) {
    return what + std::to_string(numbers.emplace(handle, numbers.size() + 1).first->second);
  }

  void add(uint64_t stream, uint64_t event, Action action, Place place) {
    std::vector<Cycle> found;
    {
      const std::lock_guard<std::mutex> guard(lock_);
      stream_name(stream), event_name(event);  // numbers in the order of their first use
      std::vector<Step>& steps = streams_[stream];
      steps.push_back({action, event, std::move(place), false, {}});
      const Where here{stream, steps.size() - 1};
      if (action == Action::Wait) {
        const auto recorded = last_record_.find(event);
        if (recorded == last_record_.end()) {
          pending_[event].push_back(here);
        } else if (exists(recorded->second)) {
          bind(here, recorded->second);  // an older recording: no circle can close here
        }
      } else {
        last_record_[event] = here;
        const auto waiting = pending_.find(event);
        if (waiting != pending_.end()) {
          const std::vector<Where> waits = std::move(waiting->second);
          pending_.erase(waiting);
          for (const Where& wait : waits) {
            if (!exists(wait)) continue;
            bind(wait, here);
            std::vector<Where> path;
            std::map<uint64_t, size_t> seen;
            if (leads_to(here, wait, path, seen)) found.push_back(described(wait, path));
          }
        }
      }
      cycles_.insert(cycles_.end(), found.begin(), found.end());
      forget_what_cannot_close();
    }
    for (const Cycle& cycle : found) {
      if (handler_) {
        handler_(cycle);
      } else {
        std::cerr << report(cycle);
      }
    }
  }

  bool exists(const Where& where) const {
    const auto found = streams_.find(where.first);
    return found != streams_.end() && where.second < found->second.size();
  }
  void bind(const Where& wait, const Where& record) {
    Step& step = streams_[wait.first][wait.second];
    step.is_bound = true;
    step.record = record;
  }

  /// Whether what stands at `from` runs after `target`: by what stands before it in its stream, and what those wait
  /// for. `seen`: up to where each stream has been looked through.
  bool leads_to(const Where& from, const Where& target, std::vector<Where>& path,
                std::map<uint64_t, size_t>& seen) const {
    if (from.first == target.first && target.second <= from.second) return true;
    const std::vector<Step>& steps = streams_.at(from.first);
    size_t& done = seen.emplace(from.first, 0).first->second;
    const size_t begin = done;
    if (from.second + 1 <= begin) return false;
    done = from.second + 1;
    for (size_t i = from.second + 1; i-- > begin;) {
      if (!steps[i].is_bound || !exists(steps[i].record)) continue;
      path.push_back({from.first, i});
      if (leads_to(steps[i].record, target, path, seen)) return true;
      path.pop_back();
    }
    return false;
  }

  Cycle described(const Where& first, const std::vector<Where>& path) const {
    Cycle cycle;
    const auto add_link = [&](const Where& wait) {
      const Step& step = streams_.at(wait.first)[wait.second];
      const Step& record = streams_.at(step.record.first)[step.record.second];
      cycle.push_back(
          {wait.first, stream_name(wait.first), event_name(step.event), resolved(step.place), resolved(record.place)});
    };
    add_link(first);
    for (const Where& wait : path) add_link(wait);
    return cycle;
  }

  /// A circle has a wait that came before its recording. While there is none, what was noted can be in no circle.
  void forget_what_cannot_close() {
    if (!pending_.empty()) return;
    for (auto& [stream, steps] : streams_) steps.clear();
    // That an event was recorded stays known; where, nobody asks any more.
    for (auto& [event, where] : last_record_) where = {0, SIZE_MAX};
  }

  static void told(void* self, const opkit_stream_note* note) {
    auto& detector = *static_cast<DeadlockDetector*>(self);
    Place place;
    if (detector.locate_) place = detector.locate_(*note);
    if (place.file.empty() && note->caller != nullptr) place.file = opkit_place_of_call(note->caller, &place.offset);
    switch (note->action) {
      case OPKIT_STREAM_RECORDS: detector.record(note->stream, note->event, place); break;
      case OPKIT_STREAM_WAITS: detector.wait(note->stream, note->event, place); break;
      case OPKIT_STREAM_ENDED: detector.end_stream(note->stream); break;
      case OPKIT_EVENT_ENDED: detector.end_event(note->event); break;
      default: break;
    }
  }

  /// The source line of an address in a loaded file, by its debug information; the address where there is none.
  static Place resolved(const Place& given) {
    if (given.offset == 0) return given;
    const std::string& module = given.file;
    const uint64_t offset = given.offset;
    char address[32];
    std::snprintf(address, sizeof(address), "0x%llx", static_cast<unsigned long long>(offset));
    Place place{module + "+" + address, 0, 0};
    if (module.find('\'') != std::string::npos) return place;
    const std::string command = "addr2line -e '" + module + "' " + address + " 2>/dev/null";
    if (FILE* output = popen(command.c_str(), "r")) {
      char line[4096] = "";
      if (std::fgets(line, sizeof(line), output) != nullptr && line[0] != '?') {
        const std::string text(line);
        const size_t colon = text.rfind(':');
        const long number = colon == std::string::npos ? 0 : std::strtol(text.c_str() + colon + 1, nullptr, 10);
        if (number > 0) place = {text.substr(0, colon), static_cast<uint32_t>(number), 0};
      }
      pclose(output);
    }
    return place;
  }

  mutable std::mutex lock_;
  bool is_watching_ = false;
  std::map<uint64_t, std::vector<Step>> streams_;
  std::map<uint64_t, Where> last_record_;
  std::map<uint64_t, std::vector<Where>> pending_;
  std::map<uint64_t, std::string> stream_names_, event_names_;
  mutable std::map<uint64_t, size_t> stream_numbers_, event_numbers_;
  std::vector<Cycle> cycles_;
  std::function<void(const Cycle&)> handler_;
  std::function<Place(const opkit_stream_note&)> locate_;
};

}  // namespace td
