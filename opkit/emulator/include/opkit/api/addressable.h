/// The functions whose address kernels take, as template arguments of their own: `Loop<half, Sub>` with a parameter
/// `void (*)(const LocalTensor<T>&, const LocalTensor<T>&, const LocalTensor<T>&, const int32_t&)`.
///
/// Every public function has a last parameter more, the position of its caller, so its type is not the documented one.
/// Here each has its documented type. A call never chooses these: their tensors are less specialised (any template of
/// one type), so the others win. The position of what they call is this file.
#pragma once

#include "opkit/api/vector.h"
#include "opkit/high_level/all.h"

namespace AscendC {

#define OPKIT_TENSORS_TO template <typename T, bool flag = OPKIT_FLAG, template <typename> class Tensor>

#define OPKIT_FLAG true
#define VEC_UNARY(name, ...)                                                                            \
  OPKIT_TENSORS_TO inline void name(const Tensor<T>& dst, const Tensor<T>& src, const int32_t& count) { \
    name<T, flag>(dst, src, count, ::opkit::Where::here());                                             \
  }                                                                                                     \
  OPKIT_UNARY_REPEATS(name, uint64_t mask[])                                                            \
  OPKIT_UNARY_REPEATS(name, uint64_t mask)
#define OPKIT_UNARY_REPEATS(name, ...)                                                                              \
  OPKIT_TENSORS_TO inline void name(const Tensor<T>& dst, const Tensor<T>& src, __VA_ARGS__, const uint8_t repeats, \
                                    const UnaryRepeatParams& params) {                                              \
    name<T, flag>(dst, src, mask, repeats, params, ::opkit::Where::here());                                         \
  }
#include "opkit/isa/vec_unary.inc"
#undef VEC_UNARY
#undef OPKIT_UNARY_REPEATS

#define VEC_BINARY(name, ...)                                                                           \
  OPKIT_TENSORS_TO inline void name(const Tensor<T>& dst, const Tensor<T>& src0, const Tensor<T>& src1, \
                                    const int32_t& count) {                                             \
    name<T, flag>(dst, src0, src1, count, ::opkit::Where::here());                                      \
  }                                                                                                     \
  OPKIT_BINARY_REPEATS(name, uint64_t mask[])                                                           \
  OPKIT_BINARY_REPEATS(name, uint64_t mask)
#define OPKIT_BINARY_REPEATS(name, ...)                                                                              \
  OPKIT_TENSORS_TO inline void name(const Tensor<T>& dst, const Tensor<T>& src0, const Tensor<T>& src1, __VA_ARGS__, \
                                    const uint8_t repeats, const BinaryRepeatParams& params) {                       \
    name<T, flag>(dst, src0, src1, mask, repeats, params, ::opkit::Where::here());                                   \
  }
#include "opkit/isa/vec_binary.inc"
#undef VEC_BINARY
#undef OPKIT_BINARY_REPEATS

#define VEC_BINARY_SCALAR(name, ...)                                                             \
  OPKIT_TENSORS_TO inline void name(const Tensor<T>& dst, const Tensor<T>& src, const T& scalar, \
                                    const int32_t& count) {                                      \
    name<T, flag>(dst, src, scalar, count, ::opkit::Where::here());                              \
  }                                                                                              \
  OPKIT_SCALAR_REPEATS(name, uint64_t mask[])                                                    \
  OPKIT_SCALAR_REPEATS(name, uint64_t mask)
#define OPKIT_SCALAR_REPEATS(name, ...)                                                                       \
  OPKIT_TENSORS_TO inline void name(const Tensor<T>& dst, const Tensor<T>& src, const T& scalar, __VA_ARGS__, \
                                    const uint8_t repeats, const UnaryRepeatParams& params) {                 \
    name<T, flag>(dst, src, scalar, mask, repeats, params, ::opkit::Where::here());                           \
  }
#define VEC_BINARY_SCALAR_DST(name, ...)  // Axpy has two types
#include "opkit/isa/vec_binary_scalar.inc"
#undef VEC_BINARY_SCALAR
#undef VEC_BINARY_SCALAR_DST
#undef OPKIT_SCALAR_REPEATS
#undef OPKIT_FLAG

#define OPKIT_FLAG false
#define HIGH_LEVEL_UNARY(name, ...)                                                                           \
  OPKIT_TENSORS_TO inline void name(const Tensor<T>& dst, const Tensor<T>& src, const uint32_t count) {       \
    name<T, flag>(dst, src, count, ::opkit::Where::here());                                                   \
  }                                                                                                           \
  OPKIT_TENSORS_TO inline void name(const Tensor<T>& dst, const Tensor<T>& src, const Tensor<uint8_t>& space, \
                                    const uint32_t count) {                                                   \
    name<T, flag>(dst, src, space, count, ::opkit::Where::here());                                            \
  }
#define HIGH_LEVEL_BINARY(name, ...)                                                                    \
  OPKIT_TENSORS_TO inline void name(const Tensor<T>& dst, const Tensor<T>& src0, const Tensor<T>& src1, \
                                    const uint32_t count) {                                             \
    name<T, flag>(dst, src0, src1, count, ::opkit::Where::here());                                      \
  }
#include "opkit/high_level/elementwise.inc"
#undef OPKIT_FLAG
#undef OPKIT_TENSORS_TO

}  // namespace AscendC
