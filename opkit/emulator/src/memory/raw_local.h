/// Stores into UB through raw pointers: bytes that differ between two instructions of a core. The host's processor has
/// computed them, and nothing times that. References that LocalTensor gives, and SetValue, count as instructions. Cores
/// that take results of a Matmul object are left out: another core writes their UB.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "opkit/instr.h"

namespace opkit {

class RawLocal {
 public:
  struct Changed {
    uint64_t first;  ///< byte of UB
    uint64_t last;   ///< one behind the last
    uint64_t bytes;  ///< that have changed between the two
  };

  /// Keeps what `ub` holds from now on.
  RawLocal(const uint8_t* ub, uint64_t size);

  /// What has changed since the last instruction, in front of this one; nothing in front of scalar accesses.
  std::optional<Changed> before(const Instr& instr);
  /// Keeps what the instruction has left.
  void after(const Instr& instr);

 private:
  bool is_open(uint64_t byte) const { return (open_[byte / 64] >> byte % 64 & 1) != 0; }

  const uint8_t* ub_;
  std::vector<uint8_t> kept_;   ///< UB as the last instruction left it, scalar accesses aside
  std::vector<uint64_t> open_;  ///< a bit a byte: what scalar accesses write by themselves, behind their instruction
  bool is_shared_ = false;
};

/// What is said of it.
std::string raw_local_text(const RawLocal::Changed& changed, const Instr& instr);
constexpr const char* kRawLocalHelp =
    "compute with instructions, or with GetValue and SetValue: stores through pointers are not timed";

}  // namespace opkit
