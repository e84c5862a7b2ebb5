/// Runs a kernel's arithmetic a second time beside it, in single or double precision, and measures it by that.
///
/// An observer: results stay what they are. Decisions are the run's own: masks, comparisons, integers and roundings to
/// whole numbers follow what was computed. One host thread at a time.
#pragma once

#include <string>
#include <vector>

#include "observe/wide_memory.h"

namespace opkit {

struct WideOptions {
  bool is_double = true;     ///< else every result is rounded to single precision
  int32_t traced_core = -1;  ///< whose instructions are kept, element by element; none: -1
};

/// One instruction's result for one element.
struct WideNode {
  uint64_t instruction = 0;  ///< number on its core
  Op op = Op::kCount;
  std::string file;
  uint32_t line = 0;
  double actual = 0;
  double wide = 0;
  uint64_t gm_address = 0;  ///< of what a copy read from global memory; 0: not one
  double scalar = 0;
  bool has_scalar = false;
  uint32_t sources[3] = {0, 0, 0};  ///< 1 + their places; 0: not traced
  double source_actual[3] = {0, 0, 0};
  uint8_t source_count = 0;
};

/// Instructions whose float results count as exact, because nothing here knows their wider form.
struct Unfollowed {
  Op op = Op::kCount;
  std::string file;
  uint32_t line = 0;
  uint64_t count = 0;
};

OPKIT_API void begin_wide(const WideOptions& options);
OPKIT_API void end_wide();

/// The wider value of an element of global memory after the launch; null where none is known.
OPKIT_API const WideCell* wide_cell(uint64_t address, uint32_t bytes);
/// An element's node and all that led to it, in program order.
OPKIT_API std::vector<std::pair<uint32_t, WideNode>> wide_trace(uint64_t address, uint32_t bytes);
OPKIT_API std::vector<Unfollowed> wide_unfollowed();
/// Whether the trace ran out of room, so that some elements have none.
OPKIT_API bool wide_trace_is_cut();

}  // namespace opkit
