/// Tiling data defined field by field, for host and kernel. Source: Ascend C API, utilities, TilingData definition.
///
///     BEGIN_TILING_DATA_DEF(AddCustomTilingData)
///       TILING_DATA_FIELD_DEF(uint32_t, totalLength);
///     END_TILING_DATA_DEF;
///     REGISTER_TILING_DATA_CLASS(AddCustom, AddCustomTilingData)
///
/// A line may end in a semicolon or not. On the host this is a class with set_ and get_ functions; in a kernel's
/// translation unit (__CCE_AICORE__ defined) the same lines are a plain struct, with the same functions because a
/// program's host code lies in it, too. SaveToBuffer writes the layout of that struct.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "opkit/host/plain_tiling.h"

#if defined(__CCE_AICORE__)

#define BEGIN_TILING_DATA_DEF(class_name) \
  struct class_name {                     \
    OPKIT_PLAIN_TILING()
#define TILING_DATA_FIELD_DEF(data_type, field_name) OPKIT_PLAIN_TILING_FIELD(data_type, field_name);
#define TILING_DATA_FIELD_DEF_ARR(element_type, element_count, field_name)                                    \
  void set_##field_name(const element_type* values) { ::std::memcpy(field_name, values, sizeof field_name); } \
  element_type* get_##field_name() { return field_name; }                                                     \
  element_type field_name[element_count] = {};
#define TILING_DATA_FIELD_DEF_STRUCT(struct_type, field_name) struct_type field_name;
#define END_TILING_DATA_DEF \
  }                         \
  ;
#define REGISTER_TILING_DATA_CLASS(op_type, class_name)

#else

#include "log/log.h"
#include "opkit/host/abi.h"
#include "opkit/host/prelude.h"

namespace optiling {

/// Base of every tiling data class: knows where its fields are. Copying is safe: fields are kept as offsets.
class TilingDef {
 public:
  virtual ~TilingDef() = default;

  /// Bytes of the equivalent plain struct.
  size_t GetDataSize() const {
    size_t end = 0;
    for (const Field& field : fields_) end = align_up(end, field.alignment) + field.size_bytes;
    return align_up(end, alignment());
  }

  /// From now on every set_ also writes the plain struct there. Reserved by the documents; host code calls it with the
  /// raw tiling data in place of SaveToBuffer.
  void SetDataPtr(void* data) {
    followed_ = data;
    follow();
  }

  /// Writes the equivalent plain struct; writes nothing and logs an error when `capacity` is too small.
  void SaveToBuffer(void* buffer, size_t capacity) const {
    const size_t size_bytes = GetDataSize();
    if (!opkit::host::fits_tiling(size_bytes, buffer, capacity)) return;
    std::memset(buffer, 0, size_bytes);
    size_t position = 0;
    for (const Field& field : fields_) {
      position = align_up(position, field.alignment);
      char* target = static_cast<char*>(buffer) + position;
      const char* source = reinterpret_cast<const char*>(this) + field.offset;
      if (field.is_struct) {
        reinterpret_cast<const TilingDef*>(source)->SaveToBuffer(target, field.size_bytes);
      } else {
        std::memcpy(target, source, field.size_bytes);
      }
      position += field.size_bytes;
    }
  }

  /// Tells the library what the class looks like: the build writes it into the kernel's source as a plain struct.
  bool register_as(const char* op_type, const char* class_name) const {
    std::vector<opkit::host::TilingField> declarations;
    for (const Field& field : fields_) declarations.push_back(field.declaration);
    const opkit::host::TilingClass description = {opkit::host::kHostAbiVersion, op_type, class_name,
                                                  declarations.data(), declarations.size()};
    opkit_register_tiling_class(&description);
    return true;
  }

 protected:
  /// `array_length` is 0 for a field that is no array.
  bool add_field(const char* type, const char* name, size_t array_length, const void* field, size_t size_bytes,
                 size_t alignment) {
    fields_.push_back({{type, name, array_length}, offset_of(field), size_bytes, alignment, false});
    return true;
  }
  void follow() const {
    if (followed_ != nullptr) SaveToBuffer(followed_, GetDataSize());
  }
  bool add_struct(const char* type, const char* name, const TilingDef* field) {
    fields_.push_back({{type, name, 0}, offset_of(field), field->GetDataSize(), field->alignment(), true});
    return true;
  }

 private:
  struct Field {
    opkit::host::TilingField declaration;
    size_t offset;  ///< from this object
    size_t size_bytes;
    size_t alignment;
    bool is_struct;
  };

  static size_t align_up(size_t value, size_t alignment) { return (value + alignment - 1) / alignment * alignment; }
  size_t offset_of(const void* field) const {
    return static_cast<size_t>(static_cast<const char*>(field) - reinterpret_cast<const char*>(this));
  }
  size_t alignment() const {
    size_t largest = 1;
    for (const Field& field : fields_) largest = field.alignment > largest ? field.alignment : largest;
    return largest;
  }

  std::vector<Field> fields_;
  void* followed_ = nullptr;
};

}  // namespace optiling

#define BEGIN_TILING_DATA_DEF(class_name)           \
  class class_name : public ::optiling::TilingDef { \
   public:

#define TILING_DATA_FIELD_DEF(data_type, field_name)                                                        \
 public:                                                                                                    \
  void set_##field_name(data_type value) {                                                                  \
    opkit_##field_name##_ = value;                                                                          \
    follow();                                                                                               \
  }                                                                                                         \
  data_type get_##field_name() const { return opkit_##field_name##_; }                                      \
                                                                                                            \
 private:                                                                                                   \
  data_type opkit_##field_name##_ = 0;                                                                      \
  bool opkit_##field_name##_is_listed_ =                                                                    \
      add_field(#data_type, #field_name, 0, &opkit_##field_name##_, sizeof(data_type), alignof(data_type)); \
                                                                                                            \
 public:

#define TILING_DATA_FIELD_DEF_ARR(element_type, element_count, field_name)                                           \
 public:                                                                                                             \
  void set_##field_name(const element_type* values) {                                                                \
    std::memcpy(opkit_##field_name##_, values, sizeof opkit_##field_name##_);                                        \
    follow();                                                                                                        \
  }                                                                                                                  \
  element_type* get_##field_name() { return opkit_##field_name##_; }                                                 \
                                                                                                                     \
 private:                                                                                                            \
  element_type opkit_##field_name##_[element_count] = {};                                                            \
  bool opkit_##field_name##_is_listed_ = add_field(#element_type, #field_name, element_count, opkit_##field_name##_, \
                                                   sizeof opkit_##field_name##_, alignof(element_type));             \
                                                                                                                     \
 public:

#define TILING_DATA_FIELD_DEF_STRUCT(struct_type, field_name)                                \
 public:                                                                                     \
  struct_type field_name;                                                                    \
                                                                                             \
 private:                                                                                    \
  bool opkit_##field_name##_is_listed_ = add_struct(#struct_type, #field_name, &field_name); \
                                                                                             \
 public:

#define END_TILING_DATA_DEF \
  }                         \
  ;

#define OPKIT_TILING_JOIN_INNER(a, b) a##b
#define OPKIT_TILING_JOIN(a, b) OPKIT_TILING_JOIN_INNER(a, b)
#define REGISTER_TILING_DATA_CLASS(op_type, class_name)                                    \
  static_assert(std::is_base_of<::optiling::TilingDef, class_name>::value,                 \
                #class_name " was not defined with BEGIN_TILING_DATA_DEF");                \
  [[maybe_unused]] static const bool OPKIT_TILING_JOIN(opkit_tiling_class_, __COUNTER__) = \
      class_name().register_as(#op_type, #class_name);

#endif
