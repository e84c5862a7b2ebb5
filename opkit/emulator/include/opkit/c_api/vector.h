/// Vector functions of the C interface: addresses in UB, and the lanes of the mask register or the first n elements.
/// Source: C API of asc-devkit, vector_compute. What is no row of elementwise.inc and stands not here is undeclared.
#pragma once

#include "opkit/api/builtin.h"
#include "opkit/api/builtin_select.h"
#include "opkit/c_api/sync.h"

#define OPKIT_C_API_HERE opkit::Where where = opkit::Where::here()
#define OPKIT_C_API_UNARY_STRIDES \
  uint16_t dst_block_stride, uint16_t src_block_stride, uint16_t dst_repeat_stride, uint16_t src_repeat_stride
#define OPKIT_C_API_BINARY_STRIDES                                                                           \
  uint8_t dst_block_stride, uint8_t src0_block_stride, uint8_t src1_block_stride, uint8_t dst_repeat_stride, \
      uint8_t src0_repeat_stride, uint8_t src1_repeat_stride
#define OPKIT_C_API_UNARY_PARAMS \
  opkit::unary_strides(dst_block_stride, src_block_stride, dst_repeat_stride, src_repeat_stride, where)
#define OPKIT_C_API_BINARY_PARAMS                                                                        \
  AscendC::BinaryRepeatParams(dst_block_stride, src0_block_stride, src1_block_stride, dst_repeat_stride, \
                              src0_repeat_stride, src1_repeat_stride)

#define C_API_UNARY(name, function)                                                                              \
  template <typename T>                                                                                          \
  inline void name(T* dst, T* src, uint32_t count, OPKIT_C_API_HERE) {                                           \
    AscendC::function(opkit::ub_tensor(dst), opkit::ub_tensor(src), static_cast<int32_t>(count), where);         \
  }                                                                                                              \
  template <typename T>                                                                                          \
  inline void name##_sync(T* dst, T* src, uint32_t count, OPKIT_C_API_HERE) {                                    \
    name(dst, src, count, where);                                                                                \
    asc_sync(where);                                                                                             \
  }                                                                                                              \
  template <typename T>                                                                                          \
  inline void name(T* dst, T* src, uint8_t repeat, OPKIT_C_API_UNARY_STRIDES, OPKIT_C_API_HERE) {                \
    AscendC::function<T, false>(opkit::ub_tensor(dst), opkit::ub_tensor(src), AscendC::MASK_PLACEHOLDER, repeat, \
                                OPKIT_C_API_UNARY_PARAMS, where);                                                \
  }
#define C_API_BINARY(name, function)                                                                         \
  template <typename T>                                                                                      \
  inline void name(T* dst, T* src0, T* src1, uint32_t count, OPKIT_C_API_HERE) {                             \
    AscendC::function(opkit::ub_tensor(dst), opkit::ub_tensor(src0), opkit::ub_tensor(src1),                 \
                      static_cast<int32_t>(count), where);                                                   \
  }                                                                                                          \
  template <typename T>                                                                                      \
  inline void name##_sync(T* dst, T* src0, T* src1, uint32_t count, OPKIT_C_API_HERE) {                      \
    name(dst, src0, src1, count, where);                                                                     \
    asc_sync(where);                                                                                         \
  }                                                                                                          \
  template <typename T>                                                                                      \
  inline void name(T* dst, T* src0, T* src1, uint8_t repeat, OPKIT_C_API_BINARY_STRIDES, OPKIT_C_API_HERE) { \
    AscendC::function<T, false>(opkit::ub_tensor(dst), opkit::ub_tensor(src0), opkit::ub_tensor(src1),       \
                                AscendC::MASK_PLACEHOLDER, repeat, OPKIT_C_API_BINARY_PARAMS, where);        \
  }
#define C_API_SCALAR(name, function)                                                                            \
  template <typename T>                                                                                         \
  inline void name(T* dst, T* src, std::common_type_t<T> value, uint32_t count, OPKIT_C_API_HERE) {             \
    AscendC::function(opkit::ub_tensor(dst), opkit::ub_tensor(src), value, static_cast<int32_t>(count), where); \
  }                                                                                                             \
  template <typename T>                                                                                         \
  inline void name##_sync(T* dst, T* src, std::common_type_t<T> value, uint32_t count, OPKIT_C_API_HERE) {      \
    name(dst, src, value, count, where);                                                                        \
    asc_sync(where);                                                                                            \
  }                                                                                                             \
  template <typename T>                                                                                         \
  inline void name(T* dst, T* src, std::common_type_t<T> value, uint8_t repeat, OPKIT_C_API_UNARY_STRIDES,      \
                   OPKIT_C_API_HERE) {                                                                          \
    AscendC::function<T, false>(opkit::ub_tensor(dst), opkit::ub_tensor(src), value, AscendC::MASK_PLACEHOLDER, \
                                repeat, OPKIT_C_API_UNARY_PARAMS, where);                                       \
  }
#define C_API_CONVERT(name, D, S, mode)                                                                             \
  inline void name(D* dst, S* src, uint32_t count, OPKIT_C_API_HERE) {                                              \
    AscendC::Cast(opkit::ub_tensor(dst), opkit::ub_tensor(src), AscendC::RoundMode::mode, count, where);            \
  }                                                                                                                 \
  inline void name##_sync(D* dst, S* src, uint32_t count, OPKIT_C_API_HERE) {                                       \
    name(dst, src, count, where);                                                                                   \
    asc_sync(where);                                                                                                \
  }                                                                                                                 \
  inline void name(D* dst, S* src, uint8_t repeat, OPKIT_C_API_UNARY_STRIDES, OPKIT_C_API_HERE) {                   \
    AscendC::Cast<D, S, false>(opkit::ub_tensor(dst), opkit::ub_tensor(src), AscendC::RoundMode::mode, uint64_t{0}, \
                               repeat, OPKIT_C_API_UNARY_PARAMS, where);                                            \
  }
#define C_API_ROUND(name, D, S)               \
  C_API_CONVERT(name##_rn, D, S, CAST_RINT)   \
  C_API_CONVERT(name##_rna, D, S, CAST_ROUND) \
  C_API_CONVERT(name##_rd, D, S, CAST_FLOOR)  \
  C_API_CONVERT(name##_ru, D, S, CAST_CEIL)   \
  C_API_CONVERT(name##_rz, D, S, CAST_TRUNC)
// Into memory or, without a destination, into the compare register.
#define C_API_COMPARE(suffix, mode)                                                                                    \
  template <typename T>                                                                                                \
  inline void asc_##suffix(uint8_t* dst, T* src0, T* src1, uint8_t repeat, OPKIT_C_API_BINARY_STRIDES,                 \
                           OPKIT_C_API_HERE) {                                                                         \
    vcmpv_##suffix(dst, src0, src1, repeat, dst_block_stride, src0_block_stride, src1_block_stride, dst_repeat_stride, \
                   src0_repeat_stride, src1_repeat_stride, where);                                                     \
  }                                                                                                                    \
  template <typename T>                                                                                                \
  inline void asc_##suffix(T* src0, T* src1, uint8_t repeat, OPKIT_C_API_BINARY_STRIDES, OPKIT_C_API_HERE) {           \
    vcmp_##suffix(src0, src1, repeat, dst_block_stride, src0_block_stride, src1_block_stride, dst_repeat_stride,       \
                  src0_repeat_stride, src1_repeat_stride, where);                                                      \
  }                                                                                                                    \
  template <typename T>                                                                                                \
  inline void asc_##suffix##_scalar(uint8_t* dst, T* src, std::common_type_t<T> value, uint8_t repeat,                 \
                                    OPKIT_C_API_UNARY_STRIDES, OPKIT_C_API_HERE) {                                     \
    vcmpvs_##suffix(dst, src, value, repeat, dst_block_stride, src_block_stride, dst_repeat_stride, src_repeat_stride, \
                    where);                                                                                            \
  }
#include "opkit/c_api/elementwise.inc"
#undef C_API_UNARY
#undef C_API_BINARY
#undef C_API_SCALAR
#undef C_API_CONVERT
#undef C_API_ROUND
#undef C_API_COMPARE

/// dst[i] = src[i] - value: exactly what adding the negative gives, integers wrap around.
template <typename T>
inline void asc_sub_scalar(T* dst, T* src, std::common_type_t<T> value, uint32_t count, OPKIT_C_API_HERE) {
  asc_add_scalar(dst, src, static_cast<T>(-value), count, where);
}
template <typename T>
inline void asc_sub_scalar_sync(T* dst, T* src, std::common_type_t<T> value, uint32_t count, OPKIT_C_API_HERE) {
  asc_add_scalar_sync(dst, src, static_cast<T>(-value), count, where);
}
template <typename T>
inline void asc_sub_scalar(T* dst, T* src, std::common_type_t<T> value, uint8_t repeat, OPKIT_C_API_UNARY_STRIDES,
                           OPKIT_C_API_HERE) {
  asc_add_scalar(dst, src, static_cast<T>(-value), repeat, dst_block_stride, src_block_stride, dst_repeat_stride,
                 src_repeat_stride, where);
}

template <typename T>
inline void asc_duplicate(T* dst, std::common_type_t<T> src, uint32_t count, OPKIT_C_API_HERE) {
  AscendC::Duplicate(opkit::ub_tensor(dst), static_cast<T>(src), static_cast<int32_t>(count), where);
}
template <typename T>
inline void asc_duplicate_sync(T* dst, std::common_type_t<T> src, uint32_t count, OPKIT_C_API_HERE) {
  asc_duplicate(dst, src, count, where);
  asc_sync(where);
}
template <typename T>
inline void asc_duplicate(T* dst, std::common_type_t<T> src, uint8_t repeat, uint16_t dst_block_stride,
                          uint16_t dst_repeat_stride, OPKIT_C_API_HERE) {
  vector_dup(dst, static_cast<T>(src), repeat, dst_block_stride, 1, dst_repeat_stride, 8, where);
}

template <typename T>
inline void asc_gather(T* dst, T* src, uint32_t* src_offset, uint32_t count, OPKIT_C_API_HERE) {
  AscendC::Gather(opkit::ub_tensor(dst), opkit::ub_tensor(src), opkit::ub_tensor(src_offset), 0, count, where);
}
template <typename T>
inline void asc_gather_sync(T* dst, T* src, uint32_t* src_offset, uint32_t count, OPKIT_C_API_HERE) {
  asc_gather(dst, src, src_offset, count, where);
  asc_sync(where);
}

// Where the extreme and its index go: the destination's stride counts results of a repeat.
#define OPKIT_C_API_EXTREME(name, function, order)                                                             \
  template <typename T>                                                                                        \
  inline void name(T* dst, T* src, uint8_t repeat, uint16_t dst_repeat_stride, uint16_t src_block_stride,      \
                   uint16_t src_repeat_stride, OPKIT_C_API_HERE) {                                             \
    function(dst, src, repeat, dst_repeat_stride, src_block_stride, src_repeat_stride, Order_t::order, where); \
  }
#define OPKIT_C_API_EXTREMES(name, function)                     \
  OPKIT_C_API_EXTREME(name##_value_index, function, VALUE_INDEX) \
  OPKIT_C_API_EXTREME(name##_index_value, function, INDEX_VALUE) \
  OPKIT_C_API_EXTREME(name##_only_value, function, ONLY_VALUE)   \
  OPKIT_C_API_EXTREME(name##_only_index, function, ONLY_INDEX)
OPKIT_C_API_EXTREMES(asc_repeat_reduce_max, vcmax)
OPKIT_C_API_EXTREMES(asc_repeat_reduce_min, vcmin)
#undef OPKIT_C_API_EXTREME
#undef OPKIT_C_API_EXTREMES

inline void asc_set_vector_mask(uint64_t mask1, uint64_t mask0) { set_vector_mask(mask1, mask0); }
inline void asc_set_mask_count() { set_mask_count(); }
inline void asc_set_mask_norm() { set_mask_norm(); }
inline void asc_set_cmp_mask(void* sel_mask, OPKIT_C_API_HERE) { set_cmpmask(static_cast<uint8_t*>(sel_mask), where); }
inline void asc_get_cmp_mask(void* dst, OPKIT_C_API_HERE) {
  AscendC::GetCmpMask(opkit::ub_tensor(static_cast<uint8_t*>(dst)), where);
}
inline int64_t asc_get_rsvd_count() { return get_rsvd_cnt(); }

#undef OPKIT_C_API_HERE
#undef OPKIT_C_API_UNARY_STRIDES
#undef OPKIT_C_API_BINARY_STRIDES
#undef OPKIT_C_API_UNARY_PARAMS
#undef OPKIT_C_API_BINARY_PARAMS
