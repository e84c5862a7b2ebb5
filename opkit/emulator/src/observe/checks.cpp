#include "observe/checks.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "core/launch.h"
#include "observe/witness.h"

namespace opkit {
namespace {

/// Passes everything on to the detectors and gathers their findings when a launch ends.
class CheckObserver final : public Observer {
 public:
  explicit CheckObserver(const CheckOptions& options) : options_(options) {
    if (options.race) detectors_.push_back(make_race_check(options));
    if (options.cross || options.cache) detectors_.push_back(make_cross_check(options));
    if (options.init) detectors_.push_back(make_init_check(options));
    if (options.free) detectors_.push_back(make_free_check(options));
    if (options.overlap) detectors_.push_back(make_overlap_check(options));
    if (options.padding) detectors_.push_back(make_padding_check(options));
    if (options.place) detectors_.push_back(make_place_check(options));
    if (options.scratch) detectors_.push_back(make_scratch_check(options));
    if (options.raw) detectors_.push_back(make_raw_check(options));
    if (options.note) detectors_.push_back(make_note_check(options));
    if (options.leak) detectors_.push_back(make_leak_check(options));
  }

  const CheckOptions& options() const { return options_; }

  void launch_begin(const LaunchInfo& info) override {
    kernel_ = info.kernel;
    fault_ = {};
    races_.clear();
    if (options_.witness) witnesses_.launch_begin(info);
    for (const auto& detector : detectors_) detector->launch_begin(info);
  }
  void before(const Core& core, const Instr& instr) override {
    for (const auto& detector : detectors_) detector->before(core, instr);
  }
  void after(const Core& core, const Instr& instr) override {
    for (const auto& detector : detectors_) detector->after(core, instr);
  }
  void resource(const Core& core, const ResourceEvent& event) override {
    for (const auto& detector : detectors_) detector->resource(core, event);
  }
  void block_end(const Core& core) override {
    for (const auto& detector : detectors_) detector->block_end(core);
  }
  void launch_fault(const FaultReport& report) override {
    Finding finding;
    finding.fault = fault_name(report.fault);
    finding.message = report.message;
    finding.help = report.help;
    finding.kernel = report.kernel;
    finding.site = {report.file, report.line, "", report.pipe, "", 0};
    finding.block = finding.other_block = report.block;
    finding.is_cube = std::string_view(report.sub_core) == "aic";
    finding.instruction = report.instruction;
    finding.count = 1;
    fault_ = finding;
    add(std::move(finding));
  }
  bool ends_at_division_by_zero() const override { return true; }
  void launch_end() override {
    for (const auto& detector : detectors_) {
      detector->launch_end();
      for (Finding& finding : detector->take()) {
        finding.kernel = kernel_;
        if (is_part_of_fault(finding)) continue;
        const bool is_race = finding.id.rfind("RACE-", 0) == 0;
        Finding* added = add(std::move(finding));
        if (added != nullptr && is_race) races_.push_back(added);
      }
    }
  }
  void launch_again(const Rerun& rerun) override {
    if (options_.witness && !races_.empty()) witnesses_.show(races_, options_.has_auto_sync, rerun);
  }

  Finding* add(Finding finding) {
    const std::lock_guard<std::mutex> guard(lock_);
    return findings_.add(std::move(finding));
  }
  std::vector<Finding> take() {
    const std::lock_guard<std::mutex> guard(lock_);
    return findings_.take();
  }

 private:
  /// What detectors have seen of the instruction that faulted says nothing more.
  bool is_part_of_fault(const Finding& finding) const {
    return !fault_.fault.empty() && finding.block == fault_.block && finding.is_cube == fault_.is_cube &&
           finding.instruction == fault_.instruction && finding.site.line == fault_.site.line;
  }

  std::vector<std::unique_ptr<Detector>> detectors_;
  CheckOptions options_;
  std::string kernel_;
  std::mutex lock_;  // of the findings: host code adds its own
  FindingGroups findings_;
  Finding fault_;  // that ended the launch at hand; its `fault` is empty where none has
  Witnesses witnesses_;
  std::vector<Finding*> races_;  // of the launch at hand, new ones
};

std::mutex session_lock;
/// Checks that run, the innermost last: each sees every launch, so that a check inside another takes nothing from it.
std::vector<std::unique_ptr<CheckObserver>> sessions;
// Of each of them.
std::vector<uint64_t> keys;
CheckOptions watched;  // what any of them looks at

CheckOptions united() {
  CheckOptions all;
  for (const auto& session : sessions) {
    const CheckOptions& options = session->options();
    all.race |= options.race;
    all.cross |= options.cross;
    all.cache |= options.cache;
    all.init |= options.init;
    all.free |= options.free;
    all.overlap |= options.overlap;
    all.place |= options.place;
    all.padding |= options.padding;
    all.scratch |= options.scratch;
    all.raw |= options.raw;
    all.note |= options.note;
    all.memory |= options.memory;
    all.leak |= options.leak;
    all.unused |= options.unused;
  }
  return all;
}

bool* find_detector(CheckOptions& options, std::string_view name) {
  if (name == "race") return &options.race;
  if (name == "cross") return &options.cross;
  if (name == "cache") return &options.cache;
  if (name == "init") return &options.init;
  if (name == "leak") return &options.leak;
  if (name == "overlap") return &options.overlap;
  if (name == "free") return &options.free;
  if (name == "place") return &options.place;
  if (name == "padding") return &options.padding;
  if (name == "scratch") return &options.scratch;
  if (name == "raw") return &options.raw;
  if (name == "note") return &options.note;
  if (name == "memory") return &options.memory;
  return nullptr;
}

}  // namespace

std::string choose_detectors(CheckOptions& options, std::string_view names) {
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    bool* detector = find_detector(options, name);
    if (detector == nullptr) return std::string(name);
    *detector = true;
  }
  return "";
}

void begin_checks(const CheckOptions& options, uint64_t key) {
  const std::lock_guard<std::mutex> guard(session_lock);
  sessions.push_back(std::make_unique<CheckObserver>(options));
  keys.push_back(key);
  Device::get().attach(sessions.back().get());
  watched = united();
}

const CheckOptions* running_checks() {
  const std::lock_guard<std::mutex> guard(session_lock);
  return sessions.empty() ? nullptr : &watched;
}

void add_finding(Finding finding) {
  const std::lock_guard<std::mutex> guard(session_lock);
  for (const auto& session : sessions) session->add(finding);
}

std::vector<Finding> end_checks(uint64_t key) {
  const std::lock_guard<std::mutex> guard(session_lock);
  const auto found = std::find(keys.rbegin(), keys.rend(), key);
  if (found == keys.rend()) {
    if (key != 0) throw std::logic_error("no check of this key runs");
    return {};
  }
  const auto place = std::distance(keys.begin(), found.base()) - 1;
  const std::unique_ptr<CheckObserver> session = std::move(sessions[static_cast<size_t>(place)]);
  sessions.erase(sessions.begin() + place);
  keys.erase(keys.begin() + place);
  watched = united();
  Device::get().detach(session.get());
  return session->take();
}

}  // namespace opkit
