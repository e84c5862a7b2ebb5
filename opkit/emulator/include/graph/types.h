/// Data types and formats by number. Source: graph engine API, ge::DataType and ge::Format; the numbers are those of
/// aclDataType and aclFormat. `opkit/dtypes.py` holds the same numbers (ge_value); a test compares them.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/ge_error_codes.h"

#ifdef DT_FLOAT
#error "graph/types.h is for host code: in a kernel the DT_ and FORMAT_ names are preprocessor constants"
#endif

namespace ge {

using char_t = char;
using float32_t = float;
using float64_t = double;

enum DataType : int32_t {
  DT_FLOAT = 0,
  DT_FLOAT16 = 1,
  DT_INT8 = 2,
  DT_INT32 = 3,
  DT_UINT8 = 4,
  DT_INT16 = 6,
  DT_UINT16 = 7,
  DT_UINT32 = 8,
  DT_INT64 = 9,
  DT_UINT64 = 10,
  DT_DOUBLE = 11,
  DT_BOOL = 12,
  DT_STRING = 13,
  DT_DUAL_SUB_INT8 = 14,
  DT_DUAL_SUB_UINT8 = 15,
  DT_COMPLEX64 = 16,
  DT_COMPLEX128 = 17,
  DT_QINT8 = 18,
  DT_QINT16 = 19,
  DT_QINT32 = 20,
  DT_QUINT8 = 21,
  DT_QUINT16 = 22,
  DT_RESOURCE = 23,
  DT_STRING_REF = 24,
  DT_DUAL = 25,
  DT_VARIANT = 26,
  DT_BF16 = 27,
  DT_UNDEFINED = 28,
  DT_INT4 = 29,
  DT_UINT1 = 30,
  DT_INT2 = 31,
  DT_UINT2 = 32,
  DT_COMPLEX32 = 33,
  DT_HIFLOAT8 = 34,
  DT_FLOAT8_E5M2 = 35,
  DT_FLOAT8_E4M3FN = 36,
  DT_FLOAT8_E8M0 = 37,
  DT_FLOAT6_E3M2 = 38,
  DT_FLOAT6_E2M3 = 39,
  DT_FLOAT4_E2M1 = 40,
  DT_FLOAT4_E1M2 = 41,
  DT_MAX
};

enum Format : int32_t {
  FORMAT_NCHW = 0,
  FORMAT_NHWC = 1,
  FORMAT_ND = 2,
  FORMAT_NC1HWC0 = 3,
  FORMAT_FRACTAL_Z = 4,
  FORMAT_NC1C0HWPAD = 5,
  FORMAT_NHWC1C0 = 6,
  FORMAT_FSR_NCHW = 7,
  FORMAT_FRACTAL_DECONV = 8,
  FORMAT_C1HWNC0 = 9,
  FORMAT_FRACTAL_DECONV_TRANSPOSE = 10,
  FORMAT_FRACTAL_DECONV_SP_STRIDE_TRANS = 11,
  FORMAT_NC1HWC0_C04 = 12,
  FORMAT_FRACTAL_Z_C04 = 13,
  FORMAT_CHWN = 14,
  FORMAT_FRACTAL_DECONV_SP_STRIDE8_TRANS = 15,
  FORMAT_HWCN = 16,
  FORMAT_NC1KHKWHWC0 = 17,
  FORMAT_BN_WEIGHT = 18,
  FORMAT_FILTER_HWCK = 19,
  FORMAT_HASHTABLE_LOOKUP_LOOKUPS = 20,
  FORMAT_HASHTABLE_LOOKUP_KEYS = 21,
  FORMAT_HASHTABLE_LOOKUP_VALUE = 22,
  FORMAT_HASHTABLE_LOOKUP_OUTPUT = 23,
  FORMAT_HASHTABLE_LOOKUP_HITS = 24,
  FORMAT_C1HWNCoC0 = 25,
  FORMAT_MD = 26,
  FORMAT_NDHWC = 27,
  FORMAT_FRACTAL_ZZ = 28,
  FORMAT_FRACTAL_NZ = 29,
  FORMAT_NCDHW = 30,
  FORMAT_DHWCN = 31,
  FORMAT_NDC1HWC0 = 32,
  FORMAT_FRACTAL_Z_3D = 33,
  FORMAT_CN = 34,
  FORMAT_NC = 35,
  FORMAT_DHWNC = 36,
  FORMAT_FRACTAL_Z_3D_TRANSPOSE = 37,
  FORMAT_FRACTAL_ZN_LSTM = 38,
  FORMAT_FRACTAL_Z_G = 39,
  FORMAT_RESERVED = 40,
  FORMAT_ALL = 41,
  FORMAT_NULL = 42,
  FORMAT_ND_RNN_BIAS = 43,
  FORMAT_FRACTAL_ZN_RNN = 44,
  FORMAT_NYUV = 45,
  FORMAT_NYUV_A = 46,
  FORMAT_NCL = 47,
  FORMAT_FRACTAL_Z_WINO = 48,
  FORMAT_C1HWC0 = 49,
  FORMAT_FRACTAL_NZ_C0_16 = 50,
  FORMAT_FRACTAL_NZ_C0_32 = 51,
  FORMAT_FRACTAL_NZ_C0_2 = 52,
  FORMAT_FRACTAL_NZ_C0_4 = 53,
  FORMAT_FRACTAL_NZ_C0_8 = 54,
  FORMAT_END,
  FORMAT_MAX = 0xff
};

/// A format's low byte is the format itself; what lies above it (groups, the size of C0) refines it.
constexpr Format GetPrimaryFormat(int32_t format) { return static_cast<Format>(format & 0xff); }
constexpr int32_t GetSubFormat(int32_t format) { return (format >> 8) & 0xffff; }

/// Such as "ND"; "RESERVED" for a number that is no format.
constexpr const char* GetFormatName(Format format) {
  switch (GetPrimaryFormat(format)) {
    case FORMAT_NCHW: return "NCHW";
    case FORMAT_NHWC: return "NHWC";
    case FORMAT_ND: return "ND";
    case FORMAT_NC1HWC0: return "NC1HWC0";
    case FORMAT_FRACTAL_Z: return "FRACTAL_Z";
    case FORMAT_NC1C0HWPAD: return "NC1C0HWPAD";
    case FORMAT_NHWC1C0: return "NHWC1C0";
    case FORMAT_FSR_NCHW: return "FSR_NCHW";
    case FORMAT_FRACTAL_DECONV: return "FRACTAL_DECONV";
    case FORMAT_C1HWNC0: return "C1HWNC0";
    case FORMAT_FRACTAL_DECONV_TRANSPOSE: return "FRACTAL_DECONV_TRANSPOSE";
    case FORMAT_FRACTAL_DECONV_SP_STRIDE_TRANS: return "FRACTAL_DECONV_SP_STRIDE_TRANS";
    case FORMAT_NC1HWC0_C04: return "NC1HWC0_C04";
    case FORMAT_FRACTAL_Z_C04: return "FRACTAL_Z_C04";
    case FORMAT_CHWN: return "CHWN";
    case FORMAT_FRACTAL_DECONV_SP_STRIDE8_TRANS: return "FRACTAL_DECONV_SP_STRIDE8_TRANS";
    case FORMAT_HWCN: return "HWCN";
    case FORMAT_NC1KHKWHWC0: return "NC1KHKWHWC0";
    case FORMAT_BN_WEIGHT: return "BN_WEIGHT";
    case FORMAT_FILTER_HWCK: return "FILTER_HWCK";
    case FORMAT_HASHTABLE_LOOKUP_LOOKUPS: return "HASHTABLE_LOOKUP_LOOKUPS";
    case FORMAT_HASHTABLE_LOOKUP_KEYS: return "HASHTABLE_LOOKUP_KEYS";
    case FORMAT_HASHTABLE_LOOKUP_VALUE: return "HASHTABLE_LOOKUP_VALUE";
    case FORMAT_HASHTABLE_LOOKUP_OUTPUT: return "HASHTABLE_LOOKUP_OUTPUT";
    case FORMAT_HASHTABLE_LOOKUP_HITS: return "HASHTABLE_LOOKUP_HITS";
    case FORMAT_C1HWNCoC0: return "C1HWNCoC0";
    case FORMAT_MD: return "MD";
    case FORMAT_NDHWC: return "NDHWC";
    case FORMAT_FRACTAL_ZZ: return "FRACTAL_ZZ";
    case FORMAT_FRACTAL_NZ: return "FRACTAL_NZ";
    case FORMAT_NCDHW: return "NCDHW";
    case FORMAT_DHWCN: return "DHWCN";
    case FORMAT_NDC1HWC0: return "NDC1HWC0";
    case FORMAT_FRACTAL_Z_3D: return "FRACTAL_Z_3D";
    case FORMAT_CN: return "CN";
    case FORMAT_NC: return "NC";
    case FORMAT_DHWNC: return "DHWNC";
    case FORMAT_FRACTAL_Z_3D_TRANSPOSE: return "FRACTAL_Z_3D_TRANSPOSE";
    case FORMAT_FRACTAL_ZN_LSTM: return "FRACTAL_ZN_LSTM";
    case FORMAT_FRACTAL_Z_G: return "FRACTAL_Z_G";
    case FORMAT_ALL: return "ALL";
    case FORMAT_NULL: return "NULL";
    case FORMAT_ND_RNN_BIAS: return "ND_RNN_BIAS";
    case FORMAT_FRACTAL_ZN_RNN: return "FRACTAL_ZN_RNN";
    case FORMAT_NYUV: return "NYUV";
    case FORMAT_NYUV_A: return "NYUV_A";
    case FORMAT_NCL: return "NCL";
    case FORMAT_FRACTAL_Z_WINO: return "FRACTAL_Z_WINO";
    case FORMAT_C1HWC0: return "C1HWC0";
    case FORMAT_FRACTAL_NZ_C0_16: return "FRACTAL_NZ_C0_16";
    case FORMAT_FRACTAL_NZ_C0_32: return "FRACTAL_NZ_C0_32";
    case FORMAT_FRACTAL_NZ_C0_2: return "FRACTAL_NZ_C0_2";
    case FORMAT_FRACTAL_NZ_C0_4: return "FRACTAL_NZ_C0_4";
    case FORMAT_FRACTAL_NZ_C0_8: return "FRACTAL_NZ_C0_8";
    default: return "RESERVED";
  }
}

// What shapes say of dimensions that are not known before a run; opkit's shapes always are.
constexpr int64_t UNKNOWN_DIM = -1;
constexpr int64_t UNKNOWN_DIM_NUM = -2;
inline const std::vector<int64_t> UNKNOWN_SHAPE = {-1};
inline const std::vector<int64_t> UNKNOWN_RANK = {-2};

/// What GetSizeByDataType adds to the bits of a type smaller than a byte.
constexpr int kDataTypeSizeBitOffset = 1000;

/// Bytes of one element; of a type smaller than a byte 1000 and its bits, as documented; -1 for a type without a size.
constexpr int GetSizeByDataType(DataType type) {
  switch (type) {
    case DT_INT4:
    case DT_FLOAT4_E2M1:
    case DT_FLOAT4_E1M2: return kDataTypeSizeBitOffset + 4;
    case DT_INT2:
    case DT_UINT2: return kDataTypeSizeBitOffset + 2;
    case DT_UINT1: return kDataTypeSizeBitOffset + 1;
    case DT_INT8:
    case DT_UINT8:
    case DT_BOOL:
    case DT_QINT8:
    case DT_QUINT8:
    case DT_HIFLOAT8:
    case DT_FLOAT8_E5M2:
    case DT_FLOAT8_E4M3FN:
    case DT_FLOAT8_E8M0: return 1;
    case DT_FLOAT16:
    case DT_BF16:
    case DT_INT16:
    case DT_UINT16:
    case DT_QINT16:
    case DT_QUINT16: return 2;
    case DT_FLOAT:
    case DT_INT32:
    case DT_UINT32:
    case DT_QINT32:
    case DT_COMPLEX32: return 4;
    case DT_INT64:
    case DT_UINT64:
    case DT_DOUBLE:
    case DT_COMPLEX64: return 8;
    case DT_COMPLEX128: return 16;
    default: return -1;
  }
}

/// Bytes of `count` elements, the last one's bits rounded up to a byte; -1 for a type without a size.
constexpr int64_t GetSizeInBytes(int64_t count, DataType type) {
  switch (type) {
    case DT_INT4:
    case DT_FLOAT4_E2M1:
    case DT_FLOAT4_E1M2: return (count + 1) / 2;
    case DT_INT2:
    case DT_UINT2: return (count + 3) / 4;
    case DT_UINT1: return (count + 7) / 8;
    default: return GetSizeByDataType(type) < 0 ? -1 : count * GetSizeByDataType(type);
  }
}

}  // namespace ge
