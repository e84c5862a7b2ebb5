/// One emulated sub-core: its memories, registers, flags and program counter. One fiber runs on it at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "core/chip.h"
#include "isa/chain.h"
#include "opkit/api/runtime_abi.h"
#include "opkit/fault.h"
#include "opkit/instr.h"

namespace opkit {

struct Observer;
struct LaunchState;

enum class SubCore : uint8_t { AIC, AIV };

constexpr uint32_t kEventCount = 8;  ///< event ids of one pair of pipes. Source: TPipe AllocEventID, A2
constexpr uint32_t kPipeCount = static_cast<uint32_t>(Pipe::kCount);

enum class MaskMode : uint8_t { Normal, Counter };

/// What a write of the DMA to global memory does with the old value. Source: Ascend C API, atomic operations.
enum class AtomicOp : uint8_t { None, Add, Max, Min };

struct Core {
  const Chip* chip = nullptr;
  LaunchState* launch = nullptr;
  SubCore kind = SubCore::AIV;
  uint32_t block = 0;        ///< GetBlockIdx
  uint32_t block_count = 1;  ///< GetBlockNum
  uint32_t sub_block = 0;    ///< GetSubBlockIdx
  uint32_t index = 0;        ///< among all sub-cores of the launch
  uint64_t issued = 0;       ///< instructions so far

  uint8_t* space_base[8] = {};   ///< by Space; null for GM
  uint32_t space_bytes[8] = {};  ///< by Space
  uint64_t inaccuracy_seed = 0;  ///< DeviceConfig's
  bool has_chip_bounds = false;  ///< a local tensor ends where its memory does, not where its buffer does
  bool has_auto_sync = true;     ///< the kernel's compiler puts flags around scalar accesses, and barriers into V

  MaskMode mask_mode = MaskMode::Normal;
  uint64_t mask[2] = {~0ull, ~0ull};
  uint64_t compare_mask[2] = {0, 0};  ///< what Compare to the register wrote
  uint64_t deq_scale_bits = 0;        ///< SetDeqScale
  uint64_t pad_value_bits = 0;        ///< SetPadValue
  bool saturates_floats = false;      ///< half and bfloat16_t results end at their largest number
  bool saturates_casts = true;        ///< conversions to integers do, instead of losing their high bits
  AtomicOp atomic_op = AtomicOp::None;
  DType atomic_dtype = DType::F32;
  MatrixRegisters matrix;
  std::vector<uint8_t> sparse_indices;  ///< LoadDataWithSparse: a quarter of L0B's size; empty before
  std::vector<uint8_t> unit_flags;      ///< by 512 bytes of L0C, whether a Mmad has filled them; empty: none
  uint64_t reduce_sum_bits = 0;         ///< GetAccVal
  uint64_t reduce_max_min_bits[4] = {};
  uint64_t gather_mask_count = 0;       ///< elements that the last GatherMask picked
  DeqScale deq_scale = DeqScale::None;  ///< the form of SetDeqScale that was called last
  uint16_t merged_counts[4] = {};       ///< what the last merge took of each queue
  bool merge_stopped = false;           ///< whether a queue that ran out was to end it

  Chain chain;

  uint8_t flags[kPipeCount][kPipeCount][kEventCount] = {};        ///< signals not yet waited for
  uint8_t event_pool[kPipeCount][kPipeCount] = {};                ///< ids given out, a bit each
  uint8_t event_owner[kPipeCount][kPipeCount][kEventCount] = {};  ///< queues' ids: TPipe or a pool; 0 for others
  uint16_t resets[256] = {};                                      ///< by owner of queues; [0]: of all of them
  uint8_t next_pool = 2;                                          ///< number of the next TBufPool

  /// Host address of `size` bytes of an operand; bounds were checked by issue().
  uint8_t* at(const Operand& operand) const { return at(operand.space, operand.address); }
  uint8_t* at(Space space, uint64_t address) const {
    return space == Space::GM ? reinterpret_cast<uint8_t*>(address)
                              : space_base[static_cast<uint32_t>(space)] + address;
  }
};

/// Executes the instructions that wait: for whoever reads or writes UB, or reads what a kernel has left there.
inline void finish_chain(Core& core) {
  if (__builtin_expect(core.chain.step_count != 0, 0)) run_chain(core);
}

/// The core whose kernel code runs on this thread; null outside a kernel.
Core* current_core();

/// Ends the launch: records the fault and leaves the fiber for good.
[[noreturn]] void raise_fault(Fault fault, const Instr* instr, const char* help, const char* format, ...)
    __attribute__((format(printf, 4, 5)));

/// One check per contract; the line after it may rely on it.
#define OPKIT_CHECK(condition, fault, instr, help, ...)                      \
  do {                                                                       \
    if (__builtin_expect(!(condition), 0)) {                                 \
      ::opkit::raise_fault(::opkit::Fault::fault, instr, help, __VA_ARGS__); \
    }                                                                        \
  } while (false)

}  // namespace opkit
