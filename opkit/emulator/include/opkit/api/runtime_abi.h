/// What the public templates call besides issue(): the library's side of tensors, queues and variables.
#pragma once

#include "opkit/instr.h"

namespace opkit {

/// Variables of the sub-core that runs the calling kernel.
struct CoreVariables {
  int64_t block_index;
  int64_t block_count;
  int64_t sub_block_index;
  int64_t sub_block_count;
  uint64_t tiling_key;
  bool is_cube;
};
OPKIT_API const CoreVariables& core_variables();

/// The kernel that begins on this core was compiled with --cce-auto-sync=off: its flags and barriers are all there are.
OPKIT_API void synchronises_by_hand();

/// Host address of the first byte of a local memory of the current core, and its size.
OPKIT_API uint8_t* local_memory(Space space);
OPKIT_API uint32_t local_memory_bytes(Space space);
/// Host address of a byte of it; OutOfBounds behind its end.
OPKIT_API uint8_t* local_address(Space space, uint64_t byte, Where where);

/// The TPipe that the kernel on this core has constructed last; null before.
OPKIT_API void set_kernel_pipe(void* pipe);
OPKIT_API void* kernel_pipe();

/// What TPipe keeps: how far each local memory has been given out.
struct PipeState {
  uint32_t used_bytes[8] = {};
  uint32_t buffer_count = 0;
};

enum class SlotState : uint8_t { Idle, Allocated, Enqueued, Dequeued };

struct QueueSlot {
  uint32_t address = 0;
  uint32_t size_bytes = 0;
  SlotState state = SlotState::Idle;
  int8_t enqueue_event = -1;  ///< event that DeQue waits for
  int8_t free_event = -1;     ///< event that AllocTensor waits for
};

constexpr uint32_t kQueueSlots = 64;  ///< buffers of one kernel together. Source: TPipe InitBuffer

constexpr uint8_t kPipeOwner = 1;  ///< TPipe; pools have the numbers above

/// What a TBufPool keeps: a stretch of one local memory.
struct PoolState {
  Space space = Space::UB;
  uint8_t owner = 0;
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t used = 0;  ///< up to where it is given out
  uint32_t buffer_count = 0;
  uint32_t buffer_limit = 0;
};

/// What a TQue, TQueBind or TBuf keeps.
struct QueueState {
  Space space = Space::UB;
  Pipe fill = Pipe::MTE2;
  Pipe empty = Pipe::V;
  bool has_event = true;  ///< false where source and destination run on one pipe
  uint8_t depth = 1;
  uint8_t owner = kPipeOwner;  ///< whose Reset takes its buffers and event ids back
  uint16_t generation = 0;     ///< of the owner when the buffers were placed
  uint32_t slot_count = 0;
  uint32_t next_slot = 0;
  uint32_t queued = 0;
  uint32_t head = 0;
  uint32_t fifo[kQueueSlots] = {};
  QueueSlot slots[kQueueSlots] = {};
};

/// Gives out `bytes`, also behind the memory's end: only a touch faults there.
OPKIT_API uint32_t pipe_allocate(PipeState& pipe, Space space, uint32_t bytes, Where where);
OPKIT_API void queue_init(QueueState& queue, PipeState& pipe, uint32_t count, uint32_t bytes, Where where);
/// The same in two steps, at addresses of the caller's choice.
OPKIT_API void queue_start(QueueState& queue, uint8_t owner, uint32_t count, Where where);
OPKIT_API void queue_place(QueueState& queue, uint32_t index, uint32_t address, uint32_t bytes, Where where);
/// The size of the buffer that starts at `address`.
OPKIT_API uint32_t queue_buffer_bytes(const QueueState& queue, uint32_t address);
OPKIT_API uint32_t queue_allocate(QueueState& queue, Where where);
OPKIT_API void queue_enqueue(QueueState& queue, uint32_t address, Where where);
OPKIT_API uint32_t queue_dequeue(QueueState& queue, Where where);
OPKIT_API void queue_free(QueueState& queue, uint32_t address, Where where);
OPKIT_API void queue_free_events(QueueState& queue, Where where);

/// Gives a pool its stretch of memory, or the same stretch as another pool's.
OPKIT_API void pool_start(PoolState& pool, Space space, uint32_t begin, uint32_t bytes, uint32_t buffer_limit,
                          Where where);
OPKIT_API uint32_t pool_allocate(PoolState& pool, Space space, uint32_t count, uint32_t bytes, Where where);
OPKIT_API void pool_share(PoolState& pool, const PoolState& shared, uint32_t bytes, uint32_t buffer_limit, Where where);
OPKIT_API void pool_reset(PoolState& pool, Where where);
/// Waits for what queues have signalled and takes their event ids and buffers back: of all queues, or of one owner's.
OPKIT_API void free_queue_events(uint8_t owner, Where where);
constexpr uint8_t kEveryOwner = 0;

OPKIT_API int8_t allocate_event(Pipe first, Pipe second, Where where);
OPKIT_API int8_t fetch_event(Pipe first, Pipe second, Where where);
OPKIT_API void release_event(Pipe first, Pipe second, int8_t id, Where where);

/// Mask registers. Source: Ascend C API, mask operations.
OPKIT_API void set_mask_mode(bool is_counter);
OPKIT_API void set_vector_mask(uint64_t high, uint64_t low);

/// What instructions leave in registers. Reductions: bits of the element type; [0] the value, [1] its index.
OPKIT_API uint64_t gather_mask_count();
OPKIT_API uint64_t reduce_sum_bits();
OPKIT_API uint64_t reduce_extreme_bits(uint32_t item);

/// Elements that the last merge took of each queue; faults unless it was one that stops at a queue's end.
OPKIT_API void merged_counts(uint16_t (&counts)[4], Where where);

/// Which form of SetDeqScale was called: a half; a float, offset and sign; a tensor of those.
enum class DeqScale : uint8_t { None, Half, Float, Vector };
OPKIT_API void set_deq_scale(uint64_t bits, DeqScale form);

/// Saturation of half and bfloat16_t results, and of conversions to integers.
enum class Saturation : uint8_t { Floats, Casts };
OPKIT_API void set_saturation(Saturation which, bool is_on);
OPKIT_API bool saturation(Saturation which);

/// What the Set functions of matrix instructions write.
struct MatrixRegisters {
  uint16_t image_height = 0;  ///< SetFmatrix
  uint16_t image_width = 0;
  uint8_t image_padding[4] = {0, 0, 0, 0};
  uint64_t padding_bits = 0;   ///< SetLoadDataPaddingValue
  uint32_t load_boundary = 0;  ///< SetLoadDataBoundary
  uint16_t repeat_stride = 0;  ///< SetLoadDataRepeat
  uint8_t repeat_time = 1;
  uint8_t repeat_mode = 0;
  bool is_hf32 = false;                      ///< SetHF32Mode
  HalfwayTo hf32_halfway = HalfwayTo::Even;  ///< SetHF32TransMode
  uint16_t nd_count = 1;                     ///< SetFixpipeNz2ndFlag
  uint16_t nd_src_stride = 0;
  uint16_t nd_dst_stride = 0;
  uint64_t quantisation_bits = 0;  ///< SetFixpipePreQuantFlag
  Operand quantisation;            ///< SetFixPipeConfig; `end` is 0 before
};
OPKIT_API MatrixRegisters& matrix_registers();
/// All blocks of L0C are free to be written again.
OPKIT_API void clear_unit_flags();

/// What the chip's system counter shows: the timing model's, for the core by itself.
OPKIT_API uint64_t system_cycle(Where where);
OPKIT_API void set_pad_value(uint64_t bits);
[[noreturn]] OPKIT_API void illegal_operand(const char* message, Where where);

}  // namespace opkit
