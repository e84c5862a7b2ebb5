/// One instruction as the public templates describe it to the emulator: plain data, no behaviour.
#pragma once

#include <cstddef>

#include "opkit/export.h"
#include "opkit/isa/ops.h"
#include "opkit/matrix.h"
#include "opkit/types.h"

namespace opkit {

constexpr uint32_t kBlockBytes = 32;    ///< a data block
constexpr uint32_t kRepeatBytes = 256;  ///< what a vector instruction handles in one repeat
constexpr uint32_t kBlocksPerRepeat = kRepeatBytes / kBlockBytes;

/// One tensor operand.
struct Operand {
  uint64_t address = 0;                       ///< byte offset in `space`; in GM a host address
  uint64_t begin = 0;                         ///< first byte of the buffer that the tensor belongs to, same coordinates
  uint64_t end = 0;                           ///< one past the last byte of that buffer
  uint32_t block_stride = 1;                  ///< data blocks between the blocks of one repeat
  uint32_t repeat_stride = kBlocksPerRepeat;  ///< data blocks between the first blocks of two repeats
  Space space = Space::UB;
  DType dtype = DType::F16;
  bool bypasses_l2 = false;  ///< GM only: what SetL2CacheHint asked for; changes times, never results
};

/// How a vector instruction says which lanes take part.
enum class MaskForm : uint8_t {
  Count,     ///< the first `count` elements, contiguous; no strides
  Prefix,    ///< mask as a number: the first mask[0] lanes of each repeat
  Bits,      ///< mask as bits: mask[0] holds lanes 0-63, mask[1] lanes 64-127
  Register,  ///< isSetMask = false: the mask register that SetVectorMask wrote; `count` is not looked at
};

/// Bit of Instr::mode, Select only: its scalar lies in the compare register.
constexpr uint8_t kScalarInRegister = 128;

/// Instr::mode of a GetValue or SetValue of global memory that does not go through the core's data cache.
constexpr uint8_t kPastCache = 1;
/// Mode of GetValue where it gives a reference, which may be there to be written: GlobalTensor::operator().
constexpr uint8_t kReference = 2;

/// Instr::mode of a Rsqrt or Reciprocal inside a function of the library, which answers for its own accuracy.
constexpr uint8_t kRefined = 1;

/// Instr::mode of a DataCacheCleanAndInvalid of all lines.
constexpr uint8_t kWholeCache = 1;

/// Instr::mode of a SetFlag or WaitFlag that a queue issues, not the kernel itself.
constexpr uint8_t kQueueSignal = 1;

/// A copy between two memories, all in bytes.
struct CopyShape {
  uint32_t burst_count = 1;
  uint32_t burst_bytes = 0;
  uint64_t src_stride = 0;  ///< from the first byte of a burst to the first byte of the next
  uint64_t dst_stride = 0;
  uint32_t plane_count = 1;       ///< ND2NZ and NZ2ND: the bursts again, once for each column of data blocks
  uint32_t last_plane_bytes = 0;  ///< burst_bytes of the last plane; not looked at with one plane
  uint64_t src_plane_stride = 0;
  uint64_t dst_plane_stride = 0;
  uint8_t left_padding = 0;    ///< elements written before each burst (GM to UB, with padding)
  uint8_t right_padding = 0;   ///< elements written behind each burst
  bool is_padded = false;      ///< DataCopyPad: the UB side is padded to whole data blocks
  bool has_pad_value = false;  ///< false: the padding up to the block is not defined, or the burst's own first element
  uint64_t pad_value_bits = 0;
  uint64_t asked_bytes = 0;  ///< of a burst, where the call asked for more than `burst_bytes`; for messages
};

/// What Op::LibraryWork stands for, in Instr::mode: of a Matmul object its start, a block of C, a base block of K, a
/// copy to L1. The last four are the same with a tiling that the compiler knows.
enum class LibraryWork : uint8_t { Start, Block, Step, Copy, StaticStart, StaticBlock, StaticStep, StaticCopy, kCount };

/// One instruction.
struct Instr {
  Op op = Op::kCount;
  MaskForm mask_form = MaskForm::Count;
  uint8_t source_count = 0;
  uint8_t mode = 0;  ///< RoundMode, CMPMODE, SELMODE, ReduceOrder, Pipe or LibraryWork, by op
  DType scalar_dtype = DType::F32;
  Pipe pipe = Pipe::V;       ///< the queue it runs on; for flags the one that signals
  Pipe peer_pipe = Pipe::V;  ///< flags only: the queue that waits
  uint8_t event_id = 0;      ///< flags only
  uint32_t count = 0;        ///< elements, for MaskForm::Count
  uint32_t repeat = 1;
  uint64_t mask[2] = {0, 0};
  uint64_t scalar_bits[2] = {0, 0};  ///< scalar operands as bit patterns of `scalar_dtype`, zero-extended
  Operand dst;
  Operand src[3];
  const Operand* list = nullptr;  ///< more operands than `src` holds; valid while the instruction executes, no longer
  uint32_t list_count = 0;
  bool sets_mask = false;  ///< the mask register takes the mask; with a count all lanes afterwards, and normal mode
  // Of matrix instructions, by op; valid while the instruction executes, no longer.
  const FractalLoad* load = nullptr;
  const ImageLoad* image = nullptr;
  const MatrixFill* fill = nullptr;
  const MatrixProduct* product = nullptr;
  const FixpipeCopy* fixpipe = nullptr;
  CopyShape copy;
  Where where = {"", 0};

  /// Not the implicit one, which compilers take for a constant and copy as a string: that costs more than most of the
  /// stores do, and what is read soon after waits for all of it.
  Instr() {}  // NOLINT(modernize-use-equals-default)
};

/// The one door: check, tell observers, execute, tell observers. A fault does not return.
OPKIT_API void issue(Instr& instr);

}  // namespace opkit
