/// Variables that each core has for itself: `__BLOCK_LOCAL__`, and whatever else a kernel declares `thread_local`.
/// Cores that wait share a thread here, so a thread's copy of a kernel's variables is put away with the core.
/// Source: the conventions of the public kernel library's API (api-design, attributes).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace opkit {

/// The thread-local variables of one shared object.
struct BlockLocals {
  size_t module = 0;  ///< 0: it has none
  size_t bytes = 0;
};

/// Those of the object that holds this function.
BlockLocals find_block_locals(void (*function)(void* const*));

/// Copies this thread's variables away.
void save_block_locals(const BlockLocals& locals, std::vector<uint8_t>& to);
void restore_block_locals(const BlockLocals& locals, const std::vector<uint8_t>& from);

}  // namespace opkit
