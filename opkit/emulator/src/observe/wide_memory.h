/// What memory would hold had every instruction computed in a wider type: a cell for each two bytes of a memory.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/launch.h"

namespace opkit {

/// The wider value of the element that starts here. It counts as long as memory still holds the bits that it had when
/// the value was noted: whatever writes without telling makes the cell void by itself.
struct WideCell {
  double wide = 0;
  uint32_t bits = 0;
  uint32_t node = 0;   ///< 1 + its place among the trace's nodes; 0: not traced
  uint32_t store = 0;  ///< GM only: how many copies to GM the core had made before
  int32_t core = -1;   ///< GM only: the core that wrote it
  uint8_t bytes = 0;   ///< of the element; 0: none starts here
};

/// Floats of the data types that kernels compute in; anything else has no wider form.
bool is_floating(DType type);
double decode(DType type, uint64_t bits);
uint64_t read_bits(const uint8_t* from, uint32_t bytes);

class WideMemory {
 public:
  /// Forgets everything; the launch's global memory is what cells of GM exist for.
  void begin(const std::vector<GmRange>& ranges);

  /// The cell of an address, made where there is none; null outside the memory.
  WideCell* cell(const Core& core, Space space, uint64_t address);
  /// A core's own memories hold nothing any more.
  void release(uint32_t core_index) { cores_.erase(core_index); }

  /// The cell of an element if it still says something of it, else null.
  const WideCell* find(const Core& core, Space space, uint64_t address, uint32_t bytes);
  const WideCell* find_gm(uint64_t address, uint32_t bytes) const;

  /// What was known of global memory from one address on is known of another, which holds the same.
  void move_gm(uint64_t from, uint64_t to, uint64_t bytes);

  void forget(const Core& core, Space space, uint64_t address, uint64_t bytes);

 private:
  struct Range {
    uint64_t begin;
    uint64_t end;
    std::vector<WideCell> cells;
  };
  struct CoreCells {
    std::vector<WideCell> spaces[8];
  };
  const Range* range_of(uint64_t address) const;

  std::vector<Range> gm_;
  std::unordered_map<uint32_t, CoreCells> cores_;
};

}  // namespace opkit
