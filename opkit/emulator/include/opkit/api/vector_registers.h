/// What reductions leave in registers. Source: Ascend C API, reduction, auxiliary interfaces; appendix, changed names.
#pragma once

#include "opkit/api/vector_common.h"

namespace AscendC {

/// What the last ReduceSum of a count of elements gave.
template <typename T>
inline T GetReduceRepeatSumSpr() {
  return opkit::value_of<T>(opkit::reduce_sum_bits());
}
/// Its name before CANN 9.
template <typename T>
inline T GetAccVal() {
  return GetReduceRepeatSumSpr<T>();
}

/// The register itself, with the value in its low bits: what the function without a type gives, which public kernels
/// read as a float.
inline uint64_t GetAccVal() { return opkit::reduce_sum_bits(); }

/// The extreme of all repeats of the last ReduceRepeat or ReduceMax or ReduceMin. The index is an integer whose bits
/// are stored as T; after ReduceMax and ReduceMin it is not defined.
template <typename T>
inline void GetReduceRepeatMaxMinSpr(T& maxMinValue, T& maxMinIndex) {
  static_assert(sizeof(T) > 0 && opkit::kArchTraits.tells_extreme_index,
                "GetReduceRepeatMaxMinSpr: this chip gives the value only, not its index");
  maxMinValue = opkit::value_of<T>(opkit::reduce_extreme_bits(0));
  maxMinIndex = opkit::value_of<T>(opkit::reduce_extreme_bits(1));
}
template <typename T>
inline void GetReduceRepeatMaxMinSpr(T& maxMinValue) {
  static_assert(sizeof(T) > 0 && !opkit::kArchTraits.tells_extreme_index,
                "GetReduceRepeatMaxMinSpr: this chip gives the value and its index: pass both");
  maxMinValue = opkit::value_of<T>(opkit::reduce_extreme_bits(0));
}
/// Their names before CANN 9.
template <typename T>
inline void GetReduceMaxMinCount(T& maxMinValue, T& maxMinIndex) {
  GetReduceRepeatMaxMinSpr<T>(maxMinValue, maxMinIndex);
}
template <typename T>
inline void GetReduceMaxMinCount(T& maxMinValue) {
  GetReduceRepeatMaxMinSpr<T>(maxMinValue);
}

}  // namespace AscendC
