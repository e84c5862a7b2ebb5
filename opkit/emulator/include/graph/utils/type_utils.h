/// Data types and formats by name. Source: graph engine API, ge::TypeUtils; the names are those that OpDefs and the
/// operators' binary lists use: `DT_FLOAT16`, `ND`.
#pragma once

#include <cstdint>
#include <string>

#include "graph/ascend_string.h"
#include "graph/types.h"

namespace ge {

class TypeUtils {
 public:
  /// Such as "DT_FLOAT16"; "DT_UNDEFINED" for a number that is no type.
  static std::string DataTypeToSerialString(DataType type) { return data_type_name(type); }
  static AscendString DataTypeToAscendString(const DataType& type) { return AscendString(data_type_name(type)); }
  /// Such as "ND"; "RESERVED" for a number that is no format.
  static std::string FormatToSerialString(Format format) { return GetFormatName(format); }
  static AscendString FormatToAscendString(const Format& format) { return AscendString(GetFormatName(format)); }

  /// DT_UNDEFINED for a name that is none.
  static DataType SerialStringToDataType(const std::string& name) {
    for (int32_t number = 0; number < DT_MAX; ++number) {
      if (name == data_type_name(static_cast<DataType>(number))) return static_cast<DataType>(number);
    }
    return DT_UNDEFINED;
  }
  static DataType AscendStringToDataType(const AscendString& name) { return SerialStringToDataType(name.GetString()); }

  /// FORMAT_RESERVED for a name that is none.
  static Format SerialStringToFormat(const std::string& name) {
    for (int32_t number = 0; number < FORMAT_END; ++number) {
      if (name == GetFormatName(static_cast<Format>(number))) return static_cast<Format>(number);
    }
    return FORMAT_RESERVED;
  }
  static Format AscendStringToFormat(const AscendString& name) { return SerialStringToFormat(name.GetString()); }

  /// Sets the bytes of one element; false for a type without a byte size of its own.
  static bool GetDataTypeLength(DataType type, uint32_t& length) {
    const int bytes = GetSizeByDataType(type);
    if (bytes < 0 || bytes >= kDataTypeSizeBitOffset) return false;
    length = static_cast<uint32_t>(bytes);
    return true;
  }

 private:
  static const char* data_type_name(DataType type) {
    switch (type) {
#define OPKIT_TYPE_NAME(name) \
  case name: return #name;
      OPKIT_TYPE_NAME(DT_FLOAT)
      OPKIT_TYPE_NAME(DT_FLOAT16)
      OPKIT_TYPE_NAME(DT_INT8)
      OPKIT_TYPE_NAME(DT_INT32)
      OPKIT_TYPE_NAME(DT_UINT8)
      OPKIT_TYPE_NAME(DT_INT16)
      OPKIT_TYPE_NAME(DT_UINT16)
      OPKIT_TYPE_NAME(DT_UINT32)
      OPKIT_TYPE_NAME(DT_INT64)
      OPKIT_TYPE_NAME(DT_UINT64)
      OPKIT_TYPE_NAME(DT_DOUBLE)
      OPKIT_TYPE_NAME(DT_BOOL)
      OPKIT_TYPE_NAME(DT_STRING)
      OPKIT_TYPE_NAME(DT_DUAL_SUB_INT8)
      OPKIT_TYPE_NAME(DT_DUAL_SUB_UINT8)
      OPKIT_TYPE_NAME(DT_COMPLEX64)
      OPKIT_TYPE_NAME(DT_COMPLEX128)
      OPKIT_TYPE_NAME(DT_QINT8)
      OPKIT_TYPE_NAME(DT_QINT16)
      OPKIT_TYPE_NAME(DT_QINT32)
      OPKIT_TYPE_NAME(DT_QUINT8)
      OPKIT_TYPE_NAME(DT_QUINT16)
      OPKIT_TYPE_NAME(DT_RESOURCE)
      OPKIT_TYPE_NAME(DT_STRING_REF)
      OPKIT_TYPE_NAME(DT_DUAL)
      OPKIT_TYPE_NAME(DT_VARIANT)
      OPKIT_TYPE_NAME(DT_BF16)
      OPKIT_TYPE_NAME(DT_INT4)
      OPKIT_TYPE_NAME(DT_UINT1)
      OPKIT_TYPE_NAME(DT_INT2)
      OPKIT_TYPE_NAME(DT_UINT2)
      OPKIT_TYPE_NAME(DT_COMPLEX32)
      OPKIT_TYPE_NAME(DT_HIFLOAT8)
      OPKIT_TYPE_NAME(DT_FLOAT8_E5M2)
      OPKIT_TYPE_NAME(DT_FLOAT8_E4M3FN)
      OPKIT_TYPE_NAME(DT_FLOAT8_E8M0)
      OPKIT_TYPE_NAME(DT_FLOAT6_E3M2)
      OPKIT_TYPE_NAME(DT_FLOAT6_E2M3)
      OPKIT_TYPE_NAME(DT_FLOAT4_E2M1)
      OPKIT_TYPE_NAME(DT_FLOAT4_E1M2)
#undef OPKIT_TYPE_NAME
      default: return "DT_UNDEFINED";
    }
  }
};

}  // namespace ge
