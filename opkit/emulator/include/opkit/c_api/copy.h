/// Copies of the C interface. Source: C API of asc-devkit, vector_datamove. The strided forms of the copies with
/// padding are not declared: their page gives gaps of global memory in data blocks, the instruction's own page in
/// bytes.
#pragma once

#include "opkit/api/builtin.h"
#include "opkit/c_api/sync.h"

namespace opkit {

constexpr uint32_t kMostCopyBlocks = 65535;

/// Data blocks of a copy of `size` bytes, which has to have whole ones.
inline uint16_t blocks_of_copy(uint32_t size, Where where) {
  if (size % kBlockBytes != 0) illegal_operand("the size of a copy of the C API is no multiple of 32 bytes", where);
  if (size / kBlockBytes > kMostCopyBlocks) illegal_operand("a copy of the C API has over 65535 data blocks", where);
  return static_cast<uint16_t>(size / kBlockBytes);
}

}  // namespace opkit

#define OPKIT_C_API_COPY(name, function)                                                                          \
  inline void name(void* dst, const void* src, uint16_t n_burst, uint16_t len_burst, uint16_t src_gap,            \
                   uint16_t dst_gap, opkit::Where where = opkit::Where::here()) {                                 \
    function(dst, src, 0, n_burst, len_burst, src_gap, dst_gap, where);                                           \
  }                                                                                                               \
  inline void name(void* dst, const void* src, uint32_t size, opkit::Where where = opkit::Where::here()) {        \
    const uint16_t blocks = opkit::blocks_of_copy(size, where);                                                   \
    if (blocks > 0) name(dst, src, 1, blocks, 0, 0, where);                                                       \
  }                                                                                                               \
  inline void name##_sync(void* dst, const void* src, uint32_t size, opkit::Where where = opkit::Where::here()) { \
    name(dst, src, size, where);                                                                                  \
    asc_sync(where);                                                                                              \
  }
OPKIT_C_API_COPY(asc_copy_gm2ub, copy_gm_to_ubuf)
OPKIT_C_API_COPY(asc_copy_ub2gm, copy_ubuf_to_gm)
OPKIT_C_API_COPY(asc_copy_ub2ub, copy_ubuf_to_ubuf)
#undef OPKIT_C_API_COPY

// Any number of bytes; what fills UB's last data block has no documented value.
#define OPKIT_C_API_ALIGNED_COPY(T)                                                                                 \
  inline void asc_copy_gm2ub_align(T* dst, T* src, uint32_t size, opkit::Where where = opkit::Where::here()) {      \
    copy_gm_to_ubuf_align_b8(dst, src, 0, 1, size, 0, 0, 0, 0, where);                                              \
  }                                                                                                                 \
  inline void asc_copy_gm2ub_align_sync(T* dst, T* src, uint32_t size, opkit::Where where = opkit::Where::here()) { \
    asc_copy_gm2ub_align(dst, src, size, where);                                                                    \
    asc_sync(where);                                                                                                \
  }                                                                                                                 \
  inline void asc_copy_ub2gm_align(T* dst, T* src, uint32_t size, opkit::Where where = opkit::Where::here()) {      \
    copy_ubuf_to_gm_align_b8(dst, src, 0, 1, size, 0, 0, 0, 0, where);                                              \
  }                                                                                                                 \
  inline void asc_copy_ub2gm_align_sync(T* dst, T* src, uint32_t size, opkit::Where where = opkit::Where::here()) { \
    asc_copy_ub2gm_align(dst, src, size, where);                                                                    \
    asc_sync(where);                                                                                                \
  }
OPKIT_C_API_ALIGNED_COPY(int8_t)
OPKIT_C_API_ALIGNED_COPY(uint8_t)
OPKIT_C_API_ALIGNED_COPY(int16_t)
OPKIT_C_API_ALIGNED_COPY(uint16_t)
OPKIT_C_API_ALIGNED_COPY(half)
OPKIT_C_API_ALIGNED_COPY(bfloat16_t)
OPKIT_C_API_ALIGNED_COPY(int32_t)
OPKIT_C_API_ALIGNED_COPY(uint32_t)
OPKIT_C_API_ALIGNED_COPY(float)
#undef OPKIT_C_API_ALIGNED_COPY
