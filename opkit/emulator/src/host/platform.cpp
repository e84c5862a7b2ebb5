// The chips as host functions see them.
#include <cstdlib>
#include <map>
#include <mutex>

#include "core/launch.h"
#include "opkit/host/abi.h"
#include "opkit/host/workspace.h"
#include "platform/platform_infos_def.h"
#include "tiling/platform/platform_ascendc.h"

namespace opkit::host {
namespace {

uint32_t whole(const Chip& chip, const char* key) {
  return chip.has_number(key) ? static_cast<uint32_t>(chip.number(key)) : 0;
}

fe::PlatFormInfos describe(const Chip& chip) {
  using platform_ascendc::CoreMemType;
  fe::PlatFormInfos info = {};
  info.soc_name = chip.name.c_str();
  info.soc_config = chip.soc_config.c_str();
  info.npu_arch = static_cast<uint32_t>(std::strtoul(chip.npu_arch.c_str() + chip.npu_arch.find('-') + 1, nullptr, 10));
  // On coupled chips both counts are those of the AI cores. Source: GetCoreNumAic, GetCoreNumAiv.
  const bool is_coupled = whole(chip, "cores.coupled") != 0;
  info.aic_count = chip.aic_count;
  info.aiv_count = is_coupled ? chip.aic_count : chip.aiv_count;
  info.vector_core_count = whole(chip, "cores.vector");
  info.lib_api_workspace_bytes = kLibApiWorkspaceBytes;
  const auto set = [&info](CoreMemType memory, uint64_t bytes) {
    info.memory_bytes[static_cast<uint32_t>(memory)] = bytes;
  };
  const auto space = [&chip](Space which) { return chip.space_bytes[static_cast<uint32_t>(which)]; };
  set(CoreMemType::L0_A, space(Space::L0A));
  set(CoreMemType::L0_B, space(Space::L0B));
  set(CoreMemType::L0_C, space(Space::L0C));
  set(CoreMemType::L1, space(Space::L1));
  set(CoreMemType::UB, space(Space::UB));
  set(CoreMemType::FB, space(Space::FB));
  set(CoreMemType::BT, space(Space::BT));
  set(CoreMemType::L2, chip.has_number("memory.l2_bytes") ? static_cast<uint64_t>(chip.number("memory.l2_bytes")) : 0);
  return info;
}

}  // namespace
}  // namespace opkit::host

fe::PlatFormInfos* opkit_platform(const char* soc_name) {
  static std::mutex lock;
  static std::map<const opkit::Chip*, fe::PlatFormInfos> infos;
  try {
    const opkit::Chip* chip = soc_name == nullptr ? &opkit::Device::get().chip() : opkit::find_chip(soc_name);
    if (chip == nullptr) return nullptr;
    const std::lock_guard<std::mutex> guard(lock);
    return &infos.try_emplace(chip, opkit::host::describe(*chip)).first->second;
  } catch (...) {
    return nullptr;  // callers are C: a chip that cannot be described is a chip that is not known
  }
}
