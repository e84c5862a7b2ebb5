/// TPipe, TQue, TQueBind, TBuf, LocalMemAllocator. Source: Ascend C API, resource management.
#pragma once

#include "opkit/api/tensor.h"

namespace AscendC {

template <TPosition source, TPosition destination, int32_t depth, auto mask = 0>
class TQueBind {
 public:
  static constexpr TPosition kPosition = source;

  TQueBind() {
    state_.space = opkit::space_of(source == TPosition::GM ? destination : source);
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
  template <TPosition, TPosition, typename T>
  bool EnQue(const LocalTensor<T>& tensor, opkit::Where where = opkit::Where::here()) {
    return EnQue(tensor, where);
  }
  template <typename T>
  LocalTensor<T> DeQue(opkit::Where where = opkit::Where::here()) {
    return tensor<T>(opkit::queue_dequeue(state_, where));
  }
  template <typename T>
  void DeQue(LocalTensor<T>& tensor, opkit::Where where = opkit::Where::here()) {
    tensor = DeQue<T>(where);
  }
  template <TPosition, TPosition, typename T>
  LocalTensor<T> DeQue(opkit::Where where = opkit::Where::here()) {
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

  /// For TPipe::InitBuffer.
  opkit::QueueState& state() { return state_; }

 private:
  template <typename T>
  LocalTensor<T> tensor(uint32_t address) const {
    return LocalTensor<T>::within(source == TPosition::GM ? destination : source, address,
                                  state_.slot_bytes / sizeof(T), address, state_.slot_bytes);
  }

  opkit::QueueState state_;
};

/// A queue whose tensors are filled and emptied on the pipes of one position: VECIN by MTE2 for V, VECOUT by V for
/// MTE3.
template <TPosition position, int32_t depth, auto mask = 0>
class TQue : public TQueBind<position, position, depth, mask> {};

template <TPosition position = TPosition::VECCALC>
class TBuf {
 public:
  TBuf() = default;

  template <typename T>
  LocalTensor<T> Get(opkit::Where where = opkit::Where::here()) {
    return GetWithOffset<T>(size_bytes_ / sizeof(T), 0, where);
  }
  template <typename T>
  LocalTensor<T> Get(uint32_t count, opkit::Where where = opkit::Where::here()) {
    return GetWithOffset<T>(count, 0, where);
  }
  template <typename T>
  LocalTensor<T> GetWithOffset(uint32_t count, uint32_t offset_bytes, opkit::Where where = opkit::Where::here()) {
    if (uint64_t{count} * sizeof(T) + offset_bytes > size_bytes_) {
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

  /// For TPipe::InitBuffer.
  void place(uint32_t address, uint32_t size_bytes) {
    address_ = address;
    size_bytes_ = size_bytes;
  }

 private:
  uint32_t address_ = 0;
  uint32_t size_bytes_ = 0;
};

class TPipe {
 public:
  TPipe() { opkit::set_kernel_pipe(this); }
  TPipe(const TPipe&) = delete;
  TPipe& operator=(const TPipe&) = delete;
  ~TPipe() {
    if (opkit::kernel_pipe() == this) opkit::set_kernel_pipe(nullptr);
  }

  void Init() { opkit::set_kernel_pipe(this); }
  void Reset() { state_ = {}; }
  void Destroy() { state_ = {}; }

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

 private:
  opkit::PipeState state_;
};

inline TPipe* GetTPipePtr() { return static_cast<TPipe*>(opkit::kernel_pipe()); }

enum class Hardware : uint8_t { GM, UB, L1, L0A, L0B, L0C, BIAS, FIXBUF, MAX };

/// Gives out addresses of one memory, one after another. Source: Ascend C API, LocalMemAllocator.
template <Hardware hardware = Hardware::UB>
class LocalMemAllocator {
 public:
  template <TPosition position, typename T>
  LocalTensor<T> Alloc(uint32_t count, opkit::Where where = opkit::Where::here()) {
    const uint32_t bytes = (count * sizeof(T) + ONE_BLK_SIZE - 1) / ONE_BLK_SIZE * ONE_BLK_SIZE;
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
