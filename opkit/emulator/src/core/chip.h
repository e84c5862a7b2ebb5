/// A chip's numbers, read from chips/*.json at build time (see chip_rows.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "opkit/arch.h"
#include "opkit/export.h"

namespace opkit {

struct ChipRow;

struct OPKIT_API Chip {
  std::string name;
  std::string npu_arch;    ///< such as dav-2201
  size_t arch = 0;         ///< its column in the instruction tables
  std::string soc_config;  ///< the name in AddConfig, such as ascend910b
  uint32_t aic_count = 0;
  uint32_t aiv_count = 0;
  uint32_t space_bytes[8] = {};  ///< by Space; 0 for GM
  double clock_mhz = 0;
  const ChipRow* row = nullptr;

  const ArchTraits& traits() const { return kArchs[arch]; }

  /// A number by its dotted key, such as timing.vector.startup_cycles; faults Internal when the chip lacks it.
  double number(std::string_view key) const;
  bool has_number(std::string_view key) const;
};

/// The chip of that name or alias in any case; null when there is none.
OPKIT_API const Chip* find_chip(std::string_view name);
OPKIT_API const std::vector<Chip>& all_chips();

}  // namespace opkit
