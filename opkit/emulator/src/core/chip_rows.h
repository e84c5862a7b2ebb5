/// The chips of chips/*.json as compiled-in rows; the table is written at build time by cmake/embed_chips.py.
#pragma once

namespace opkit {

/// One number by its dotted key, such as `memory.ub_bytes`; rows are sorted by key.
struct ChipNumber {
  const char* key;
  double value;
};

/// One chip. `aliases` ends with a null pointer.
struct ChipRow {
  const char* name;
  const char* const* aliases;
  const char* npu_arch;
  const char* soc_config;
  const ChipNumber* numbers;
  unsigned number_count;
};

/// The default chip is row 0.
extern const ChipRow kChipRows[];
extern const unsigned kChipRowCount;

}  // namespace opkit
