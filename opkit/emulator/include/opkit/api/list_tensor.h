/// Several tensors behind one kernel argument. Source: Ascend C API, auxiliary data structures, ListTensorDesc and
/// TensorDesc.
#pragma once

#include "opkit/api/tensor.h"

namespace AscendC {

template <typename T>
class TensorDesc {
 public:
  void SetShapeAddr(uint64_t* shapePtr) { shape_ = shapePtr; }
  uint64_t GetDim() const { return dimensions_; }
  uint64_t GetIndex() const { return index_; }
  uint64_t GetShape(uint32_t offset) const { return shape_[offset]; }
  T* GetDataPtr() const { return data_; }
  GlobalTensor<T> GetDataObj() const {
    GlobalTensor<T> tensor;
    tensor.SetGlobalBuffer(data_);
    return tensor;
  }

 private:
  friend class ListTensorDesc;
  uint64_t* shape_ = nullptr;
  uint64_t dimensions_ = 0;
  uint64_t index_ = 0;
  T* data_ = nullptr;
};

/// In memory: the offset of the addresses in bytes; for each tensor a word with its rank (low half) and index (high
/// half), then its shape; then the addresses. All words have 64 bits.
class ListTensorDesc {
 public:
  ListTensorDesc() = default;
  explicit ListTensorDesc(void* data, uint32_t length = 0xffffffff, uint32_t shapeSize = 0xffffffff) {
    Init(data, length, shapeSize);
  }
  /// `length` and `shapeSize` are only checked against: the bytes there are and the number of addresses.
  void Init(void* data, uint32_t length = 0xffffffff, uint32_t shapeSize = 0xffffffff) {
    words_ = static_cast<const uint64_t*>(data);
    const opkit::Where where = opkit::Where::here();
    if (length != 0xffffffff && words_[0] >= length) {
      opkit::illegal_operand("ListTensorDesc: its addresses lie behind the given length", where);
    }
    if (shapeSize != 0xffffffff && GetSize() != shapeSize) {
      opkit::illegal_operand("ListTensorDesc: it has another number of tensors than given", where);
    }
  }
  uint32_t GetSize() const {
    uint32_t size = 0;
    for (uint64_t at = 1; at < words_[0] / 8; at += 1 + rank_at(at)) ++size;
    return size;
  }
  template <typename T>
  T* GetDataPtr(uint32_t index) const {
    check(index);
    return reinterpret_cast<T*>(words_[words_[0] / 8 + index]);
  }
  template <typename T>
  void GetDesc(TensorDesc<T>& desc, uint32_t index) const {
    check(index);
    uint64_t at = 1;
    for (uint32_t i = 0; i < index; ++i) at += 1 + rank_at(at);
    if (desc.shape_ == nullptr) {
      opkit::illegal_operand("ListTensorDesc::GetDesc: call SetShapeAddr on the TensorDesc first",
                             opkit::Where::here());
    }
    desc.dimensions_ = rank_at(at);
    desc.index_ = words_[at] >> 32;
    for (uint64_t i = 0; i < desc.dimensions_; ++i) desc.shape_[i] = words_[at + 1 + i];
    desc.data_ = reinterpret_cast<T*>(words_[words_[0] / 8 + index]);
  }

 private:
  uint64_t rank_at(uint64_t word) const { return words_[word] & 0xffffffff; }
  void check(uint32_t index) const {
    if (index < GetSize()) return;
    opkit::illegal_operand("ListTensorDesc: the list has fewer tensors than this index", opkit::Where::here());
  }

  const uint64_t* words_ = nullptr;
};

}  // namespace AscendC
