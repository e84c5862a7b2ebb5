/// Data types and formats by names that C and the preprocessor's template arguments know.
/// Source: Ascend C API, utilities, tiling template programming.
#pragma once

#include <cstdint>

/// Data types as template arguments. The numbers are those of ge::DataType.
enum TemplateDataType : uint64_t {
  C_DT_FLOAT = 0,
  C_DT_FLOAT16 = 1,
  C_DT_INT8 = 2,
  C_DT_INT32 = 3,
  C_DT_UINT8 = 4,
  C_DT_INT16 = 6,
  C_DT_UINT16 = 7,
  C_DT_UINT32 = 8,
  C_DT_INT64 = 9,
  C_DT_UINT64 = 10,
  C_DT_DOUBLE = 11,
  C_DT_BOOL = 12,
  C_DT_COMPLEX64 = 16,
  C_DT_BF16 = 27,
  C_DT_INT4 = 29,
  C_DT_UINT1 = 30,
  C_DT_INT2 = 31,
  C_DT_COMPLEX32 = 33,
  C_DT_HIFLOAT8 = 34,
  C_DT_FLOAT8_E5M2 = 35,
  C_DT_FLOAT8_E4M3FN = 36,
  C_DT_FLOAT4_E2M1 = 40,
  C_DT_FLOAT4_E1M2 = 41
};

/// Formats as template arguments. The numbers are those of ge::Format.
enum TemplateFormat : uint64_t {
  C_FORMAT_NCHW = 0,
  C_FORMAT_NHWC = 1,
  C_FORMAT_ND = 2,
  C_FORMAT_NC1HWC0 = 3,
  C_FORMAT_FRACTAL_Z = 4,
  C_FORMAT_NC1HWC0_C04 = 12,
  C_FORMAT_CHWN = 14,
  C_FORMAT_HWCN = 16,
  C_FORMAT_C1HWNCoC0 = 25,
  C_FORMAT_NDHWC = 27,
  C_FORMAT_FRACTAL_NZ = 29,
  C_FORMAT_NCDHW = 30,
  C_FORMAT_DHWCN = 31,
  C_FORMAT_NDC1HWC0 = 32,
  C_FORMAT_FRACTAL_Z_3D = 33,
  C_FORMAT_NC = 35,
  C_FORMAT_DHWNC = 36,
  C_FORMAT_RESERVED = 40,
  C_FORMAT_ALL = 41,
  C_FORMAT_NULL = 42,
  C_FORMAT_NCL = 47
};
