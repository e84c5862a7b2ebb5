// Which target's lanes run on this host.
#include <atomic>
#include <cstring>

#include "isa/lanes/lanes.h"

namespace opkit::lanes {

#define OPKIT_TARGET(name)       \
  namespace name {               \
  const LaneTable& lane_table(); \
  }
#if defined(OPKIT_LANES_X86)
OPKIT_TARGET(avx512)
OPKIT_TARGET(avx2)
#endif
OPKIT_TARGET(baseline)
#undef OPKIT_TARGET

namespace {

constexpr size_t kMaxTargets = 3;

struct Targets {
  const LaneTable* tables[kMaxTargets + 1] = {};
  const char* names[kMaxTargets + 1] = {};
  size_t count = 0;

  void add(const LaneTable& table) {
    tables[count] = &table;
    names[count] = table.target;
    ++count;
  }
};

const Targets& targets() {
  static const Targets found = [] {
    Targets result;
#if defined(OPKIT_LANES_X86)
    __builtin_cpu_init();
    const bool has_avx2 =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c") && __builtin_cpu_supports("fma");
    if (has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
      result.add(avx512::lane_table());
    }
    if (has_avx2) result.add(avx2::lane_table());
#endif
    result.add(baseline::lane_table());
    return result;
  }();
  return found;
}

std::atomic<const LaneTable*> chosen{nullptr};

}  // namespace

const LaneTable& table() {
  const LaneTable* current = chosen.load(std::memory_order_relaxed);
  if (__builtin_expect(current != nullptr, 1)) return *current;
  set_lane_target("auto");
  return *chosen.load(std::memory_order_relaxed);
}

bool has_byte_dots() {
#if defined(OPKIT_LANES_X86)
  static const bool has = __builtin_cpu_supports("avx512vnni");
  return has;
#else
  return false;
#endif
}

bool has_bfloat16_dots() {
#if defined(OPKIT_LANES_X86)
  static const bool has = __builtin_cpu_supports("avx512bf16") && avx512::lane_table().rounds_after_each_product();
  return has;
#else
  return false;
#endif
}

bool set_lane_target(const char* name) {
  const Targets& available = targets();
  for (size_t i = 0; i < available.count; ++i) {
    if (std::strcmp(name, "auto") != 0 && std::strcmp(name, available.names[i]) != 0) continue;
    chosen.store(available.tables[i], std::memory_order_relaxed);
    return true;
  }
  return false;
}

const char* const* lane_targets() { return targets().names; }

}  // namespace opkit::lanes
