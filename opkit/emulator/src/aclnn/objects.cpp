// Creating, reading and destroying the objects that aclnn functions take.
#include "aclnn/objects.h"

#include <algorithm>
#include <cstring>

#include "acl/error.h"
#include "aclnn/aclnn_base.h"

namespace {

using opkit::acl::fail;

constexpr uint64_t kMaxRank = 8;  // Source: basic data structures, aclTensor

template <typename Number>
Number read(const std::vector<uint8_t>& bytes) {
  Number value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

float bfloat16_to_float(uint16_t half) {
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <typename Target>
Target scalar_as(const aclScalar& scalar) {
  switch (scalar.data_type) {
    case ACL_FLOAT: return static_cast<Target>(read<float>(scalar.bytes));
    case ACL_DOUBLE: return static_cast<Target>(read<double>(scalar.bytes));
    case ACL_FLOAT16: return static_cast<Target>(aclFloat16ToFloat(read<uint16_t>(scalar.bytes)));
    case ACL_BF16: return static_cast<Target>(bfloat16_to_float(read<uint16_t>(scalar.bytes)));
    case ACL_INT8: return static_cast<Target>(read<int8_t>(scalar.bytes));
    case ACL_INT16: return static_cast<Target>(read<int16_t>(scalar.bytes));
    case ACL_INT32: return static_cast<Target>(read<int32_t>(scalar.bytes));
    case ACL_INT64: return static_cast<Target>(read<int64_t>(scalar.bytes));
    case ACL_UINT16: return static_cast<Target>(read<uint16_t>(scalar.bytes));
    case ACL_UINT32: return static_cast<Target>(read<uint32_t>(scalar.bytes));
    case ACL_UINT64: return static_cast<Target>(read<uint64_t>(scalar.bytes));
    default: return static_cast<Target>(read<uint8_t>(scalar.bytes));
  }
}

aclnnStatus copy_out(const char* function, const std::vector<int64_t>* values, int64_t** out, uint64_t* count) {
  if (values == nullptr || out == nullptr || count == nullptr) {
    return fail(ACLNN_ERR_PARAM_NULLPTR, function, "an argument is null");
  }
  *out = new int64_t[values->size()];
  std::copy(values->begin(), values->end(), *out);
  *count = values->size();
  return ACLNN_SUCCESS;
}

template <typename Value>
aclnnStatus hand_out(const char* function, const Value* value, Value* out) {
  if (value == nullptr || out == nullptr) return fail(ACLNN_ERR_PARAM_NULLPTR, function, "an argument is null");
  *out = *value;
  return ACLNN_SUCCESS;
}

aclnnStatus hand_out_size(const char* function, const void* owner, uint64_t size, uint64_t* out) {
  if (owner == nullptr || out == nullptr) return fail(ACLNN_ERR_PARAM_NULLPTR, function, "an argument is null");
  *out = size;
  return ACLNN_SUCCESS;
}

template <typename Object>
aclnnStatus destroy(const char* function, const Object* object) {
  if (object == nullptr) return fail(ACLNN_ERR_PARAM_NULLPTR, function, "there is nothing to destroy: null");
  delete object;
  return ACLNN_SUCCESS;
}

}  // namespace

double aclScalar::as_double() const { return scalar_as<double>(*this); }
int64_t aclScalar::as_int() const { return scalar_as<int64_t>(*this); }

aclTensor* aclCreateTensor(const int64_t* view_dims, uint64_t view_dim_count, aclDataType data_type,
                           const int64_t* strides, int64_t offset, aclFormat format, const int64_t* storage_dims,
                           uint64_t storage_dim_count, void* data) {
  const auto refuse = [](const char* reason) -> aclTensor* {
    fail(ACLNN_ERR_PARAM_INVALID, "aclCreateTensor", "%s", reason);
    return nullptr;
  };
  if (view_dim_count > kMaxRank || storage_dim_count > kMaxRank) return refuse("at most 8 dimensions are supported");
  if (view_dims == nullptr && view_dim_count != 0) return refuse("viewDims is null");
  if (storage_dims == nullptr && storage_dim_count != 0) return refuse("storageDims is null");
  if (aclDataTypeSize(data_type) == 0) return refuse("the data type has no whole number of bytes");
  auto tensor = std::make_unique<aclTensor>();
  tensor->view_dims.assign(view_dims, view_dims + view_dim_count);
  tensor->storage_dims.assign(storage_dims, storage_dims + storage_dim_count);
  const auto is_negative = [](int64_t dim) { return dim < 0; };
  if (std::any_of(tensor->view_dims.begin(), tensor->view_dims.end(), is_negative)) {
    return refuse("viewDims has a negative dimension");
  }
  tensor->strides.resize(view_dim_count);
  int64_t dense = 1;
  int64_t last = offset;
  for (size_t axis = view_dim_count; axis-- > 0;) {
    tensor->strides[axis] = strides == nullptr ? dense : strides[axis];
    dense *= tensor->view_dims[axis];
    if (tensor->strides[axis] < 0) return refuse("a stride is negative");
    last += tensor->strides[axis] * std::max<int64_t>(0, tensor->view_dims[axis] - 1);
  }
  int64_t stored = 1;
  for (int64_t dim : tensor->storage_dims) stored *= dim;
  if (offset < 0) return refuse("the offset is negative");
  if (storage_dim_count != 0 && dense != 0 && last >= stored) return refuse("the view reaches behind its storage");
  tensor->offset = offset;
  tensor->data_type = data_type;
  tensor->format = format;
  tensor->data = data;
  return tensor.release();
}

aclScalar* aclCreateScalar(void* value, aclDataType data_type) {
  const size_t size_bytes = aclDataTypeSize(data_type);
  if (value == nullptr || size_bytes == 0 || size_bytes > sizeof(double)) {
    fail(ACLNN_ERR_PARAM_INVALID, "aclCreateScalar", value == nullptr ? "value is null" : "unsupported data type");
    return nullptr;
  }
  const auto* bytes = static_cast<const uint8_t*>(value);
  return new aclScalar{data_type, std::vector<uint8_t>(bytes, bytes + size_bytes)};
}

aclIntArray* aclCreateIntArray(const int64_t* values, uint64_t count) {
  if (values == nullptr) count = 0;
  return new aclIntArray{std::vector<int64_t>(values, values + count)};
}

aclFloatArray* aclCreateFloatArray(const float* values, uint64_t count) {
  if (values == nullptr) count = 0;
  return new aclFloatArray{std::vector<float>(values, values + count)};
}

aclBoolArray* aclCreateBoolArray(const bool* values, uint64_t count) {
  if (values == nullptr) count = 0;
  auto* array = new aclBoolArray{std::make_unique<bool[]>(count), count};
  std::copy(values, values + count, array->values.get());
  return array;
}

aclTensorList* aclCreateTensorList(const aclTensor* const* tensors, uint64_t count) {
  if (tensors == nullptr) count = 0;
  return new aclTensorList{std::vector<const aclTensor*>(tensors, tensors + count)};
}

aclScalarList* aclCreateScalarList(const aclScalar* const* scalars, uint64_t count) {
  if (scalars == nullptr) count = 0;
  return new aclScalarList{std::vector<const aclScalar*>(scalars, scalars + count)};
}

aclnnStatus aclDestroyTensor(const aclTensor* tensor) { return destroy("aclDestroyTensor", tensor); }
aclnnStatus aclDestroyScalar(const aclScalar* scalar) { return destroy("aclDestroyScalar", scalar); }
aclnnStatus aclDestroyIntArray(const aclIntArray* array) { return destroy("aclDestroyIntArray", array); }
aclnnStatus aclDestroyFloatArray(const aclFloatArray* array) { return destroy("aclDestroyFloatArray", array); }
aclnnStatus aclDestroyBoolArray(const aclBoolArray* array) { return destroy("aclDestroyBoolArray", array); }

aclnnStatus aclDestroyTensorList(const aclTensorList* list) {
  for (size_t i = 0; list != nullptr && i < list->tensors.size(); ++i) delete list->tensors[i];
  return destroy("aclDestroyTensorList", list);
}

aclnnStatus aclDestroyScalarList(const aclScalarList* list) {
  for (size_t i = 0; list != nullptr && i < list->scalars.size(); ++i) delete list->scalars[i];
  return destroy("aclDestroyScalarList", list);
}

aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** view_dims, uint64_t* view_dim_count) {
  return copy_out("aclGetViewShape", tensor == nullptr ? nullptr : &tensor->view_dims, view_dims, view_dim_count);
}

aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storage_dims, uint64_t* storage_dim_count) {
  return copy_out("aclGetStorageShape", tensor == nullptr ? nullptr : &tensor->storage_dims, storage_dims,
                  storage_dim_count);
}

aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** strides, uint64_t* stride_count) {
  return copy_out("aclGetViewStrides", tensor == nullptr ? nullptr : &tensor->strides, strides, stride_count);
}

aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset) {
  return hand_out("aclGetViewOffset", tensor == nullptr ? nullptr : &tensor->offset, offset);
}

aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format) {
  return hand_out("aclGetFormat", tensor == nullptr ? nullptr : &tensor->format, format);
}

aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* data_type) {
  return hand_out("aclGetDataType", tensor == nullptr ? nullptr : &tensor->data_type, data_type);
}

aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** address) {
  return hand_out("aclGetRawTensorAddr", tensor == nullptr ? nullptr : &tensor->data, address);
}

aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* address) {
  if (tensor == nullptr) return fail(ACLNN_ERR_PARAM_NULLPTR, "aclSetRawTensorAddr", "the tensor is null");
  tensor->data = address;
  return ACLNN_SUCCESS;
}

aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size) {
  return hand_out_size("aclGetIntArraySize", array, array == nullptr ? 0 : array->values.size(), size);
}

aclnnStatus aclGetFloatArraySize(const aclFloatArray* array, uint64_t* size) {
  return hand_out_size("aclGetFloatArraySize", array, array == nullptr ? 0 : array->values.size(), size);
}

aclnnStatus aclGetBoolArraySize(const aclBoolArray* array, uint64_t* size) {
  return hand_out_size("aclGetBoolArraySize", array, array == nullptr ? 0 : array->count, size);
}

aclnnStatus aclGetTensorListSize(const aclTensorList* list, uint64_t* size) {
  return hand_out_size("aclGetTensorListSize", list, list == nullptr ? 0 : list->tensors.size(), size);
}

aclnnStatus aclGetScalarListSize(const aclScalarList* list, uint64_t* size) {
  return hand_out_size("aclGetScalarListSize", list, list == nullptr ? 0 : list->scalars.size(), size);
}
