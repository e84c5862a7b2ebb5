/// Dimensions of a tensor. Source: basic data structures API, gert::Shape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace gert {

/// Up to kMaxDimNum dimensions; no dimensions is a scalar, which has one element. Plain data: it crosses libraries.
class Shape {
 public:
  static constexpr size_t kMaxDimNum = 25;
  static constexpr int64_t kInvalidDimValue = INT64_MIN;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) {
    for (int64_t dim : dims) AppendDim(dim);
  }

  size_t GetDimNum() const { return dim_num_; }

  /// Dimensions added this way are 0; more than kMaxDimNum changes nothing.
  void SetDimNum(size_t dim_num) {
    if (dim_num > kMaxDimNum) return;
    for (size_t i = dim_num_; i < dim_num; ++i) dims_[i] = 0;
    dim_num_ = dim_num;
  }

  /// kInvalidDimValue when there is no such dimension.
  int64_t GetDim(size_t index) const { return index < dim_num_ ? dims_[index] : kInvalidDimValue; }

  /// Changes nothing when `index` is not below kMaxDimNum; the number of dimensions stays.
  void SetDim(size_t index, int64_t value) {
    if (index < kMaxDimNum) dims_[index] = value;
  }

  Shape& AppendDim(int64_t value) {
    if (dim_num_ < kMaxDimNum) dims_[dim_num_++] = value;
    return *this;
  }

  int64_t operator[](size_t index) const { return dims_[index]; }
  int64_t& operator[](size_t index) { return dims_[index]; }

  /// Number of elements; negative when a dimension is unknown, or when the product leaves int64_t.
  int64_t GetShapeSize() const {
    int64_t size = 1;
    for (size_t i = 0; i < dim_num_; ++i) {
      if (__builtin_mul_overflow(size, dims_[i], &size)) return -1;
    }
    return size;
  }

  bool IsScalar() const { return dim_num_ == 0; }
  void SetScalar() { dim_num_ = 0; }

  bool operator==(const Shape& other) const {
    if (dim_num_ != other.dim_num_) return false;
    for (size_t i = 0; i < dim_num_; ++i) {
      if (dims_[i] != other.dims_[i]) return false;
    }
    return true;
  }
  bool operator!=(const Shape& other) const { return !(*this == other); }

 private:
  size_t dim_num_ = 0;
  int64_t dims_[kMaxDimNum] = {};
};

}  // namespace gert
