// What TPipe, TQue and TBuf do beyond holding addresses. Source: Ascend C API, resource management.
#include <cstring>

#include "core/core.h"
#include "core/launch_state.h"
#include "memory/bounds.h"
#include "opkit/api/runtime_abi.h"

namespace opkit {
namespace {

constexpr uint32_t kMaxBuffers = 64;  // of one kernel together. Source: TPipe InitBuffer

/// `call_at` for a check: OPKIT_CHECK makes it only when the check fails.
class At {
 public:
  explicit At(Where where) : instr_(call_at(where)) {}
  operator const Instr*() const { return &instr_; }  // NOLINT: stands for the pointer that raise_fault takes

 private:
  Instr instr_;
};

/// Tells the observers of a queue or event call.
void tell(const ResourceEvent& event) {
  const RunningCore* running = running_core();
  for (Observer* observer : running->core.launch->observers) observer->resource(running->core, event);
}

void tell_tensor(ResourceEvent::Action action, const QueueState& queue, const QueueSlot& slot, Where where) {
  if (running_core()->core.launch->observers.empty()) return;
  ResourceEvent event;
  event.action = action;
  event.queue = &queue;
  event.space = queue.space;
  event.address = slot.address;
  event.bytes = slot.size_bytes;
  event.where = where;
  tell(event);
}

void tell_event(ResourceEvent::Action action, bool is_queues, Pipe first, Pipe second, int8_t id, Where where) {
  if (running_core()->core.launch->observers.empty()) return;
  ResourceEvent event;
  event.action = action;
  event.is_queues = is_queues;
  event.first = first;
  event.second = second;
  event.event_id = id;
  event.where = where;
  tell(event);
}

/// Keeps what InitBuffer has placed and tells the observers.
void place(Space space, uint32_t address, uint32_t bytes, bool is_part_of_pool, Where where) {
  note_buffer({space, address, bytes, where}, is_part_of_pool);
  if (running_core()->core.launch->observers.empty()) return;
  ResourceEvent event;
  event.action = ResourceEvent::Action::PlaceBuffer;
  event.space = space;
  event.address = address;
  event.bytes = bytes;
  event.where = where;
  tell(event);
}

int8_t reserve_event(bool is_queues, Pipe first, Pipe second, Where where) {
  const int8_t id = fetch_event(first, second, where);
  require_running_core().core.event_pool[static_cast<uint32_t>(first)][static_cast<uint32_t>(second)] |=
      static_cast<uint8_t>(1u << id);
  tell_event(ResourceEvent::Action::AllocateEvent, is_queues, first, second, id, where);
  return id;
}

void signal(Op op, Pipe first, Pipe second, int8_t id, Where where) {
  Instr instr = call_at(where);
  instr.op = op;
  instr.pipe = first;
  instr.peer_pipe = second;
  instr.event_id = static_cast<uint8_t>(id);
  instr.mode = kQueueSignal;
  issue(instr);
}

QueueSlot& slot_of(QueueState& queue, uint32_t address, const char* call, Where where) {
  for (uint32_t i = 0; i < queue.slot_count; ++i) {
    const uint32_t begin = queue.slots[i].address;
    if (address >= begin && address < begin + queue.slots[i].size_bytes) return queue.slots[i];
  }
  raise_fault(Fault::QueueMisuse, At(where), "pass the tensor that this queue's own AllocTensor or DeQue returned",
              "%s: the tensor at byte %u belongs to none of this queue's %u buffers", call, address, queue.slot_count);
}

/// Changes whenever an owner's queues lose their buffers.
uint16_t generation_of(uint8_t owner) {
  const Core& core = require_running_core().core;
  return static_cast<uint16_t>(core.resets[kEveryOwner] + core.resets[owner]);
}

void check_initialised(const QueueState& queue, const char* call, Where where) {
  OPKIT_CHECK(queue.slot_count > 0, QueueMisuse, At(where), "call pipe.InitBuffer(queue, count, bytes) first",
              "%s: this queue has no buffers", call);
  OPKIT_CHECK(queue.generation == generation_of(queue.owner), QueueMisuse, At(where),
              "call InitBuffer for this queue again behind Reset",
              "%s: Reset or Destroy of the pipe or pool has taken this queue's buffers back", call);
}

uint32_t whole_blocks(uint32_t bytes) { return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes; }

uint8_t& event_owner(Pipe first, Pipe second, int8_t id) {
  return require_running_core().core.event_owner[static_cast<uint32_t>(first)][static_cast<uint32_t>(second)][id];
}

/// Gives the id back once its signal has been waited for.
void consume(int8_t& id, Pipe first, Pipe second, Where where) {
  if (id < 0) return;
  signal(Op::WaitFlag, first, second, id, where);
  release_event(first, second, id, where);
  event_owner(first, second, id) = 0;
  id = -1;
}

void produce(int8_t& id, Pipe first, Pipe second, uint8_t owner, Where where) {
  id = reserve_event(true, first, second, where);
  event_owner(first, second, id) = owner;
  signal(Op::SetFlag, first, second, id, where);
}

}  // namespace

// On the chip this counts addresses: kernels for several types place buffers that some type never touches. Whoever
// touches one behind the memory's end faults, and checks tell of all that lie there (observe/placecheck.cpp).
uint32_t pipe_allocate(PipeState& pipe, Space space, uint32_t bytes, Where where) {
  uint32_t& used = pipe.used_bytes[static_cast<uint32_t>(space)];
  OPKIT_CHECK(bytes <= UINT32_MAX - used, OutOfBounds, At(where), "make the tiles smaller or use fewer buffers",
              "InitBuffer: %u bytes more behind byte %u of %s: addresses have 32 bits", bytes, used, space_name(space));
  const uint32_t address = used;
  used += bytes;
  place(space, address, bytes, false, where);
  return address;
}

void queue_init(QueueState& queue, PipeState& pipe, uint32_t count, uint32_t bytes, Where where) {
  queue_start(queue, kPipeOwner, count, where);
  pipe.buffer_count += count;
  OPKIT_CHECK(pipe.buffer_count <= kMaxBuffers, IllegalOperand, At(where), "use fewer queues or buffers",
              "InitBuffer: this kernel has %u buffers, the limit is %u", pipe.buffer_count, kMaxBuffers);
  const uint32_t slot_bytes = whole_blocks(bytes);
  for (uint32_t i = 0; i < count; ++i) {
    queue_place(queue, i, pipe_allocate(pipe, queue.space, slot_bytes, where), slot_bytes, where);
  }
}

void queue_start(QueueState& queue, uint8_t owner, uint32_t count, Where where) {
  OPKIT_CHECK(count > 0 && count <= kQueueSlots, IllegalOperand, At(where), "give a queue 1 to 64 buffers",
              "InitBuffer: a queue with %u buffers", count);
  queue.owner = owner;
  queue.generation = generation_of(owner);
  queue.slot_count = count;
  queue.next_slot = queue.queued = queue.head = 0;
  for (uint32_t i = 0; i < count; ++i) queue.slots[i] = {};
}

void queue_place(QueueState& queue, uint32_t index, uint32_t address, uint32_t bytes, Where where) {
  OPKIT_CHECK(index < queue.slot_count, IllegalOperand, At(where), "number the buffers from 0",
              "InitBufHandle: buffer %u of a queue that has %u", index, queue.slot_count);
  OPKIT_CHECK(address % kBlockBytes == 0, Misaligned, At(where), "place buffers at multiples of 32 bytes",
              "InitBuffer: a buffer at byte %u", address);
  queue.slots[index].address = address;
  queue.slots[index].size_bytes = whole_blocks(bytes);
  place(queue.space, address, whole_blocks(bytes), true, where);
}

uint32_t queue_buffer_bytes(const QueueState& queue, uint32_t address) {
  for (uint32_t i = 0; i < queue.slot_count; ++i) {
    if (queue.slots[i].address == address) return queue.slots[i].size_bytes;
  }
  return 0;
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
    tell_tensor(ResourceEvent::Action::AllocateTensor, queue, slot, where);
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
  // As many EnQue without a DeQue as the queue is deep; depth 0 is for tensors used in place. Source: TQue, depth
  OPKIT_CHECK(queue.queued < (queue.depth == 0 ? queue.slot_count : queue.depth), QueueMisuse, At(where),
              "DeQue before the next EnQue, or raise the queue's depth",
              "EnQue: the queue holds %u tensors already, and its depth is %u", queue.queued, queue.depth);
  if (queue.has_event) produce(slot.enqueue_event, queue.fill, queue.empty, queue.owner, where);
  slot.state = SlotState::Enqueued;
  tell_tensor(ResourceEvent::Action::EnQueTensor, queue, slot, where);
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
  tell_tensor(ResourceEvent::Action::DeQueTensor, queue, slot, where);
  return slot.address;
}

void queue_free(QueueState& queue, uint32_t address, Where where) {
  check_initialised(queue, "FreeTensor", where);
  QueueSlot& slot = slot_of(queue, address, "FreeTensor", where);
  OPKIT_CHECK(slot.state != SlotState::Idle, QueueMisuse, At(where), "free each tensor once",
              "FreeTensor: this tensor was freed already");
  OPKIT_CHECK(slot.state != SlotState::Enqueued, QueueMisuse, At(where), "DeQue it first",
              "FreeTensor: this tensor is still in the queue");
  if (queue.has_event) produce(slot.free_event, queue.empty, queue.fill, queue.owner, where);
  slot.state = SlotState::Idle;
  tell_tensor(ResourceEvent::Action::FreeTensor, queue, slot, where);
}

void queue_free_events(QueueState& queue, Where where) {
  for (uint32_t i = 0; i < queue.slot_count; ++i) {
    consume(queue.slots[i].free_event, queue.empty, queue.fill, where);
    consume(queue.slots[i].enqueue_event, queue.fill, queue.empty, where);
  }
}

void free_queue_events(uint8_t owner, Where where) {
  Core& core = require_running_core().core;
  for (uint32_t first = 0; first < kPipeCount; ++first) {
    for (uint32_t second = 0; second < kPipeCount; ++second) {
      uint64_t holders = 0;
      static_assert(sizeof(core.event_owner[first][second]) == sizeof(holders));
      std::memcpy(&holders, core.event_owner[first][second], sizeof(holders));
      if (holders == 0) continue;
      for (uint32_t i = 0; i < kEventCount; ++i) {
        const uint8_t holder = core.event_owner[first][second][i];
        if (holder == 0 || (owner != kEveryOwner && holder != owner)) continue;
        auto id = static_cast<int8_t>(i);
        consume(id, static_cast<Pipe>(first), static_cast<Pipe>(second), where);
      }
    }
  }
  ++core.resets[owner];
}

void pool_start(PoolState& pool, Space space, uint32_t begin, uint32_t bytes, uint32_t buffer_limit, Where where) {
  OPKIT_CHECK(pool.space == space, IllegalOperand, At(where), "give the pool a position of the same memory",
              "InitBufPool: a pool in %s out of %s", space_name(pool.space), space_name(space));
  pool.owner = require_running_core().core.next_pool++;
  pool.begin = pool.used = begin;
  pool.end = begin + whole_blocks(bytes);
  pool.buffer_count = 0;
  pool.buffer_limit = buffer_limit;
}

void pool_share(PoolState& pool, const PoolState& shared, uint32_t bytes, uint32_t buffer_limit, Where where) {
  const uint32_t size = shared.end - shared.begin;
  OPKIT_CHECK(bytes <= size, OutOfBounds, At(where), "ask for no more than the shared pool has",
              "InitBufPool: %u bytes in a shared pool of %u", bytes, size);
  pool_start(pool, shared.space, shared.begin, size, buffer_limit, where);
}

uint32_t pool_allocate(PoolState& pool, Space space, uint32_t count, uint32_t bytes, Where where) {
  OPKIT_CHECK(pool.owner != 0, QueueMisuse, At(where), "call InitBufPool for it first",
              "InitBuffer: this pool has no memory");
  OPKIT_CHECK(pool.space == space, IllegalOperand, At(where), "use a pool at a position of the same memory",
              "InitBuffer: a buffer in %s out of a pool in %s", space_name(space), space_name(pool.space));
  pool.buffer_count += count;
  OPKIT_CHECK(pool.buffer_count <= pool.buffer_limit, IllegalOperand, At(where),
              "raise the pool's second template argument, up to 16",
              "InitBuffer: this pool has %u buffers, its limit is %u", pool.buffer_count, pool.buffer_limit);
  const uint64_t total = uint64_t{count} * whole_blocks(bytes);
  OPKIT_CHECK(pool.used + total <= pool.end, OutOfBounds, At(where), "make the pool larger or the buffers smaller",
              "InitBuffer: %llu bytes more do not fit: %u of the pool's %u bytes are given out already",
              static_cast<unsigned long long>(total), pool.used - pool.begin, pool.end - pool.begin);
  const uint32_t address = pool.used;
  pool.used += static_cast<uint32_t>(total);
  for (uint32_t i = 0; i < count; ++i)
    place(space, address + i * whole_blocks(bytes), whole_blocks(bytes), true, where);
  return address;
}

void pool_reset(PoolState& pool, Where where) {
  free_queue_events(pool.owner, where);
  pool.used = pool.begin;
  pool.buffer_count = 0;
}

int8_t fetch_event(Pipe first, Pipe second, Where where) {
  const uint8_t pool =
      require_running_core().core.event_pool[static_cast<uint32_t>(first)][static_cast<uint32_t>(second)];
  OPKIT_CHECK(pool != 0xff, QueueMisuse, At(where),
              "ReleaseEventID ids that are no longer used; queues use one for each buffer",
              "all %u event ids of this pair of pipes are in use", kEventCount);
  return static_cast<int8_t>(__builtin_ctz(~static_cast<uint32_t>(pool)));
}

int8_t allocate_event(Pipe first, Pipe second, Where where) { return reserve_event(false, first, second, where); }

void release_event(Pipe first, Pipe second, int8_t id, Where where) {
  uint8_t& pool = require_running_core().core.event_pool[static_cast<uint32_t>(first)][static_cast<uint32_t>(second)];
  const bool is_held = id >= 0 && id < static_cast<int8_t>(kEventCount) && (pool >> id & 1) != 0;
  OPKIT_CHECK(is_held, QueueMisuse, At(where), "release each id that AllocEventID returned once",
              "ReleaseEventID: id %d is not in use", id);
  pool &= static_cast<uint8_t>(~(1u << id));
  tell_event(ResourceEvent::Action::ReleaseEvent, false, first, second, id, where);
}

}  // namespace opkit
