#include "isa/accuracy.h"

#include <cstring>
#include <vector>

#include "isa/footprint.h"
#include "isa/lanes/lanes.h"
#include "isa/table.h"

namespace opkit {
namespace {

/// splitmix64's last step: neighbouring results go either way.
bool goes_up(uint64_t bits, uint64_t seed) {
  uint64_t mixed = bits + seed * 0x9e3779b97f4a7c15ull;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ull;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebull;
  return ((mixed ^ (mixed >> 31)) & 1) != 0;
}

double value_of(uint64_t bits, DType type) {
  float value = 0;
  if (type == DType::F32) {
    const auto word = static_cast<uint32_t>(bits);
    std::memcpy(&value, &word, sizeof(value));
    return value;
  }
  const auto half = static_cast<uint16_t>(bits);
  const void* source[1] = {&half};
  lanes::table().cast[static_cast<size_t>(DType::F32)][static_cast<size_t>(DType::F16)][0](&value, source, nullptr, 1);
  return value;
}

/// The nearest number of the type that is more than `error` away, in units in the last place: magnitudes are in the
/// order of their bits. Zeros, infinities and NaN stay as they are, and nothing becomes one.
uint64_t moved(uint64_t bits, DType type, double error, uint64_t seed) {
  const uint64_t sign = type == DType::F32 ? 0x80000000ull : 0x8000ull;
  const uint64_t infinity = type == DType::F32 ? 0x7f800000ull : 0x7c00ull;
  uint64_t magnitude = bits & ~sign;
  if (magnitude == 0 || magnitude >= infinity) return bits;
  const double exact = value_of(magnitude, type);
  const bool is_up = goes_up(bits, seed);
  const double limit = exact * error;
  uint64_t step = 1, last = 0;  // doubled until it is far enough, then halved
  const auto is_far = [&](uint64_t by) {
    const double there = value_of(is_up ? magnitude + by : magnitude - by, type);
    return (is_up ? there - exact : exact - there) > limit;
  };
  const uint64_t room = is_up ? infinity - 1 - magnitude : magnitude - 1;
  while (step < room && !is_far(step)) {
    last = step;
    step *= 2;
  }
  while (step < room && step - last > 1) {
    const uint64_t middle = last + (step - last) / 2;
    (is_far(middle) ? step : last) = middle;
  }
  if (step > room) step = room;
  magnitude = is_up ? magnitude + step : magnitude - step;
  return (bits & sign) | magnitude;
}

}  // namespace

double stated_error(const Instr& instr) {
  if ((instr.op != Op::Rsqrt && instr.op != Op::Reciprocal) || instr.mode == kRefined) return 0;
  return instr.dst.dtype == DType::F16 ? 1e-3 : 1e-4;
}

void execute_inaccurately(Core& core, const Instr& instr, uint64_t seed) {
  const DType type = instr.dst.dtype;
  const uint32_t bytes = size_bytes(type);
  std::vector<ByteRange> written;
  for_each_range(core, instr, [&](const ByteRange& range) {
    if (range.is_write) written.push_back(range);
  });
  row_of(instr.op).execute(core, instr);
  finish_chain(core);
  for (const ByteRange& range : written) {
    for (uint64_t at = range.begin; at < range.begin + range.bytes; at += bytes) {
      uint64_t bits = 0;
      uint8_t* element = core.at(instr.dst.space, at);
      std::memcpy(&bits, element, bytes);
      bits = moved(bits, type, stated_error(instr), seed);
      std::memcpy(element, &bits, bytes);
    }
  }
}

}  // namespace opkit
