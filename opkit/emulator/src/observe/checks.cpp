#include "observe/checks.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/launch.h"

namespace opkit {
namespace {

/// Passes everything on to the detectors and gathers their findings when a launch ends.
class CheckObserver final : public Observer {
 public:
  explicit CheckObserver(const CheckOptions& options) {
    if (options.race) detectors_.push_back(make_race_check(options.has_auto_sync));
    if (options.cross) detectors_.push_back(make_cross_check());
    if (options.init) detectors_.push_back(make_init_check());
    if (options.leak) detectors_.push_back(make_leak_check());
  }

  void launch_begin(const LaunchInfo& info) override {
    kernel_ = info.kernel;
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
  void launch_end() override {
    for (const auto& detector : detectors_) {
      detector->launch_end();
      for (Finding& finding : detector->take()) {
        finding.kernel = kernel_;
        findings_.push_back(std::move(finding));
      }
    }
  }

  std::vector<Finding> take() { return std::move(findings_); }

 private:
  std::vector<std::unique_ptr<Detector>> detectors_;
  std::string kernel_;
  std::vector<Finding> findings_;
};

std::mutex session_lock;
std::unique_ptr<CheckObserver> session;  // null between checks

}  // namespace

void begin_checks(const CheckOptions& options) {
  const std::lock_guard<std::mutex> guard(session_lock);
  if (session != nullptr) Device::get().detach(session.get());
  session = std::make_unique<CheckObserver>(options);
  Device::get().attach(session.get());
}

std::vector<Finding> end_checks() {
  const std::lock_guard<std::mutex> guard(session_lock);
  if (session == nullptr) return {};
  Device::get().detach(session.get());
  std::vector<Finding> findings = session->take();
  session.reset();
  return findings;
}

}  // namespace opkit
