#include "observe/wide_memory.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace opkit {
namespace {

constexpr uint64_t kGranuleBytes = 2;

double decode_half(uint32_t bits) {
  const uint32_t exponent = bits >> 10 & 31;
  const uint32_t fraction = bits & 1023;
  double size = 0;
  if (exponent == 31) {
    size = fraction == 0 ? HUGE_VAL : std::nan("");
  } else if (exponent == 0) {
    size = std::ldexp(fraction, -24);
  } else {
    size = std::ldexp(fraction + 1024.0, static_cast<int>(exponent) - 25);
  }
  return (bits & 0x8000) != 0 ? -size : size;
}

double decode_float(uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

}  // namespace

bool is_floating(DType type) { return type == DType::F16 || type == DType::BF16 || type == DType::F32; }

double decode(DType type, uint64_t bits) {
  switch (type) {
    case DType::F16: return decode_half(static_cast<uint32_t>(bits));
    case DType::BF16: return decode_float(static_cast<uint32_t>(bits) << 16);
    case DType::F32: return decode_float(static_cast<uint32_t>(bits));
    case DType::S8: return static_cast<int8_t>(bits);
    case DType::S16: return static_cast<int16_t>(bits);
    case DType::S32: return static_cast<int32_t>(bits);
    case DType::S64: return static_cast<double>(static_cast<int64_t>(bits));
    default: return static_cast<double>(bits);
  }
}

uint64_t read_bits(const uint8_t* from, uint32_t bytes) {
  uint64_t bits = 0;
  std::memcpy(&bits, from, bytes);
  return bits;
}

void WideMemory::begin(const std::vector<GmRange>& ranges) {
  gm_.clear();
  cores_.clear();
  for (const GmRange& range : ranges) gm_.push_back({range.begin, range.end, {}});
}

const WideMemory::Range* WideMemory::range_of(uint64_t address) const {
  const auto after = std::upper_bound(gm_.begin(), gm_.end(), address,
                                      [](uint64_t value, const Range& range) { return value < range.begin; });
  if (after == gm_.begin()) return nullptr;
  const Range& range = *(after - 1);
  return address < range.end ? &range : nullptr;
}

WideCell* WideMemory::cell(const Core& core, Space space, uint64_t address) {
  if (space == Space::GM) {
    auto* range = const_cast<Range*>(range_of(address));
    if (range == nullptr) return nullptr;
    if (range->cells.empty()) range->cells.resize((range->end - range->begin) / kGranuleBytes + 1);
    return &range->cells[(address - range->begin) / kGranuleBytes];
  }
  const auto index = static_cast<uint32_t>(space);
  if (address >= core.space_bytes[index]) return nullptr;
  std::vector<WideCell>& cells = cores_[core.index].spaces[index];
  if (cells.empty()) cells.resize(core.space_bytes[index] / kGranuleBytes + 1);
  return &cells[address / kGranuleBytes];
}

const WideCell* WideMemory::find(const Core& core, Space space, uint64_t address, uint32_t bytes) {
  const WideCell* found = cell(core, space, address);
  if (found == nullptr || found->bytes != bytes) return nullptr;
  return read_bits(core.at(space, address), bytes) == found->bits ? found : nullptr;
}

const WideCell* WideMemory::find_gm(uint64_t address, uint32_t bytes) const {
  const Range* range = range_of(address);
  if (range == nullptr || range->cells.empty()) return nullptr;
  const WideCell& found = range->cells[(address - range->begin) / kGranuleBytes];
  if (found.bytes != bytes) return nullptr;
  return read_bits(reinterpret_cast<const uint8_t*>(address), bytes) == found.bits ? &found : nullptr;
}

void WideMemory::move_gm(uint64_t from, uint64_t to, uint64_t bytes) {
  const auto found = std::find_if(gm_.begin(), gm_.end(), [from](const Range& range) { return range.begin == from; });
  if (found == gm_.end()) return;
  found->begin = to;
  found->end = to + bytes;
  std::sort(gm_.begin(), gm_.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
}

void WideMemory::forget(const Core& core, Space space, uint64_t address, uint64_t bytes) {
  for (uint64_t at = 0; at < bytes; at += kGranuleBytes) {
    WideCell* found = cell(core, space, address + at);
    if (found != nullptr) found->bytes = 0;
  }
}

}  // namespace opkit
