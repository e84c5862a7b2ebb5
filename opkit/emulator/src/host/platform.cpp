// The chips as host functions see them.
#include <cctype>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

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

/// A chip as host functions see it, with the text that its facts point at.
struct Described {
  fe::PlatFormInfos info = {};
  std::deque<std::string> texts;  ///< a deque: its strings stay where they are
  std::vector<fe::PlatformFact> facts;

  void add(const char* label, const char* key, const std::string& value) {
    texts.push_back(value);
    facts.push_back({label, key, texts.back().c_str()});
  }
};

/// The family's name as the vendor writes it: ascend910b is Ascend910B, ascend910_93 is Ascend910_93.
std::string short_name(const std::string& soc_config) {
  std::string name = soc_config;
  name.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(name.front())));
  if (std::isalpha(static_cast<unsigned char>(name.back())) != 0) {
    name.back() = static_cast<char>(std::toupper(static_cast<unsigned char>(name.back())));
  }
  return name;
}

/// What public host code asks for by label and key. Source of the labels and keys, and of which intrinsics a chip has:
/// unit tests of public operator libraries, which describe their chips so.
void add_facts(const Chip& chip, Described& described) {
  const fe::PlatFormInfos& info = described.info;
  const bool is_coupled = whole(chip, "cores.coupled") != 0;
  const auto memory = [&info](fe::LocalMemType kind) {
    return std::to_string(info.memory_bytes[static_cast<uint32_t>(kind)]);
  };
  described.add("version", "SoC_version", chip.name);
  described.add("version", "Short_SoC_version", short_name(chip.soc_config));
  described.add("version", "NpuArch", std::to_string(info.npu_arch));
  described.add("SoCInfo", "ai_core_cnt", std::to_string(info.aic_count));
  described.add("SoCInfo", "cube_core_cnt", std::to_string(info.aic_count));
  described.add("SoCInfo", "vector_core_cnt", std::to_string(info.aiv_count));
  described.add("SoCInfo", "l2_size", memory(fe::LocalMemType::L2));
  described.add("SoCInfo", "core_type_list", is_coupled ? "AICore" : "CubeCore,VectorCore");
  described.add("SoCInfo", "cube_vector_combine", is_coupled ? "fuse" : "split");
  described.add("AICoreSpec", "cube_freq", std::to_string(static_cast<int64_t>(chip.clock_mhz)));
  described.add("AICoreSpec", "ub_size", memory(fe::LocalMemType::UB));
  described.add("AICoreSpec", "l1_size", memory(fe::LocalMemType::L1));
  described.add("AICoreSpec", "l0_a_size", memory(fe::LocalMemType::L0_A));
  described.add("AICoreSpec", "l0_b_size", memory(fe::LocalMemType::L0_B));
  described.add("AICoreSpec", "l0_c_size", memory(fe::LocalMemType::L0_C));
  described.add("AICoreSpec", "bt_size", std::to_string(chip.space_bytes[static_cast<uint32_t>(Space::BT)]));
  if (is_coupled) {
    described.add("AICoreintrinsicDtypeMap", "Intrinsic_data_move_l0c2ub", "float16,float32,int32");
    described.add("AICoreintrinsicDtypeMap", "Intrinsic_data_move_l12ub", "float16,float32,int32,int8");
  } else {
    described.add("AICoreintrinsicDtypeMap", "Intrinsic_fix_pipe_l0c2out", "float16,float32,bfloat16,int32,int8");
    described.add("AICoreintrinsicDtypeMap", "Intrinsic_data_move_l12bt", "float16,float32,int32");
    described.add("AICoreintrinsicDtypeMap", "Intrinsic_data_move_out2l1_nd2nz", "float16,float32,bfloat16,int8");
  }
}

void describe(const Chip& chip, Described& described) {
  using platform_ascendc::CoreMemType;
  fe::PlatFormInfos& info = described.info;
  info.soc_name = chip.name.c_str();
  info.soc_config = chip.soc_config.c_str();
  info.npu_arch = chip.traits().number;
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
  // What the framework keeps for itself is not the operator's to use.
  const uint64_t reserved = whole(chip, "memory.reserved_bytes");
  set(CoreMemType::L1, space(Space::L1) - reserved);
  set(CoreMemType::UB, space(Space::UB) - reserved);
  set(CoreMemType::FB, space(Space::FB));
  set(CoreMemType::BT, space(Space::BT));
  set(CoreMemType::L2, chip.has_number("memory.l2_bytes") ? static_cast<uint64_t>(chip.number("memory.l2_bytes")) : 0);
  add_facts(chip, described);
  info.facts = described.facts.data();
  info.fact_count = described.facts.size();
}

}  // namespace
}  // namespace opkit::host

fe::PlatFormInfos* opkit_platform(const char* soc_name) {
  static std::mutex lock;
  static std::map<const opkit::Chip*, opkit::host::Described> infos;
  try {
    const opkit::Chip* chip = soc_name == nullptr ? &opkit::Device::get().chip() : opkit::find_chip(soc_name);
    if (chip == nullptr) return nullptr;
    const std::lock_guard<std::mutex> guard(lock);
    const auto [place, is_new] = infos.try_emplace(chip);
    if (is_new) opkit::host::describe(*chip, place->second);
    return &place->second.info;
  } catch (...) {
    return nullptr;  // callers are C: a chip that cannot be described is a chip that is not known
  }
}
