/// GlobalTensor and LocalTensor. Source: Ascend C API, data structures.
#pragma once

#include <cstring>

#include "opkit/api/base.h"
#include "opkit/api/half.h"
#include "opkit/api/runtime_abi.h"
#include "opkit/api/shape_info.h"

namespace opkit {

template <typename T>
struct DTypeOf;
#define OPKIT_DTYPE(type, code)                 \
  template <>                                   \
  struct DTypeOf<type> {                        \
    static constexpr DType value = DType::code; \
  };
OPKIT_DTYPE(half, F16)
OPKIT_DTYPE(bfloat16_t, BF16)
OPKIT_DTYPE(float, F32)
OPKIT_DTYPE(int8_t, S8)
OPKIT_DTYPE(uint8_t, U8)
OPKIT_DTYPE(char, S8)
OPKIT_DTYPE(int16_t, S16)
OPKIT_DTYPE(uint16_t, U16)
OPKIT_DTYPE(int32_t, S32)
OPKIT_DTYPE(uint32_t, U32)
OPKIT_DTYPE(int64_t, S64)
OPKIT_DTYPE(uint64_t, U64)
OPKIT_DTYPE(bool, BOOL)
OPKIT_DTYPE(double, F64)
OPKIT_DTYPE(AscendC::int4b_t, S4)
#undef OPKIT_DTYPE

template <typename T>
constexpr DType dtype_of() {
  return DTypeOf<T>::value;
}

/// Bytes of `count` elements, and elements in `bytes`.
template <typename T>
constexpr uint64_t bytes_of(uint64_t count) {
  return span_bytes(dtype_of<T>(), count);
}
template <typename T>
constexpr uint64_t elements_in(uint64_t bytes) {
  return bytes * 2 / span_bytes(dtype_of<T>(), 2);
}

/// The bits of a scalar, zero-extended.
template <typename T>
inline uint64_t bits_of(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <typename T>
inline T value_of(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

/// Writes a local tensor's elements to standard output, a data block a line.
OPKIT_API void print_tensor(const Operand& tensor, uint32_t count, Where where);

/// Checks a scalar access and tells observers of it.
inline uint8_t* access_element(Op op, const Operand& element, Where where, uint8_t mode = 0) {
  Instr instr;
  instr.op = op;
  instr.mode = mode;
  instr.pipe = Pipe::S;
  instr.where = where;
  instr.source_count = op == Op::GetValue ? 1 : 0;
  (op == Op::GetValue ? instr.src[0] : instr.dst) = element;
  issue(instr);
  return element.space == Space::GM ? reinterpret_cast<uint8_t*>(element.address)
                                    : local_memory(element.space) + element.address;
}

/// What a matrix instruction takes from L0C, or leaves there: addresses, which can lie nowhere else. So a tensor that
/// nothing has placed, which has address 0 and no position, is L0C from its start: kernels of public operator libraries
/// that use one accumulator declare it and do no more.
inline Operand accumulator(Operand operand) {
  if (operand.end != 0) return operand;
  operand.space = Space::L0C;
  operand.end = local_memory_bytes(Space::L0C);
  return operand;
}

}  // namespace opkit

namespace AscendC {

/// What a tensor's type argument says its elements are.
template <typename T>
using PrimT = T;

enum CacheRwMode { READ = 1, WRITE = 2, RW = 3 };
using TTagType = int32_t;

template <typename T>
class GlobalTensor {
 public:
  using PrimType = T;

  GlobalTensor() = default;

  void SetGlobalBuffer(T* buffer, uint64_t size) {
    address_ = begin_ = reinterpret_cast<uint64_t>(buffer);
    size_ = size;
  }
  void SetGlobalBuffer(T* buffer) { SetGlobalBuffer(buffer, 0); }

  const T* GetPhyAddr() const { return reinterpret_cast<const T*>(address_); }
  T* GetPhyAddr(uint64_t offset) const { return reinterpret_cast<T*>(address_) + offset; }
  uint64_t GetSize() const { return size_; }

  T GetValue(uint64_t offset, opkit::Where where = opkit::Where::here()) const {
    T value;
    std::memcpy(&value, opkit::access_element(opkit::Op::GetValue, element(offset), where), sizeof(T));
    return value;
  }
  void SetValue(uint64_t offset, T value, opkit::Where where = opkit::Where::here()) const {
    std::memcpy(opkit::access_element(opkit::Op::SetValue, element(offset), where), &value, sizeof(T));
  }
  T& operator()(uint64_t offset, opkit::Where where = opkit::Where::here()) const {
    return *reinterpret_cast<T*>(opkit::access_element(opkit::Op::GetValue, element(offset), where, opkit::kReference));
  }
  GlobalTensor operator[](uint64_t offset) const {
    GlobalTensor tensor = *this;
    tensor.address_ += opkit::bytes_of<T>(offset);
    tensor.size_ = size_ > offset ? size_ - offset : 0;
    return tensor;
  }
  template <typename U>
  GlobalTensor<U> ReinterpretCast() const {
    GlobalTensor<U> tensor;
    tensor.SetGlobalBuffer(reinterpret_cast<U*>(address_), opkit::elements_in<U>(opkit::bytes_of<T>(size_)));
    return tensor;
  }
  /// Cache hints do not change results, only what the timing model charges; it has one hint for reads and writes.
  template <CacheRwMode rwMode = CacheRwMode::RW>
  void SetL2CacheHint(CacheMode mode) {
    bypasses_l2_ = mode == CacheMode::CACHE_MODE_DISABLE;
  }
  void SetShapeInfo(const ShapeInfo& shapeInfo) { shape_info_ = shapeInfo; }
  ShapeInfo GetShapeInfo() const { return shape_info_; }

  opkit::Operand operand() const {
    opkit::Operand operand;
    operand.space = opkit::Space::GM;
    operand.dtype = opkit::dtype_of<T>();
    operand.address = address_;
    operand.begin = begin_;
    operand.end = ~0ull;
    operand.bypasses_l2 = bypasses_l2_;
    return operand;
  }

 private:
  opkit::Operand element(uint64_t offset) const {
    static_assert(opkit::dtype_of<T>() != opkit::DType::S4, "int4b_t has no scalars: reinterpret the tensor first");
    opkit::Operand operand = this->operand();
    operand.address += opkit::bytes_of<T>(offset);
    return operand;
  }

  uint64_t address_ = 0;
  uint64_t begin_ = 0;  ///< what SetGlobalBuffer was given
  uint64_t size_ = 0;
  ShapeInfo shape_info_;
  bool bypasses_l2_ = false;
};

namespace detail {

/// The right-hand side of `dst = src0 + src1`: an instruction that lacks its destination. D is the element type of
/// the destination that it can be assigned to. A `count` of zero means the whole destination.
template <typename D>
struct TensorExpression {
  opkit::Instr instr;
};

/// The conversion to this type happens at the assignment, so `where` is the user's line.
template <typename D>
struct LocatedExpression {
  opkit::Instr instr;
  LocatedExpression(const TensorExpression<D>& expression, opkit::Where where = opkit::Where::here())  // NOLINT
      : instr(expression.instr) {
    instr.where = where;
  }
};

}  // namespace detail

/// A buffer of a local memory, by where it starts.
using TBufHandle = uint8_t*;

/// Where a local tensor lies. Kernels read and set it as a tensor's `address_`.
struct TBuffAddr {
  uint8_t logicPos = static_cast<uint8_t>(TPosition::VECCALC);
  uint32_t dataLen = 0;     ///< bytes of its elements
  uint32_t bufferAddr = 0;  ///< where it starts in its memory, in bytes
  uint32_t begin = 0;       ///< the buffer that it lies in, which bounds it
  uint32_t end = 0;
};

template <typename T>
class LocalTensor {
 public:
  using PrimType = T;

  LocalTensor() = default;

  /// A tensor at a fixed address of the position's memory: the static-tensor dialect. In L0A, L0B and L0C the memory
  /// bounds it: instructions pad matrices to whole fractals there, beyond the elements that a kernel counts.
  LocalTensor(TPosition position, uint32_t address, uint32_t size)
      : address_{
            static_cast<uint8_t>(position), static_cast<uint32_t>(opkit::bytes_of<T>(size)), address, address,
            opkit::holds_fractals(position) ? UINT32_MAX : static_cast<uint32_t>(address + opkit::bytes_of<T>(size))} {}

  /// Becomes so many bytes of its position's memory, from an offset on; kernels set `address_.logicPos` before or
  /// behind. Source: public kernels (OcBuffer of ops-transformer, GemmV3, TransposeBatchMatMul).
  void InitBuffer(uint32_t offset, uint32_t bytes) {
    address_ = {address_.logicPos, bytes, offset, offset, offset + bytes};
  }

  /// For TQue, TBuf and allocators: `size` elements at `address`, inside a buffer of `buffer_bytes`.
  static LocalTensor within(TPosition position, uint32_t address, uint32_t size, uint32_t buffer,
                            uint32_t buffer_bytes) {
    LocalTensor tensor(position, address, size);
    tensor.address_.begin = buffer;
    tensor.address_.end = buffer + buffer_bytes;
    return tensor;
  }

  uint64_t GetPhyAddr(uint32_t offset = 0, opkit::Where where = opkit::Where::here()) const {
    return reinterpret_cast<uint64_t>(
        opkit::local_address(opkit::space_of(GetPosition()), address() + opkit::bytes_of<T>(offset), where));
  }
  T GetValue(uint32_t index, opkit::Where where = opkit::Where::here()) const {
    T value;
    std::memcpy(&value, opkit::access_element(opkit::Op::GetValue, element(index), where), sizeof(T));
    return value;
  }
  template <typename U>
  void SetValue(uint32_t index, U value, opkit::Where where = opkit::Where::here()) const {
    const T converted = static_cast<T>(value);
    std::memcpy(opkit::access_element(opkit::Op::SetValue, element(index), where), &converted, sizeof(T));
  }
  T& operator()(uint32_t index, opkit::Where where = opkit::Where::here()) const {
    return *reinterpret_cast<T*>(opkit::access_element(opkit::Op::SetValue, element(index), where));
  }
  LocalTensor operator[](uint32_t offset) const {
    LocalTensor tensor = *this;
    const uint32_t bytes = opkit::bytes_of<T>(offset);
    tensor.address_.bufferAddr += bytes;
    tensor.address_.dataLen = GetLength() > bytes ? GetLength() - bytes : 0;
    return tensor;
  }
  template <typename U>
  LocalTensor<U> ReinterpretCast() const {
    LocalTensor<U> tensor;
    tensor.SetAddr(address_);
    return tensor;
  }
  TPosition GetPosition() const { return static_cast<TPosition>(address_.logicPos); }
  uint32_t GetSize() const { return opkit::elements_in<T>(address_.dataLen); }
  uint32_t GetLength() const { return address_.dataLen; }
  void SetSize(uint32_t size) { address_.dataLen = opkit::bytes_of<T>(size); }
  void SetBufferLen(uint32_t bytes) { address_.dataLen = bytes; }
  void SetAddr(const TBuffAddr& address) { address_ = address; }
  TBufHandle GetBufferHandle() const { return reinterpret_cast<TBufHandle>(static_cast<uintptr_t>(address_.begin)); }

  /// Becomes `src` from element `offset` on; src's elements may have another type.
  template <typename U>
  void SetAddrWithOffset(LocalTensor<U>& src, uint32_t offset) {
    *this = src[offset].template ReinterpretCast<T>();
  }
  void SetUserTag(TTagType tag) { user_tag_ = tag; }
  TTagType GetUserTag() const { return user_tag_; }
  void SetShapeInfo(const ShapeInfo& shapeInfo) { shape_info_ = shapeInfo; }
  ShapeInfo GetShapeInfo() const { return shape_info_; }

  /// Prints its elements, a data block a line.
  void Print(opkit::Where where = opkit::Where::here()) const { Print(GetSize(), where); }
  void Print(uint32_t count, opkit::Where where = opkit::Where::here()) const {
    opkit::print_tensor(operand(), count, where);
  }

  /// Where it starts in its memory, in bytes.
  uint32_t address() const { return address_.bufferAddr; }

  opkit::Operand operand() const {
    opkit::Operand operand;
    operand.space = opkit::space_of(GetPosition());
    operand.dtype = opkit::dtype_of<T>();
    operand.address = address_.bufferAddr;
    operand.begin = address_.begin;
    operand.end = address_.end;
    return operand;
  }

  /// `dst = src0 + src1` and the like; vector.h makes the expressions.
  LocalTensor& operator=(detail::LocatedExpression<T> expression) {
    expression.instr.dst = operand();
    if (expression.instr.count == 0) expression.instr.count = GetSize();
    opkit::issue(expression.instr);
    return *this;
  }

  TBuffAddr address_;

 private:
  opkit::Operand element(uint32_t index) const {
    static_assert(opkit::dtype_of<T>() != opkit::DType::S4, "int4b_t has no scalars: reinterpret the tensor first");
    opkit::Operand operand = this->operand();
    operand.address += opkit::bytes_of<T>(index);
    return operand;
  }

  TTagType user_tag_ = 0;
  ShapeInfo shape_info_;
};

}  // namespace AscendC
