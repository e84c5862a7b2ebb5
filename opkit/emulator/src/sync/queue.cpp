// What TPipe, TQue and TBuf do beyond holding addresses. Source: Ascend C API, resource management.
#include "core/core.h"
#include "core/launch_state.h"
#include "memory/bounds.h"
#include "opkit/api/runtime_abi.h"

namespace opkit {
namespace {

constexpr uint32_t kMaxBuffers = 64;  // of one kernel together. Source: TPipe InitBuffer

/// The instruction that a fault of a queue call is reported against: it has a place, but no operands.
Instr at(Where where) {
  Instr instr;
  instr.op = Op::PipeBarrier;
  instr.pipe = Pipe::S;
  instr.where = where;
  return instr;
}

/// The same, for a check: OPKIT_CHECK makes it only when the check fails.
class At {
 public:
  explicit At(Where where) : instr_(at(where)) {}
  operator const Instr*() const { return &instr_; }  // NOLINT: stands for the pointer that raise_fault takes

 private:
  Instr instr_;
};

void signal(Op op, Pipe first, Pipe second, int8_t id, Where where) {
  Instr instr = at(where);
  instr.op = op;
  instr.pipe = first;
  instr.peer_pipe = second;
  instr.event_id = static_cast<uint8_t>(id);
  issue(instr);
}

QueueSlot& slot_of(QueueState& queue, uint32_t address, const char* call, Where where) {
  for (uint32_t i = 0; i < queue.slot_count; ++i) {
    const uint32_t begin = queue.slots[i].address;
    if (address >= begin && address < begin + queue.slot_bytes) return queue.slots[i];
  }
  raise_fault(Fault::QueueMisuse, At(where), "pass the tensor that this queue's own AllocTensor or DeQue returned",
              "%s: the tensor at byte %u belongs to none of this queue's %u buffers", call, address, queue.slot_count);
}

void check_initialised(const QueueState& queue, const char* call, Where where) {
  OPKIT_CHECK(queue.slot_count > 0, QueueMisuse, At(where), "call pipe.InitBuffer(queue, count, bytes) first",
              "%s: this queue has no buffers", call);
}

/// Gives the id back once its signal has been waited for.
void consume(int8_t& id, Pipe first, Pipe second, Where where) {
  if (id < 0) return;
  signal(Op::WaitFlag, first, second, id, where);
  release_event(first, second, id, where);
  id = -1;
}

void produce(int8_t& id, Pipe first, Pipe second, Where where) {
  id = allocate_event(first, second, where);
  signal(Op::SetFlag, first, second, id, where);
}

}  // namespace

uint32_t pipe_allocate(PipeState& pipe, Space space, uint32_t bytes, Where where) {
  uint32_t& used = pipe.used_bytes[static_cast<uint32_t>(space)];
  const uint32_t limit = local_memory_bytes(space);
  OPKIT_CHECK(uint64_t{used} + bytes <= limit, OutOfBounds, At(where),
              "make the tiles smaller or use fewer buffers: `opkit targets` lists the sizes",
              "InitBuffer: %u bytes more do not fit: %u of %s's %u bytes are given out already", bytes, used,
              space_name(space), limit);
  const uint32_t address = used;
  used += bytes;
  return address;
}

void queue_init(QueueState& queue, PipeState& pipe, uint32_t count, uint32_t bytes, Where where) {
  OPKIT_CHECK(count > 0, IllegalOperand, At(where), nullptr, "InitBuffer: a queue needs at least one buffer");
  pipe.buffer_count += count;
  OPKIT_CHECK(pipe.buffer_count <= kMaxBuffers, IllegalOperand, At(where), "use fewer queues or buffers",
              "InitBuffer: this kernel has %u buffers, the limit is %u", pipe.buffer_count, kMaxBuffers);
  queue.slot_bytes = (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  queue.slot_count = count;
  queue.next_slot = queue.queued = queue.head = 0;
  for (uint32_t i = 0; i < count; ++i) {
    queue.slots[i] = {};
    queue.slots[i].address = pipe_allocate(pipe, queue.space, queue.slot_bytes, where);
  }
}

uint32_t queue_allocate(QueueState& queue, Where where) {
  check_initialised(queue, "AllocTensor", where);
  for (uint32_t tried = 0; tried < queue.slot_count; ++tried) {
    const uint32_t index = (queue.next_slot + tried) % queue.slot_count;
    QueueSlot& slot = queue.slots[index];
    if (slot.state != SlotState::Idle) continue;
    queue.next_slot = (index + 1) % queue.slot_count;
    consume(slot.free_event, queue.empty, queue.fill, where);
    slot.state = SlotState::Allocated;
    return slot.address;
  }
  raise_fault(Fault::QueueMisuse, At(where),
              "call FreeTensor on a tensor that is no longer used, or give InitBuffer more buffers",
              "AllocTensor: all %u buffers of this queue are in use", queue.slot_count);
}

void queue_enqueue(QueueState& queue, uint32_t address, Where where) {
  check_initialised(queue, "EnQue", where);
  QueueSlot& slot = slot_of(queue, address, "EnQue", where);
  OPKIT_CHECK(slot.state == SlotState::Allocated || slot.state == SlotState::Dequeued, QueueMisuse, At(where),
              "EnQue each tensor once after AllocTensor",
              slot.state == SlotState::Enqueued ? "EnQue: this tensor is in the queue already"
                                                : "EnQue: this tensor was freed or never allocated");
  const uint32_t capacity =
      queue.depth == 0 ? queue.slot_count : (queue.depth > queue.slot_count ? queue.depth : queue.slot_count);
  OPKIT_CHECK(queue.queued < capacity, QueueMisuse, At(where),
              "DeQue before the next EnQue, or raise the queue's depth", "EnQue: the queue holds %u tensors already",
              queue.queued);
  if (queue.has_event) produce(slot.enqueue_event, queue.fill, queue.empty, where);
  slot.state = SlotState::Enqueued;
  queue.fifo[(queue.head + queue.queued) % kQueueSlots] = static_cast<uint32_t>(&slot - queue.slots);
  ++queue.queued;
}

uint32_t queue_dequeue(QueueState& queue, Where where) {
  check_initialised(queue, "DeQue", where);
  OPKIT_CHECK(queue.queued > 0, QueueMisuse, At(where), "EnQue the tensor that is to be taken out",
              "DeQue: the queue is empty");
  QueueSlot& slot = queue.slots[queue.fifo[queue.head]];
  queue.head = (queue.head + 1) % kQueueSlots;
  --queue.queued;
  consume(slot.enqueue_event, queue.fill, queue.empty, where);
  slot.state = SlotState::Dequeued;
  return slot.address;
}

void queue_free(QueueState& queue, uint32_t address, Where where) {
  check_initialised(queue, "FreeTensor", where);
  QueueSlot& slot = slot_of(queue, address, "FreeTensor", where);
  OPKIT_CHECK(slot.state != SlotState::Idle, QueueMisuse, At(where), "free each tensor once",
              "FreeTensor: this tensor was freed already");
  OPKIT_CHECK(slot.state != SlotState::Enqueued, QueueMisuse, At(where), "DeQue it first",
              "FreeTensor: this tensor is still in the queue");
  if (queue.has_event) produce(slot.free_event, queue.empty, queue.fill, where);
  slot.state = SlotState::Idle;
}

void queue_free_events(QueueState& queue, Where where) {
  for (uint32_t i = 0; i < queue.slot_count; ++i) {
    consume(queue.slots[i].free_event, queue.empty, queue.fill, where);
    consume(queue.slots[i].enqueue_event, queue.fill, queue.empty, where);
  }
}

int8_t fetch_event(Pipe first, Pipe second, Where where) {
  const uint8_t pool = current_core()->event_pool[static_cast<uint32_t>(first)][static_cast<uint32_t>(second)];
  OPKIT_CHECK(pool != 0xff, QueueMisuse, At(where),
              "ReleaseEventID ids that are no longer used; queues use one for each buffer",
              "all %u event ids of this pair of pipes are in use", kEventCount);
  return static_cast<int8_t>(__builtin_ctz(~static_cast<uint32_t>(pool)));
}

int8_t allocate_event(Pipe first, Pipe second, Where where) {
  const int8_t id = fetch_event(first, second, where);
  current_core()->event_pool[static_cast<uint32_t>(first)][static_cast<uint32_t>(second)] |=
      static_cast<uint8_t>(1u << id);
  return id;
}

void release_event(Pipe first, Pipe second, int8_t id, Where where) {
  uint8_t& pool = current_core()->event_pool[static_cast<uint32_t>(first)][static_cast<uint32_t>(second)];
  const bool is_held = id >= 0 && id < static_cast<int8_t>(kEventCount) && (pool >> id & 1) != 0;
  OPKIT_CHECK(is_held, QueueMisuse, At(where), "release each id that AllocEventID returned once",
              "ReleaseEventID: id %d is not in use", id);
  pool &= static_cast<uint8_t>(~(1u << id));
}

}  // namespace opkit
