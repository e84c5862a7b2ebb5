#include "core/buffers.h"

#include <algorithm>
#include <vector>

#include "core/launch_state.h"
#include "opkit/api/ub_array.h"

namespace opkit {
namespace {

uint64_t end_of(const BufferRecord& buffer) { return uint64_t{buffer.address} + buffer.bytes; }

bool overlap(const BufferRecord& a, const BufferRecord& b) {
  return a.space == b.space && a.address < end_of(b) && b.address < end_of(a);
}

bool contains(const BufferRecord& outer, const BufferRecord& inner) {
  return outer.address <= inner.address && end_of(outer) >= end_of(inner) && outer.bytes > inner.bytes;
}

std::string place_of(const BufferRecord& buffer) {
  const std::string path = buffer.where.file;
  return path.substr(path.find_last_of('/') + 1) + ":" + std::to_string(buffer.where.line);
}

}  // namespace

uint32_t placeable_bytes(Space space) {
  const uint32_t bytes = local_memory_bytes(space);
  // More than the 2 KB that the documents give the fixpipe buffer, which still bound what is read and written there.
  // Source: CATLASS, which takes 7 KB in every kernel (Arch::AtlasA2::FIXBUF_SIZE).
  return space == Space::FB && bytes != 0 ? std::max(bytes, 7u * 1024) : bytes;
}

void note_buffer(const BufferRecord& buffer, bool is_part_of_pool) {
  std::vector<BufferRecord>& buffers = running_core()->buffers;
  buffers.erase(std::remove_if(buffers.begin(), buffers.end(),
                               [&](const BufferRecord& older) {
                                 return overlap(older, buffer) && !(is_part_of_pool && contains(older, buffer));
                               }),
                buffers.end());
  buffers.push_back(buffer);
}

const BufferRecord* buffer_at(Space space, uint64_t address) {
  const RunningCore* running = running_core();
  if (running == nullptr) return nullptr;
  for (auto buffer = running->buffers.rbegin(); buffer != running->buffers.rend(); ++buffer) {
    if (buffer->space == space && buffer->address <= address && address < end_of(*buffer)) return &*buffer;
  }
  return nullptr;
}

std::string buffer_text(Space space, uint64_t address) {
  const BufferRecord* buffer = buffer_at(space, address);
  if (buffer == nullptr) return "";
  return "the buffer of " + std::to_string(buffer->bytes) + " bytes at byte " + std::to_string(buffer->address) +
         ", InitBuffer at " + place_of(*buffer);
}

std::string buffers_text(Space space) {
  std::string text;
  for (const BufferRecord& buffer : running_core()->buffers) {
    if (buffer.space != space) continue;
    text += "\n    " + std::to_string(buffer.bytes) + " bytes at byte " + std::to_string(buffer.address) + " by " +
            place_of(buffer);
  }
  return text;
}

uint32_t place_array(uint32_t bytes, Where where) {
  uint64_t address = 0;
  for (const BufferRecord& buffer : require_running_core().buffers) {
    if (buffer.space == Space::UB) address = std::max(address, end_of(buffer));
  }
  address = (address + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  const uint32_t limit = local_memory_bytes(Space::UB);
  if (address + bytes > limit) {
    const Instr instr = call_at(where);
    raise_fault(Fault::OutOfBounds, &instr, "make the arrays smaller",
                "an array of %u bytes does not fit into UB: %u of its %u bytes are taken%s", bytes,
                static_cast<uint32_t>(address), limit, buffers_text(Space::UB).c_str());
  }
  note_buffer({Space::UB, static_cast<uint32_t>(address), bytes, where}, false);
  return static_cast<uint32_t>(address);
}

void remove_array(uint32_t address) {
  std::vector<BufferRecord>& buffers = require_running_core().buffers;
  const auto is_it = [&](const BufferRecord& buffer) { return buffer.space == Space::UB && buffer.address == address; };
  buffers.erase(std::remove_if(buffers.begin(), buffers.end(), is_it), buffers.end());
}

}  // namespace opkit
