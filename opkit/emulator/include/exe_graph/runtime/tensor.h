/// Tensors and their descriptions as host functions see them. Source: basic data structures API, gert::Tensor and
/// gert::CompileTimeTensorDesc.
#pragma once

#include <cstddef>
#include <cstdint>

#include "exe_graph/runtime/storage_format.h"
#include "exe_graph/runtime/storage_shape.h"
#include "graph/types.h"
#include "opkit/host/prelude.h"

namespace gert {

/// Data type and formats, without a shape.
class CompileTimeTensorDesc {
 public:
  StorageFormat GetFormat() const { return {origin_format_, storage_format_}; }
  ge::DataType GetDataType() const { return dtype_; }
  ge::Format GetOriginFormat() const { return origin_format_; }
  ge::Format GetStorageFormat() const { return storage_format_; }

  void SetDataType(ge::DataType dtype) { dtype_ = dtype; }
  void SetOriginFormat(ge::Format format) { origin_format_ = format; }
  void SetStorageFormat(ge::Format format) { storage_format_ = format; }

 private:
  ge::DataType dtype_ = ge::DT_UNDEFINED;
  ge::Format origin_format_ = ge::FORMAT_ND;
  ge::Format storage_format_ = ge::FORMAT_ND;
};

enum TensorPlacement : int32_t { kOnDeviceHbm, kOnHost, kFollowing, kTensorPlacementEnd };

/// A tensor. Its data can be read here only when the operator declared that it depends on the value (ValueDepend);
/// otherwise the data lies on the device and GetData() is null.
class Tensor {
 public:
  Tensor() = default;
  /// `data` holds as many bytes as shape and type say, and stays the caller's; null: the values cannot be read here.
  Tensor(const StorageShape& shape, const StorageFormat& format, TensorPlacement, ge::DataType dtype,
         void* data = nullptr)
      : shape_(shape), data_(data) {
    desc_.SetDataType(dtype);
    desc_.SetOriginFormat(format.GetOriginFormat());
    desc_.SetStorageFormat(format.GetStorageFormat());
    const int64_t bytes = ge::GetSizeInBytes(GetShapeSize(), dtype);
    if (data != nullptr && bytes > 0) size_bytes_ = static_cast<size_t>(bytes);
  }

  const StorageShape& GetShape() const { return shape_; }
  StorageShape& GetShape() { return shape_; }
  const Shape& GetOriginShape() const { return shape_.GetOriginShape(); }
  const Shape& GetStorageShape() const { return shape_.GetStorageShape(); }
  Shape& MutableOriginShape() { return shape_.MutableOriginShape(); }
  Shape& MutableStorageShape() { return shape_.MutableStorageShape(); }
  int64_t GetShapeSize() const { return shape_.GetStorageShape().GetShapeSize(); }

  ge::DataType GetDataType() const { return desc_.GetDataType(); }
  StorageFormat GetFormat() const { return desc_.GetFormat(); }
  ge::Format GetOriginFormat() const { return desc_.GetOriginFormat(); }
  ge::Format GetStorageFormat() const { return desc_.GetStorageFormat(); }
  const CompileTimeTensorDesc& GetDesc() const { return desc_; }
  CompileTimeTensorDesc& MutableDesc() { return desc_; }
  void SetDataType(ge::DataType dtype) { desc_.SetDataType(dtype); }

  template <typename T>
  const T* GetData() const {
    return static_cast<const T*>(data_);
  }
  template <typename T>
  T* GetData() {
    return static_cast<T*>(data_);
  }
  const void* GetAddr() const { return data_; }
  void* GetAddr() { return data_; }
  size_t GetSize() const { return size_bytes_; }
  TensorPlacement GetPlacement() const { return data_ == nullptr ? kOnDeviceHbm : kOnHost; }

  void SetData(void* data, size_t size_bytes) {
    data_ = data;
    size_bytes_ = size_bytes;
  }

 private:
  StorageShape shape_;
  CompileTimeTensorDesc desc_;
  void* data_ = nullptr;
  size_t size_bytes_ = 0;
};

}  // namespace gert
