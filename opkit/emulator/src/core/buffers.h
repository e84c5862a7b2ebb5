/// What a core's kernel has given local memory to: for messages and for checks.
#pragma once

#include <string>

#include "core/core.h"

namespace opkit {

struct RunningCore;

/// One InitBuffer or InitBufPool.
struct BufferRecord {
  Space space;
  uint32_t address;
  uint32_t bytes;
  Where where;
};

/// How many bytes of a memory of the running core buffers may lie in.
uint32_t placeable_bytes(Space space);

/// Keeps a new buffer of the running core, and forgets those that it takes the place of; a part of a pool does not take
/// the pool's place.
void note_buffer(const BufferRecord& buffer, bool is_part_of_pool);

/// The innermost buffer at an address of the running core; null where none was placed.
const BufferRecord* buffer_at(Space space, uint64_t address);

/// "the buffer of 4096 bytes at byte 8192, InitBuffer at add.cpp:12"; empty where none was placed.
std::string buffer_text(Space space, uint64_t address);

/// A line for each buffer in a memory, how much it holds and where it was placed.
std::string buffers_text(Space space);

}  // namespace opkit
