/// The objects behind the handles of acl_meta.h.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "aclnn/acl_meta.h"

struct aclTensor {
  std::vector<int64_t> view_dims;
  std::vector<int64_t> strides;
  std::vector<int64_t> storage_dims;
  int64_t offset = 0;
  aclDataType data_type = ACL_DT_UNDEFINED;
  aclFormat format = ACL_FORMAT_ND;
  void* data = nullptr;
  std::shared_ptr<void> life = std::make_shared<char>();  ///< ends with it, for what runs later

  int64_t element_count() const {
    int64_t count = 1;
    for (int64_t dim : view_dims) count *= dim;
    return count;
  }
  /// Whether its elements lie one after the other; an axis of length 1 may have any stride.
  bool is_dense() const {
    int64_t wanted = 1;
    for (size_t axis = view_dims.size(); axis-- > 0;) {
      if (view_dims[axis] != 1 && strides[axis] != wanted && element_count() != 0) return false;
      wanted *= view_dims[axis];
    }
    return true;
  }
  char* first() const { return static_cast<char*>(data) + offset * static_cast<int64_t>(aclDataTypeSize(data_type)); }
};

struct aclScalar {
  aclDataType data_type = ACL_DT_UNDEFINED;
  std::vector<uint8_t> bytes;

  double as_double() const;
  int64_t as_int() const;
};

struct aclIntArray {
  std::vector<int64_t> values;
};
struct aclFloatArray {
  std::vector<float> values;
};
struct aclBoolArray {
  std::unique_ptr<bool[]> values;
  uint64_t count = 0;
};
struct aclTensorList {
  std::vector<const aclTensor*> tensors;
};
struct aclScalarList {
  std::vector<const aclScalar*> scalars;
};
