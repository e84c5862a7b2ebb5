/// Tensors, scalars and arrays that aclnn functions take. Source: public documents of the aclnn API, basic data
/// structures and interfaces.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "acl/acl_base.h"
#include "opkit/export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t aclnnStatus;
typedef struct aclTensor aclTensor;
typedef struct aclTensorList aclTensorList;
typedef struct aclScalar aclScalar;
typedef struct aclScalarList aclScalarList;
typedef struct aclIntArray aclIntArray;
typedef struct aclFloatArray aclFloatArray;
typedef struct aclBoolArray aclBoolArray;
typedef struct aclOpExecutor aclOpExecutor;

/// A view of device memory: null, with a printed reason, when the arguments contradict each other. `strides` in
/// elements, dense when null; `offset` in elements from `data`.
OPKIT_API aclTensor* aclCreateTensor(const int64_t* view_dims, uint64_t view_dim_count, aclDataType data_type,
                                     const int64_t* strides, int64_t offset, aclFormat format,
                                     const int64_t* storage_dims, uint64_t storage_dim_count, void* data);
/// Copies the value that `value` points at, of that type.
OPKIT_API aclScalar* aclCreateScalar(void* value, aclDataType data_type);
OPKIT_API aclIntArray* aclCreateIntArray(const int64_t* values, uint64_t count);
OPKIT_API aclFloatArray* aclCreateFloatArray(const float* values, uint64_t count);
OPKIT_API aclBoolArray* aclCreateBoolArray(const bool* values, uint64_t count);
/// The list owns its members from then on.
OPKIT_API aclTensorList* aclCreateTensorList(const aclTensor* const* tensors, uint64_t count);
OPKIT_API aclScalarList* aclCreateScalarList(const aclScalar* const* scalars, uint64_t count);

OPKIT_API aclnnStatus aclDestroyTensor(const aclTensor* tensor);
OPKIT_API aclnnStatus aclDestroyScalar(const aclScalar* scalar);
OPKIT_API aclnnStatus aclDestroyIntArray(const aclIntArray* array);
OPKIT_API aclnnStatus aclDestroyFloatArray(const aclFloatArray* array);
OPKIT_API aclnnStatus aclDestroyBoolArray(const aclBoolArray* array);
OPKIT_API aclnnStatus aclDestroyTensorList(const aclTensorList* list);
OPKIT_API aclnnStatus aclDestroyScalarList(const aclScalarList* list);

/// Dims and strides are new arrays, which the caller frees with delete[].
OPKIT_API aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** view_dims, uint64_t* view_dim_count);
OPKIT_API aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storage_dims, uint64_t* storage_dim_count);
OPKIT_API aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** strides, uint64_t* stride_count);
OPKIT_API aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset);
OPKIT_API aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format);
OPKIT_API aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* data_type);
OPKIT_API aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** address);
OPKIT_API aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* address);
OPKIT_API aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size);
OPKIT_API aclnnStatus aclGetFloatArraySize(const aclFloatArray* array, uint64_t* size);
OPKIT_API aclnnStatus aclGetBoolArraySize(const aclBoolArray* array, uint64_t* size);
OPKIT_API aclnnStatus aclGetTensorListSize(const aclTensorList* list, uint64_t* size);
OPKIT_API aclnnStatus aclGetScalarListSize(const aclScalarList* list, uint64_t* size);

#ifdef __cplusplus
}
#endif
