// Who is told of streams' order, and where shipped kernels lie.
#include "opkit/stream_order.h"

#include <dlfcn.h>

#include <atomic>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "acl/caller.h"

namespace {

constexpr size_t kMostWatchers = 16;
std::atomic<size_t> watcher_count{0};
std::mutex watchers_lock;

std::vector<std::pair<opkit_stream_watcher, void*>>& watchers() {
  static auto* all = new std::vector<std::pair<opkit_stream_watcher, void*>>();
  return *all;
}

}  // namespace

int32_t opkit_watch_streams(opkit_stream_watcher watcher, void* self) {
  const std::lock_guard<std::mutex> guard(watchers_lock);
  if (watcher == nullptr || watchers().size() >= kMostWatchers) return -1;
  watchers().emplace_back(watcher, self);
  watcher_count.store(watchers().size());
  return 0;
}

void opkit_unwatch_streams(opkit_stream_watcher watcher, void* self) {
  const std::lock_guard<std::mutex> guard(watchers_lock);
  auto& all = watchers();
  for (auto row = all.begin(); row != all.end(); ++row) {
    if (*row != std::make_pair(watcher, self)) continue;
    all.erase(row);
    break;
  }
  watcher_count.store(all.size());
}

void opkit_tell_streams(const opkit_stream_note* note) {
  if (watcher_count.load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard<std::mutex> guard(watchers_lock);
  for (const auto& [watcher, self] : watchers()) watcher(self, note);
}

const char* opkit_place_of_call(const void* caller, uint64_t* offset) {
  static thread_local std::string text;
  const opkit::Site site = opkit::acl::site_of_call(caller, "");
  text = site.module;
  if (offset != nullptr) *offset = site.offset;
  return text.c_str();
}

const char* opkit_shipped_kernels(void) {
  static const std::string path = [] {
    Dl_info info{};
    dladdr(reinterpret_cast<void*>(&opkit_shipped_kernels), &info);
    const std::string own = info.dli_fname == nullptr ? "" : info.dli_fname;
    return own.substr(0, own.rfind('/') + 1) + "libopkit_kernels.so";
  }();
  return path.c_str();
}
