#include "core/chip.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <stdexcept>

#include "core/chip_rows.h"
#include "opkit/types.h"

namespace opkit {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

/// embed_chips.py writes the numbers sorted by key.
const ChipNumber* find_number(const ChipRow& row, std::string_view key) {
  const ChipNumber* end = row.numbers + row.number_count;
  const ChipNumber* found = std::lower_bound(
      row.numbers, end, key, [](const ChipNumber& number, std::string_view wanted) { return number.key < wanted; });
  return found != end && found->key == key ? found : nullptr;
}

Chip read_chip(const ChipRow& row) {
  Chip chip;
  chip.name = row.name;
  chip.npu_arch = row.npu_arch;
  chip.arch = arch_index(
      static_cast<uint32_t>(std::strtoul(row.npu_arch + std::string_view(row.npu_arch).find('-') + 1, nullptr, 10)));
  if (chip.arch == kArchCount) throw std::out_of_range("chip " + chip.name + ": no tables for " + chip.npu_arch);
  chip.soc_config = row.soc_config;
  chip.row = &row;
  const auto bytes = [&chip](Space space, const char* key) {
    chip.space_bytes[static_cast<uint32_t>(space)] = static_cast<uint32_t>(chip.number(key));
  };
  bytes(Space::UB, "memory.ub_bytes");
  bytes(Space::L1, "memory.l1_bytes");
  bytes(Space::L0A, "memory.l0a_bytes");
  bytes(Space::L0B, "memory.l0b_bytes");
  bytes(Space::L0C, "memory.l0c_bytes");
  bytes(Space::BT, "memory.bt_bytes");
  bytes(Space::FB, "memory.fb_bytes");
  chip.aic_count = static_cast<uint32_t>(chip.number("cores.aic"));
  chip.aiv_count = static_cast<uint32_t>(chip.number("cores.aiv"));
  chip.clock_mhz = chip.number("clock.mhz");
  return chip;
}

}  // namespace

bool Chip::has_number(std::string_view key) const { return find_number(*row, key) != nullptr; }

double Chip::number(std::string_view key) const {
  const ChipNumber* found = find_number(*row, key);
  if (found == nullptr) throw std::out_of_range("chip " + name + " has no number " + std::string(key));
  return found->value;
}

const std::vector<Chip>& all_chips() {
  static const std::vector<Chip> chips = [] {
    std::vector<Chip> result;
    for (unsigned i = 0; i < kChipRowCount; ++i) result.push_back(read_chip(kChipRows[i]));
    return result;
  }();
  return chips;
}

const Chip* find_chip(std::string_view name) {
  const std::string wanted = lower(name);
  for (const Chip& chip : all_chips()) {
    if (lower(chip.name) == wanted) return &chip;
    for (const char* const* alias = chip.row->aliases; *alias != nullptr; ++alias) {
      if (lower(*alias) == wanted) return &chip;
    }
  }
  return nullptr;
}

}  // namespace opkit
