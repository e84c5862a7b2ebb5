/// TPipe, TQue, TQueBind, TBuf, TBufPool, LocalMemAllocator. Source: Ascend C API, resource management.
#pragma once

#include <algorithm>
#include <tuple>
#include <type_traits>

#include "opkit/api/spm.h"
#include "opkit/api/tensor.h"

namespace AscendC {

/// What a queue's `mask` can point to. The sizes are those that InitBuffer is called with; the rest is reserved or for
/// the cube.
struct TQueConfig {
  bool nd2nz = false;
  bool nz2nd = false;
  bool scmBlockGroup = false;
  uint32_t bufferLen = 0;
  uint32_t bufferNumber = 0;
  uint32_t consumerSize = 0;
  TPosition consumer[8] = {};
  bool enableStaticEvtId = false;
  bool enableLoopQueue = false;
};

template <TPosition source, TPosition destination, int32_t depth, auto mask = 0>
class TQueBind {
 public:
  /// Where its buffers lie.
  static constexpr TPosition kPosition =
      source == TPosition::GM || destination == TPosition::TSCM ? destination : source;

  TQueBind() {
    state_.space = opkit::space_of(kPosition);
    state_.fill = opkit::filling_pipe(source);
    state_.empty = opkit::emptying_pipe(destination);
    state_.has_event = state_.fill != state_.empty;
    state_.depth = depth;
  }

  template <typename T>
  LocalTensor<T> AllocTensor(opkit::Where where = opkit::Where::here()) {
    return tensor<T>(opkit::queue_allocate(state_, where));
  }
  template <typename T>
  void AllocTensor(LocalTensor<T>& tensor, opkit::Where where = opkit::Where::here()) {
    tensor = AllocTensor<T>(where);
  }
  template <typename T>
  bool EnQue(const LocalTensor<T>& tensor, opkit::Where where = opkit::Where::here()) {
    opkit::queue_enqueue(state_, tensor.address(), where);
    return true;
  }
  /// On its way from global memory (GM, VECIN), or back (VECOUT, GM): a queue from VECIN to VECOUT holds a tensor for
  /// both, one after the other. Source: TQue, EnQue
  template <TPosition from, TPosition to, typename T>
  bool EnQue(const LocalTensor<T>& tensor, opkit::Where where = opkit::Where::here()) {
    const OnTheWay<from, to> pipes(state_);
    return EnQue(tensor, where);
  }
  template <typename T>
  LocalTensor<T> DeQue(opkit::Where where = opkit::Where::here()) {
    return tensor<T>(opkit::queue_dequeue(state_, where));
  }
  /// Of a tensor that the kernel has already. Source: public operators; no document has this form.
  void DeQue(opkit::Where where = opkit::Where::here()) { opkit::queue_dequeue(state_, where); }
  template <typename T>
  void DeQue(LocalTensor<T>& tensor, opkit::Where where = opkit::Where::here()) {
    tensor = DeQue<T>(where);
  }
  template <TPosition from, TPosition to, typename T>
  LocalTensor<T> DeQue(opkit::Where where = opkit::Where::here()) {
    const OnTheWay<from, to> pipes(state_);
    return DeQue<T>(where);
  }
  template <typename T>
  void FreeTensor(const LocalTensor<T>& tensor, opkit::Where where = opkit::Where::here()) {
    opkit::queue_free(state_, tensor.address(), where);
  }
  void FreeAllEvent(opkit::Where where = opkit::Where::here()) { opkit::queue_free_events(state_, where); }

  bool VacantInQue() const { return state_.queued < state_.depth; }
  bool HasTensorInQue() const { return state_.queued > 0; }
  int32_t GetTensorCountInQue() const { return static_cast<int32_t>(state_.queued); }
  bool HasIdleBuffer() const {
    for (uint32_t i = 0; i < state_.slot_count; ++i) {
      if (state_.slots[i].state == opkit::SlotState::Idle) return true;
    }
    return false;
  }

  /// For pools of the kernel's own: EXTERN_IMPL_BUFPOOL.
  void InitStartBufHandle(TBufHandle, uint8_t num, uint32_t, opkit::Where where = opkit::Where::here()) {
    opkit::queue_start(state_, opkit::kPipeOwner, num, where);
  }
  template <typename Pool>
  void InitBufHandle(Pool* pool, uint32_t index, TBufHandle, uint32_t curPoolAddr, uint32_t len,
                     opkit::Where where = opkit::Where::here()) {
    state_.owner = pool->opkit_pool().owner;
    opkit::queue_place(state_, index, curPoolAddr, len, where);
  }

  /// For TPipe::InitBuffer.
  opkit::QueueState& state() { return state_; }

 private:
  /// The pipes of a part of a tensor's way, while it lives.
  template <TPosition from, TPosition to>
  class OnTheWay {
   public:
    explicit OnTheWay(opkit::QueueState& state)
        : state_(state), fill_(state.fill), empty_(state.empty), has_event_(state.has_event) {
      constexpr TPosition position = from == TPosition::GM ? to : from;
      if (from != TPosition::GM && to != TPosition::GM) return;
      state_.fill = opkit::filling_pipe(position);
      state_.empty = opkit::emptying_pipe(position);
      state_.has_event = state_.fill != state_.empty;
    }
    ~OnTheWay() {
      state_.fill = fill_;
      state_.empty = empty_;
      state_.has_event = has_event_;
    }

   private:
    opkit::QueueState& state_;
    opkit::Pipe fill_;
    opkit::Pipe empty_;
    bool has_event_;
  };

  template <typename T>
  LocalTensor<T> tensor(uint32_t address) const {
    const uint32_t bytes = opkit::queue_buffer_bytes(state_, address);
    return LocalTensor<T>::within(kPosition, address, opkit::elements_in<T>(bytes), address, bytes);
  }

  opkit::QueueState state_;
};

/// A queue whose tensors are filled and emptied on the pipes of one position: VECIN by MTE2 for V, VECOUT by V for
/// MTE3.
template <TPosition position, int32_t depth, auto mask = 0>
class TQue : public TQueBind<position, position, depth, mask> {};

/// Buffers in L1 that vector cores and the Matmul objects pass on.
template <TPosition position, int32_t depth = 1, auto mask = 0>
using TSCM = TQueBind<position, TPosition::TSCM, depth, mask>;

template <TPosition position = TPosition::VECCALC>
class TBuf {
 public:
  TBuf() = default;

  template <typename T>
  LocalTensor<T> Get(opkit::Where where = opkit::Where::here()) {
    return GetWithOffset<T>(opkit::elements_in<T>(size_bytes_), 0, where);
  }
  template <typename T>
  LocalTensor<T> Get(uint32_t count, opkit::Where where = opkit::Where::here()) {
    return GetWithOffset<T>(count, 0, where);
  }
  template <typename T>
  LocalTensor<T> GetWithOffset(uint32_t count, uint32_t offset_bytes, opkit::Where where = opkit::Where::here()) {
    if (opkit::bytes_of<T>(count) + offset_bytes > size_bytes_) {
      opkit::illegal_operand("TBuf: the tensor asked for is larger than the buffer that InitBuffer gave it", where);
    }
    return LocalTensor<T>::within(position, address_ + offset_bytes, count, address_, size_bytes_);
  }
  template <typename T>
  void EnQue(const LocalTensor<T>&) {}
  template <typename T>
  LocalTensor<T> DeQue(opkit::Where where = opkit::Where::here()) {
    return Get<T>(where);
  }
  template <typename T>
  LocalTensor<T> AllocTensor(opkit::Where where = opkit::Where::here()) {
    return Get<T>(where);
  }
  template <typename T>
  void FreeTensor(const LocalTensor<T>&) {}

  /// What SetAddr of a tensor takes; a TBuf has one buffer.
  TBuffAddr GetBufferAddr(TBufHandle) const {
    return LocalTensor<uint8_t>::within(position, address_, size_bytes_, address_, size_bytes_).address_;
  }

  void InitStartBufHandle(TBufHandle, uint8_t, uint32_t) {}
  template <typename Pool>
  void InitBufHandle(Pool*, uint32_t, TBufHandle, uint32_t curPoolAddr, uint32_t len) {
    place(curPoolAddr, len);
  }

  /// For TPipe::InitBuffer.
  void place(uint32_t address, uint32_t size_bytes) {
    address_ = address;
    size_bytes_ = size_bytes;
  }

 private:
  uint32_t address_ = 0;
  uint32_t size_bytes_ = 0;
};

/// A stretch of one memory that queues and buffers are given parts of, again after each Reset. Two pools may share one.
template <TPosition position, uint32_t bufIDSize = 4>
class TBufPool {
 public:
  static_assert(bufIDSize <= 16, "a TBufPool has 16 buffers at the most");

  TBufPool() { pool_.space = opkit::space_of(position); }

  template <typename Queue>
  bool InitBuffer(Queue& queue, uint8_t num, uint32_t len, opkit::Where where = opkit::Where::here()) {
    opkit::queue_start(queue.state(), pool_.owner, num, where);
    const uint32_t bytes = (len + ONE_BLK_SIZE - 1) / ONE_BLK_SIZE * ONE_BLK_SIZE;
    const uint32_t address = opkit::pool_allocate(pool_, opkit::space_of(Queue::kPosition), num, len, where);
    for (uint32_t i = 0; i < num; ++i) opkit::queue_place(queue.state(), i, address + i * bytes, bytes, where);
    return true;
  }
  template <TPosition buffer_position>
  bool InitBuffer(TBuf<buffer_position>& buffer, uint32_t len, opkit::Where where = opkit::Where::here()) {
    const uint32_t bytes = (len + ONE_BLK_SIZE - 1) / ONE_BLK_SIZE * ONE_BLK_SIZE;
    buffer.place(opkit::pool_allocate(pool_, opkit::space_of(buffer_position), 1, len, where), bytes);
    return true;
  }
  template <typename Pool>
  bool InitBufPool(Pool& bufPool, uint32_t len, opkit::Where where = opkit::Where::here()) {
    const uint32_t address = opkit::pool_allocate(pool_, bufPool.opkit_pool().space, 1, len, where);
    opkit::pool_start(bufPool.opkit_pool(), pool_.space, address, len, Pool::kBufferLimit, where);
    return true;
  }
  template <typename Pool, typename Shared>
  bool InitBufPool(Pool& bufPool, uint32_t len, Shared& shareBuf, opkit::Where where = opkit::Where::here()) {
    opkit::pool_share(bufPool.opkit_pool(), shareBuf.opkit_pool(), len, Pool::kBufferLimit, where);
    return true;
  }
  void Reset(opkit::Where where = opkit::Where::here()) { opkit::pool_reset(pool_, where); }

  static constexpr uint32_t kBufferLimit = bufIDSize;
  opkit::PoolState& opkit_pool() { return pool_; }

 private:
  opkit::PoolState pool_;
};

class TPipe {
 public:
  explicit TPipe(opkit::Where where = opkit::Where::here()) : where_(where) { opkit::set_kernel_pipe(this); }
  /// A copy has given out what the other has, and is not the kernel's pipe: structs that hold one are passed by value.
  TPipe(const TPipe& other) : state_(other.state_), where_(other.where_) {}
  /// Takes what the other one has given out, so that what follows lies behind it: kernels hand pipes over so.
  TPipe& operator=(const TPipe&) = default;
  ~TPipe() {
    if (opkit::kernel_pipe() != this) return;
    opkit::free_queue_events(opkit::kEveryOwner, where_);
    opkit::set_kernel_pipe(nullptr);
  }

  void Init() { opkit::set_kernel_pipe(this); }
  void Reset(opkit::Where where = opkit::Where::here()) {
    opkit::free_queue_events(opkit::kEveryOwner, where);
    state_ = {};
  }
  /// Waits for all pipes, too.
  void Destroy(opkit::Where where = opkit::Where::here()) {
    Reset(where);
    opkit::Instr barrier;
    barrier.op = opkit::Op::PipeBarrier;
    barrier.pipe = opkit::Pipe::ALL;
    barrier.where = where;
    opkit::issue(barrier);
  }
  void DestroyWithoutPipeAll(opkit::Where where = opkit::Where::here()) { Reset(where); }

  template <typename Queue>
  bool InitBuffer(Queue& queue, uint8_t count, uint32_t bytes, opkit::Where where = opkit::Where::here()) {
    opkit::queue_init(queue.state(), state_, count, bytes, where);
    return true;
  }
  template <TPosition position>
  bool InitBuffer(TBuf<position>& buffer, uint32_t bytes, opkit::Where where = opkit::Where::here()) {
    const uint32_t rounded = (bytes + ONE_BLK_SIZE - 1) / ONE_BLK_SIZE * ONE_BLK_SIZE;
    buffer.place(opkit::pipe_allocate(state_, opkit::space_of(position), rounded, where), rounded);
    return true;
  }
  /// Buffers at given places: a pair of address and length in bytes for each.
  template <typename Queue, typename U, typename V, typename... Addresses>
  bool InitBuffer(Queue& queue, const std::tuple<U, V>& addr0, const Addresses&... addrs) {
    const opkit::Where where = opkit::Where::here();
    opkit::queue_start(queue.state(), opkit::kPipeOwner, 1 + sizeof...(addrs), where);
    uint32_t index = 0;
    const auto place = [&](const auto& pair) {
      opkit::queue_place(queue.state(), index++, static_cast<uint32_t>(std::get<0>(pair)),
                         static_cast<uint32_t>(std::get<1>(pair)), where);
    };
    place(addr0);
    (place(addrs), ...);
    return true;
  }

  template <typename Pool>
  bool InitBufPool(Pool& bufPool, uint32_t len, opkit::Where where = opkit::Where::here()) {
    const opkit::Space space = bufPool.opkit_pool().space;
    const uint32_t rounded = (len + ONE_BLK_SIZE - 1) / ONE_BLK_SIZE * ONE_BLK_SIZE;
    const uint32_t address = opkit::pipe_allocate(state_, space, rounded, where);
    opkit::pool_start(bufPool.opkit_pool(), space, address, len, Pool::kBufferLimit, where);
    return true;
  }
  template <typename Pool, typename Shared>
  bool InitBufPool(Pool& bufPool, uint32_t len, Shared& shareBuf, opkit::Where where = opkit::Where::here()) {
    opkit::pool_share(bufPool.opkit_pool(), shareBuf.opkit_pool(), len, Pool::kBufferLimit, where);
    return true;
  }

  /// Where the memory behind a position starts in the emulator.
  uint8_t* GetBaseAddr(int8_t logicPos) {
    return opkit::local_memory(opkit::space_of(static_cast<TPosition>(logicPos)));
  }

  template <HardEvent event>
  TEventID AllocEventID(opkit::Where where = opkit::Where::here()) {
    return opkit::allocate_event(opkit::first_pipe(event), opkit::second_pipe(event), where);
  }
  template <HardEvent event>
  void ReleaseEventID(TEventID id, opkit::Where where = opkit::Where::here()) {
    opkit::release_event(opkit::first_pipe(event), opkit::second_pipe(event), id, where);
  }
  template <HardEvent event>
  TEventID FetchEventID(opkit::Where where = opkit::Where::here()) {
    return FetchEventID(event, where);
  }
  TEventID FetchEventID(HardEvent event, opkit::Where where = opkit::Where::here()) {
    return opkit::fetch_event(opkit::first_pipe(event), opkit::second_pipe(event), where);
  }

  template <typename T>
  void InitSpmBuffer(const GlobalTensor<T>& workspace, const int32_t bufferSize) {
    spm_ = {reinterpret_cast<uint64_t>(workspace.GetPhyAddr()), static_cast<uint64_t>(bufferSize), false};
  }
  /// In L1; only arch 2002 has a way from UB to there and back.
  void InitSpmBuffer(const int32_t bufferSize, opkit::Where where = opkit::Where::here()) {
    if (!opkit::kIsCoupled) opkit::illegal_operand("InitSpmBuffer: on this chip it takes a workspace", where);
    const uint32_t bytes = static_cast<uint32_t>(bufferSize);
    spm_ = {opkit::pipe_allocate(state_, opkit::space_of(TPosition::SPM), bytes, where), bytes, true};
  }
  template <typename T>
  void WriteSpmBuffer(const LocalTensor<T>& writeBuffer, const DataCopyParams& copyParams, int32_t writeOffset = 0,
                      opkit::Where where = opkit::Where::here()) {
    spm_.move<true>(writeBuffer, copyParams, writeOffset, where);
  }
  template <typename T>
  void WriteSpmBuffer(const LocalTensor<T>& writeBuffer, const int32_t writeSize, int32_t writeOffset = 0,
                      opkit::Where where = opkit::Where::here()) {
    spm_.move<true>(writeBuffer, writeSize, writeOffset, where);
  }
  template <typename T>
  void ReadSpmBuffer(const LocalTensor<T>& readBuffer, const DataCopyParams& copyParams, int32_t readOffset = 0,
                     opkit::Where where = opkit::Where::here()) {
    spm_.move<false>(readBuffer, copyParams, readOffset, where);
  }
  template <typename T>
  void ReadSpmBuffer(const LocalTensor<T>& readBuffer, const int32_t readSize, int32_t readOffset = 0,
                     opkit::Where where = opkit::Where::here()) {
    spm_.move<false>(readBuffer, readSize, readOffset, where);
  }

  /// For opkit::taken_bytes.
  const opkit::PipeState& state() const { return state_; }

 private:
  opkit::PipeState state_;
  opkit::SpmBuffer spm_;
  opkit::Where where_;  ///< where it was made: what its destructor does is reported there
};

inline TPipe* GetTPipePtr() { return static_cast<TPipe*>(opkit::kernel_pipe()); }

}  // namespace AscendC

namespace opkit {

/// Up to where InitBuffer has given out a memory of this core: to its end at the most.
inline uint32_t taken_bytes(Space space) {
  const AscendC::TPipe* pipe = AscendC::GetTPipePtr();
  return pipe == nullptr ? 0
                         : std::min(pipe->state().used_bytes[static_cast<uint32_t>(space)], local_memory_bytes(space));
}

}  // namespace opkit

namespace AscendC {

/// Gives `popLocal` all of the position's memory that no InitBuffer has taken. Source: Ascend C API, PopStackBuffer.
template <typename T, TPosition position>
inline bool PopStackBuffer(LocalTensor<T>& popLocal) {
  constexpr opkit::Space space = opkit::space_of(position);
  const uint32_t used = opkit::taken_bytes(space);
  popLocal = LocalTensor<T>(position, used, opkit::elements_in<T>(opkit::local_memory_bytes(space) - used));
  return true;
}

enum class Hardware : uint8_t { GM, UB, L1, L0A, L0B, L0C, BIAS, FIXBUF, MAX };

/// Gives out addresses of one memory, one after another. Source: Ascend C API, LocalMemAllocator.
template <Hardware hardware = Hardware::UB>
class LocalMemAllocator {
 public:
  template <TPosition position, typename T>
  LocalTensor<T> Alloc(uint32_t count, opkit::Where where = opkit::Where::here()) {
    const uint32_t bytes = (opkit::bytes_of<T>(count) + ONE_BLK_SIZE - 1) / ONE_BLK_SIZE * ONE_BLK_SIZE;
    opkit::PipeState until_here;
    until_here.used_bytes[static_cast<uint32_t>(opkit::space_of(position))] = next_;
    const uint32_t address = opkit::pipe_allocate(until_here, opkit::space_of(position), bytes, where);
    next_ = address + bytes;
    return LocalTensor<T>(position, address, count);
  }
  template <typename T, uint32_t count>
  LocalTensor<T> Alloc(opkit::Where where = opkit::Where::here()) {
    return Alloc<default_position(), T>(count, where);
  }
  template <typename T>
  LocalTensor<T> Alloc(uint32_t count, opkit::Where where = opkit::Where::here()) {
    return Alloc<default_position(), T>(count, where);
  }
  template <TPosition position, typename T, uint32_t count>
  LocalTensor<T> Alloc(opkit::Where where = opkit::Where::here()) {
    return Alloc<position, T>(count, where);
  }
  uint32_t GetCurAddr() const { return next_; }

 private:
  static constexpr TPosition default_position() {
    switch (hardware) {
      case Hardware::L1: return TPosition::A1;
      case Hardware::L0A: return TPosition::A2;
      case Hardware::L0B: return TPosition::B2;
      case Hardware::L0C: return TPosition::CO1;
      case Hardware::BIAS: return TPosition::C2;
      case Hardware::FIXBUF: return TPosition::C2PIPE2GM;
      default: return TPosition::VECIN;
    }
  }
  uint32_t next_ = 0;
};

}  // namespace AscendC

// Kernels call it without a namespace, too.
using AscendC::GetTPipePtr;

/// The members of a pool that the kernel defines itself. Source: Ascend C API, EXTERN_IMPL_BUFPOOL.
#define EXTERN_IMPL_BUFPOOL(name, position, size)                                                        \
  void Init() { opkit_pool_.space = ::opkit::space_of(position); }                                       \
  void Reset(::opkit::Where where = ::opkit::Where::here()) { ::opkit::pool_reset(opkit_pool_, where); } \
  ::AscendC::TBufHandle GetBufHandle(uint8_t offset) {                                                   \
    return reinterpret_cast<::AscendC::TBufHandle>(&opkit_pool_) + offset;                               \
  }                                                                                                      \
  void SetCurAddr(uint32_t address) { opkit_pool_.used = address; }                                      \
  uint32_t GetCurAddr() { return opkit_pool_.used; }                                                     \
  void SetCurBufSize(uint8_t count) { opkit_pool_.buffer_count = count; }                                \
  uint8_t GetCurBufSize() { return static_cast<uint8_t>(opkit_pool_.buffer_count); }                     \
  static constexpr uint32_t kBufferLimit = size;                                                         \
  ::opkit::PoolState& opkit_pool() { return opkit_pool_; }                                               \
  ::opkit::PoolState opkit_pool_
