/// Error codes, data types and formats of the runtime. Numbers: public documents of the runtime API, aclError,
/// aclDataType and aclFormat.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "opkit/export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int aclError;
typedef uint16_t aclFloat16;
typedef void* aclrtStream;
typedef void* aclrtEvent;
typedef void* aclrtContext;

enum {
  ACL_SUCCESS = 0,
  ACL_ERROR_NONE = 0,

  // 1xxxxx: the program is wrong.
  ACL_ERROR_INVALID_PARAM = 100000,
  ACL_ERROR_UNINITIALIZE = 100001,
  ACL_ERROR_REPEAT_INITIALIZE = 100002,
  ACL_ERROR_REPEAT_FINALIZE = 100037,
  ACL_ERROR_RT_PARAM_INVALID = 107000,
  ACL_ERROR_RT_INVALID_DEVICEID = 107001,
  ACL_ERROR_RT_CONTEXT_NULL = 107002,
  ACL_ERROR_RT_STREAM_CONTEXT = 107003,

  // 2xxxxx: a resource is missing or not fit for the call.
  ACL_ERROR_BAD_ALLOC = 200000,
  ACL_ERROR_API_NOT_SUPPORT = 200001,
  ACL_ERROR_INVALID_RESOURCE_HANDLE = 200005,
  ACL_ERROR_RT_FEATURE_NOT_SUPPORT = 207000,
  ACL_ERROR_RT_MEMORY_ALLOCATION = 207001,

  // 5xxxxx: something failed on the device.
  ACL_ERROR_INTERNAL_ERROR = 500000,
  ACL_ERROR_FAILURE = 500001,
  ACL_ERROR_RT_AICORE_EXCEPTION = 507015,
  ACL_ERROR_RT_VECTOR_CORE_EXCEPTION = 507035
};

typedef enum {
  ACL_DT_UNDEFINED = -1,
  ACL_FLOAT = 0,
  ACL_FLOAT16 = 1,
  ACL_INT8 = 2,
  ACL_INT32 = 3,
  ACL_UINT8 = 4,
  ACL_INT16 = 6,
  ACL_UINT16 = 7,
  ACL_UINT32 = 8,
  ACL_INT64 = 9,
  ACL_UINT64 = 10,
  ACL_DOUBLE = 11,
  ACL_BOOL = 12,
  ACL_STRING = 13,
  ACL_COMPLEX64 = 16,
  ACL_COMPLEX128 = 17,
  ACL_BF16 = 27,
  ACL_INT4 = 29,
  ACL_UINT1 = 30,
  ACL_COMPLEX32 = 33,
  // No chip here computes in these; programs name them in tables of types.
  ACL_HIFLOAT8 = 34,
  ACL_FLOAT8_E5M2 = 35,
  ACL_FLOAT8_E4M3FN = 36,
  ACL_FLOAT8_E8M0 = 37,
  ACL_FLOAT6_E3M2 = 38,
  ACL_FLOAT6_E2M3 = 39,
  ACL_FLOAT4_E2M1 = 40,
  ACL_FLOAT4_E1M2 = 41
} aclDataType;

typedef enum {
  ACL_FORMAT_UNDEFINED = -1,
  ACL_FORMAT_NCHW = 0,
  ACL_FORMAT_NHWC = 1,
  ACL_FORMAT_ND = 2,
  ACL_FORMAT_NC1HWC0 = 3,
  ACL_FORMAT_FRACTAL_Z = 4,
  ACL_FORMAT_NC1HWC0_C04 = 12,
  ACL_FORMAT_HWCN = 16,
  ACL_FORMAT_NDHWC = 27,
  ACL_FORMAT_FRACTAL_NZ = 29,
  ACL_FORMAT_NCDHW = 30,
  ACL_FORMAT_NDC1HWC0 = 32,
  ACL_FRACTAL_Z_3D = 33,
  ACL_FORMAT_NC = 35,
  ACL_FORMAT_NCL = 47
} aclFormat;

/// Why the last call of this thread failed, as text; null when there is nothing new. The text stays valid until the
/// next call of this function on the same thread.
OPKIT_API const char* aclGetRecentErrMsg(void);

/// Bytes of one element; 0 for a type without a whole number of bytes.
OPKIT_API size_t aclDataTypeSize(aclDataType data_type);

OPKIT_API float aclFloat16ToFloat(aclFloat16 value);
/// Rounds to nearest, ties to even.
OPKIT_API aclFloat16 aclFloatToFloat16(float value);

#ifdef __cplusplus
}
#endif
