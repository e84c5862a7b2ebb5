#include "core/log.h"

#include <atomic>

namespace opkit {
namespace {

std::atomic<opkit_log_sink> log_sink{nullptr};
std::atomic<int32_t> log_level{OPKIT_LOG_NONE};
std::atomic<int64_t (*)[OPKIT_PUBLISHED_FIGURES]> published{nullptr};

// Another process reads them while they change.
void add(int64_t& figure, int64_t by) { __atomic_fetch_add(&figure, by, __ATOMIC_RELAXED); }

}  // namespace

void publish_memory(int32_t device, int64_t held, int64_t reserved) {
  int64_t (*figures)[OPKIT_PUBLISHED_FIGURES] = published.load(std::memory_order_acquire);
  if (figures == nullptr || device < 0 || device >= OPKIT_PUBLISHED_DEVICES) return;
  add(figures[device][0], held);
  add(figures[device][1], reserved);
}

}  // namespace opkit

void opkit_set_log(opkit_log_sink sink, int32_t lowest_level) {
  // The first stays: a library that is loaded later brings its own, and may be unloaded before the next record.
  if (sink != nullptr && opkit::log_sink.load() != nullptr) return;
  opkit::log_level.store(sink == nullptr ? static_cast<int32_t>(OPKIT_LOG_NONE) : lowest_level);
  opkit::log_sink.store(sink);
}

int32_t opkit_logs(int32_t level) {
  return level < OPKIT_LOG_NONE && level >= opkit::log_level.load(std::memory_order_relaxed) ? 1 : 0;
}

void opkit_write_log(int32_t level, const char* component, const char* where, const char* message) {
  if (opkit_logs(level) == 0) return;
  if (const opkit_log_sink sink = opkit::log_sink.load()) {
    sink(level, component, where == nullptr ? "" : where, message == nullptr ? "" : message);
  }
}

void opkit_memory_publish(int64_t (*figures)[OPKIT_PUBLISHED_FIGURES]) { opkit::published.store(figures); }
