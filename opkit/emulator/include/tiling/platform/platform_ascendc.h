/// The chip's numbers for tiling functions. Source: Ascend C API, utilities, platform information.
#pragma once

#include <cstdint>
#include <cstring>

#include "log/log.h"
#include "platform/platform_infos_def.h"
#include "platform/soc_spec.h"

namespace platform_ascendc {

enum class CoreMemType { L0_A = 0, L0_B = 1, L0_C = 2, L1 = 3, L2 = 4, UB = 5, HBM = 6, FB = 7, BT = 8, RESERVED };

/// Compare by name; the numbers mean nothing.
enum class SocVersion {
  ASCEND910 = 0,
  ASCEND910B,
  ASCEND910_93,
  ASCEND310P,
  ASCEND310B,
  ASCEND950,
  ASCEND910_95,
  KIRINX90,
  KIRIN9030,
  RESERVED_VERSION
};

enum class ReservedSize { RESERVED_SIZE_8K, RESERVED_SIZE_16K, RESERVED_SIZE_32K };

class PlatformAscendC {
 public:
  PlatformAscendC() = delete;
  explicit PlatformAscendC(fe::PlatFormInfos* platform_info) : platform_(platform_info) {}

  /// Vector cores where cube and vector cores are separate, AI cores where they are not.
  uint32_t GetCoreNum() const { return platform_->aiv_count; }
  uint32_t GetCoreNumAic() const { return platform_->aic_count; }
  uint32_t GetCoreNumAiv() const { return platform_->aiv_count; }
  uint32_t GetCoreNumVector() const { return platform_->vector_core_count; }

  /// Sets `size` in bytes; 0 and an error in the log when the chip's number is not known.
  void GetCoreMemSize(const CoreMemType& memory, uint64_t& size) const {
    const uint32_t index = static_cast<uint32_t>(memory);
    size = index < fe::PlatFormInfos::kMemoryCount ? platform_->memory_bytes[index] : 0;
    if (size == 0) {
      OP_LOGE(platform_->soc_name, "GetCoreMemSize: the size of memory type %u is not known for this chip", index);
      return;
    }
    if (memory == CoreMemType::UB) size -= reserved_bytes_;
  }

  /// Sets `bandwidth` in bytes a cycle, for L2 and HBM; 0 and an error in the log for others, and for other chips.
  /// Source: GetCoreMemBw; the numbers are those of the chips' public configuration files (l2_rate, ddr_rate).
  void GetCoreMemBw(const CoreMemType& memory, uint64_t& bandwidth) const {
    struct Row {
      const char* soc_config;
      uint64_t l2;
      uint64_t hbm;
    };
    const Row rows[] = {{"ascend910b", 110, 32}, {"ascend910_93", 110, 32}, {"ascend310p", 114, 17}};
    bandwidth = 0;
    for (const Row& row : rows) {
      if (std::strcmp(row.soc_config, platform_->soc_config) != 0) continue;
      bandwidth = memory == CoreMemType::L2 ? row.l2 : memory == CoreMemType::HBM ? row.hbm : 0;
    }
    if (bandwidth != 0) return;
    OP_LOGE(platform_->soc_name, "GetCoreMemBw: the bandwidth of memory type %u is not known for this chip",
            static_cast<uint32_t>(memory));
  }

  SocVersion GetSocVersion() const {
    struct Row {
      const char* soc_config;
      SocVersion version;
    };
    // A3 answers as A2 does, so that binaries can be shared. Source: GetSocVersion, constraints.
    const Row rows[] = {{"ascend910", SocVersion::ASCEND910},     {"ascend910b", SocVersion::ASCEND910B},
                        {"ascend910_93", SocVersion::ASCEND910B}, {"ascend310p", SocVersion::ASCEND310P},
                        {"ascend310b", SocVersion::ASCEND310B},   {"ascend950", SocVersion::ASCEND950}};
    for (const Row& row : rows) {
      if (std::strcmp(row.soc_config, platform_->soc_config) == 0) return row.version;
    }
    return SocVersion::RESERVED_VERSION;
  }

  NpuArch GetCurNpuArch() const { return static_cast<NpuArch>(platform_->npu_arch); }
  uint32_t GetLibApiWorkSpaceSize() const { return platform_->lib_api_workspace_bytes; }

  /// Width of a vector register; 0 on chips whose vector instructions work on memory.
  uint32_t GetVecRegLen() const { return platform_->npu_arch == 3510 ? 256 : 0; }

  /// Keeps part of UB back: GetCoreMemSize gives what is left. The last call counts.
  void ReserveLocalMemory(ReservedSize size) {
    reserved_bytes_ = size == ReservedSize::RESERVED_SIZE_8K    ? 8 * 1024
                      : size == ReservedSize::RESERVED_SIZE_16K ? 16 * 1024
                                                                : 32 * 1024;
  }

  /// How many groups of cores to start for `slice_count` slices; pass 0 for a kind of core that is not used.
  uint32_t CalcTschNumBlocks(uint32_t slice_count, uint32_t aic_count, uint32_t aiv_count) const {
    if (aic_count == 0 || aiv_count == 0 || aic_count >= aiv_count) return slice_count;
    const uint32_t vector_cores_per_group = aiv_count / aic_count;
    return (slice_count + vector_cores_per_group - 1) / vector_cores_per_group;
  }
  uint32_t CalcTschBlockDim(uint32_t slice_count, uint32_t aic_count, uint32_t aiv_count) const {
    return CalcTschNumBlocks(slice_count, aic_count, aiv_count);
  }

 private:
  fe::PlatFormInfos* platform_;
  uint64_t reserved_bytes_ = 0;
};

class PlatformAscendCManager {
 public:
  /// The configured chip.
  static PlatformAscendC* GetInstance() { return GetInstance(nullptr); }

  /// The named chip; null when opkit does not know it.
  static PlatformAscendC* GetInstance(const char* soc_name) {
    fe::PlatFormInfos* platform = opkit_platform(soc_name);
    if (platform == nullptr) return nullptr;
    // Per thread, because the configured chip may change between two calls.
    thread_local PlatformAscendC instance(nullptr);
    instance = PlatformAscendC(platform);
    return &instance;
  }
};

}  // namespace platform_ascendc
