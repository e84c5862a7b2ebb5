#include "memory/raw_local.h"

#include <algorithm>
#include <cstring>

#include "isa/table.h"

namespace opkit {
namespace {

bool is_of_cube(Op op) {
  return op == Op::CubePost || op == Op::CubeTake || op == Op::CubeServe || op == Op::CubeFinish || op == Op::CubeAwait;
}

bool is_scalar(Op op) { return op == Op::GetValue || op == Op::SetValue; }

}  // namespace

RawLocal::RawLocal(const uint8_t* ub, uint64_t size) : ub_(ub), kept_(ub, ub + size), open_(size / 64 + 1) {}

std::optional<RawLocal::Changed> RawLocal::before(const Instr& instr) {
  is_shared_ |= is_of_cube(instr.op);
  // What a pointer has changed is still there at the next instruction that moves or computes.
  if (is_shared_ || is_scalar(instr.op)) return std::nullopt;
  const uint64_t size = kept_.size();
  if (std::memcmp(ub_, kept_.data(), size) == 0) return std::nullopt;
  Changed changed{size, 0, 0};
  for (uint64_t at = 0; at < size; ++at) {
    if (ub_[at] == kept_[at] || is_open(at)) continue;
    changed.first = std::min(changed.first, at);
    changed.last = at + 1;
    ++changed.bytes;
  }
  if (changed.bytes == 0) return std::nullopt;
  return changed;
}

void RawLocal::after(const Instr& instr) {
  if (is_shared_) return;
  if (!is_scalar(instr.op)) {
    std::memcpy(kept_.data(), ub_, kept_.size());
    return;
  }
  const bool is_write = instr.op == Op::SetValue;
  const Operand& element = is_write ? instr.dst : instr.src[0];
  if (element.space != Space::UB || (!is_write && instr.mode != kReference)) return;
  const uint64_t end = std::min<uint64_t>(kept_.size(), element.address + size_bytes(element.dtype));
  for (uint64_t at = element.address; at < end; ++at) open_[at / 64] |= 1ull << at % 64;
}

std::string raw_local_text(const RawLocal::Changed& changed, const Instr& instr) {
  return std::to_string(changed.bytes) + " bytes of UB have changed in front of this " +
         std::string(row_of(instr.op).name) + ", and no instruction has written them";
}

}  // namespace opkit
