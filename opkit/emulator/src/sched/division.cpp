#include "sched/division.h"

#include <ucontext.h>

#include <cstdint>
#include <cstring>

namespace opkit {

#if defined(__x86_64__)

namespace {

// Registers by the number that an instruction has for them.
constexpr int kRegisters[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

/// DIV and IDIV: prefixes, 0xF6 (bytes) or 0xF7, and an operand, as the public instruction set reference encodes them.
struct Division {
  uint64_t divisor = 0;
  int bytes = 0;
  uint64_t next = 0;  ///< the address of the instruction behind
};

template <typename T>
T load(uint64_t address) {
  T value;
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof(T));
  return value;
}

uint64_t low_bytes(uint64_t value, int bytes) { return bytes == 8 ? value : value & ((1ull << (8 * bytes)) - 1); }

/// The address that the operand names; `at` is left behind its bytes.
uint64_t address_of(const gregset_t& registers, uint8_t mode, uint8_t low, uint8_t rex, uint64_t& at) {
  uint64_t base = 0;
  bool has_wide_offset = mode == 2;
  bool is_relative = false;
  if (low == 4) {
    const auto sib = load<uint8_t>(at++);
    const int index = ((sib >> 3) & 7) | ((rex & 2) << 2);
    const int base_register = (sib & 7) | ((rex & 1) << 3);
    if ((sib & 7) == 5 && mode == 0) {
      has_wide_offset = true;
    } else {
      base = static_cast<uint64_t>(registers[kRegisters[base_register]]);
    }
    if (index != 4) base += static_cast<uint64_t>(registers[kRegisters[index]]) << (sib >> 6);
  } else if (low == 5 && mode == 0) {
    has_wide_offset = is_relative = true;
  } else {
    base = static_cast<uint64_t>(registers[kRegisters[low | ((rex & 1) << 3)]]);
  }
  if (mode == 1) base += static_cast<uint64_t>(static_cast<int64_t>(load<int8_t>(at++)));
  if (has_wide_offset) {
    base += static_cast<uint64_t>(static_cast<int64_t>(load<int32_t>(at)));
    at += 4;
  }
  return is_relative ? base + at : base;
}

bool read_division(const gregset_t& registers, Division& division) {
  auto at = static_cast<uint64_t>(registers[REG_RIP]);
  bool is_short = false;
  uint8_t rex = 0;
  auto byte = load<uint8_t>(at++);
  for (; byte == 0x66 || byte == 0x2e || byte == 0x3e; byte = load<uint8_t>(at++)) is_short |= byte == 0x66;
  if ((byte & 0xf0) == 0x40) {
    rex = byte;
    byte = load<uint8_t>(at++);
  }
  if (byte != 0xf6 && byte != 0xf7) return false;
  division.bytes = byte == 0xf6 ? 1 : (rex & 8) != 0 ? 8 : is_short ? 2 : 4;
  const auto operand = load<uint8_t>(at++);
  const uint8_t mode = operand >> 6, low = operand & 7;
  if (((operand >> 3) & 7) < 6) return false;  // not DIV or IDIV
  if (mode == 3) {
    const int number = low | ((rex & 1) << 3);
    const bool is_high_byte = division.bytes == 1 && rex == 0 && number >= 4;
    const auto whole = static_cast<uint64_t>(registers[kRegisters[is_high_byte ? number - 4 : number]]);
    division.divisor = low_bytes(is_high_byte ? whole >> 8 : whole, division.bytes);
  } else {
    const uint64_t address = address_of(registers, mode, low, rex, at);
    std::memcpy(&division.divisor, reinterpret_cast<const void*>(address), static_cast<size_t>(division.bytes));
  }
  division.next = at;
  return true;
}

}  // namespace

bool step_over_division_by_zero(void* context) {
  gregset_t& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  Division division;
  if (!read_division(registers, division) || division.divisor != 0) return false;
  const auto dividend = static_cast<uint64_t>(registers[REG_RAX]);
  const auto put = [&](int name, uint64_t value) {
    // Registers of 4 bytes clear what is above, narrower ones keep it.
    const auto before = static_cast<uint64_t>(registers[name]);
    const uint64_t kept = division.bytes >= 4 ? 0 : before & ~low_bytes(~0ull, division.bytes);
    registers[name] = static_cast<greg_t>(kept | low_bytes(value, division.bytes));
  };
  if (division.bytes == 1) {
    const uint64_t remainder = low_bytes(dividend, 1) << 8;
    registers[REG_RAX] = static_cast<greg_t>((dividend & ~0xffffull) | remainder);
  } else {
    put(REG_RAX, 0);
    put(REG_RDX, dividend);
  }
  registers[REG_RIP] = static_cast<greg_t>(division.next);
  return true;
}

#else

bool step_over_division_by_zero(void*) { return false; }

#endif

}  // namespace opkit
