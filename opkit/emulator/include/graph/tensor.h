/// ge::Shape, which the tiling functions of the high-level API take. Source: graph engine API, ge::Shape; Ascend C API,
/// TensorShape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/ge_error_codes.h"
#include "graph/types.h"

namespace ge {

class Shape {
 public:
  Shape() = default;
  explicit Shape(const std::vector<int64_t>& dims) : dims_(dims) {}

  size_t GetDimNum() const { return dims_.size(); }
  /// 0 when there is no such dimension.
  int64_t GetDim(size_t idx) const { return idx < dims_.size() ? dims_[idx] : 0; }
  graphStatus SetDim(size_t idx, int64_t value) {
    if (idx >= dims_.size()) return GRAPH_FAILED;
    dims_[idx] = value;
    return GRAPH_SUCCESS;
  }
  std::vector<int64_t> GetDims() const { return dims_; }
  /// Number of elements: 0 of an empty shape, -1 when a dimension is unknown.
  int64_t GetShapeSize() const {
    if (dims_.empty()) return 0;
    int64_t size = 1;
    for (const int64_t dim : dims_) {
      if (dim < 0) return -1;
      size *= dim;
    }
    return size;
  }

 private:
  std::vector<int64_t> dims_;
};

}  // namespace ge
