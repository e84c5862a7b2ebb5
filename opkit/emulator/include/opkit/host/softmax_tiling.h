/// Temporary space and tiling of the softmax functions. Source: Ascend C API, high-level API, the tiling pages of
/// SoftMax, SoftmaxFlash, SoftmaxFlashV2, SoftmaxFlashV3, SoftmaxGrad and LogSoftMax; the sizes are opkit's own.
#pragma once

#include "opkit/high_level/softmax_tiling.h"
#include "opkit/host/row_space.h"
#include "opkit/host/temporary_space.h"
#include "opkit/host/vector_tiling.h"

namespace opkit::host {

inline uint32_t most_softmax_space(const ge::Shape& shape, uint32_t matrices = high_level::kSoftmaxMatrices) {
  return most_row_space(shape, matrices, high_level::kSoftmaxColumns);
}
inline uint32_t least_softmax_space(const ge::Shape& shape, uint32_t matrices = high_level::kSoftmaxMatrices) {
  return least_row_space(shape, matrices, high_level::kSoftmaxColumns);
}

template <typename Tiling>
inline void softmax_tiling(const ge::Shape& shape, uint32_t type_bytes, Tiling& tiling) {
  const RowShape rows(shape);
  high_level::fill_softmax_tiling(tiling, rows.rows, rows.width, type_bytes);
}

}  // namespace opkit::host

namespace AscendC {

inline uint32_t GetSoftMaxMaxTmpSize(const TensorShape& srcShape, const uint32_t, const bool) {
  return opkit::host::most_softmax_space(srcShape);
}
inline uint32_t GetSoftMaxMinTmpSize(const TensorShape& srcShape, const uint32_t, const bool) {
  return opkit::host::least_softmax_space(srcShape);
}
inline uint32_t GetSoftMaxFlashMaxTmpSize(const TensorShape& srcShape, const uint32_t, const bool, const bool) {
  return opkit::host::most_softmax_space(srcShape);
}
inline uint32_t GetSoftMaxFlashMinTmpSize(const TensorShape& srcShape, const uint32_t, const bool, const bool) {
  return opkit::host::least_softmax_space(srcShape);
}
inline uint32_t GetSoftMaxFlashV2MaxTmpSize(const TensorShape& srcShape, const uint32_t, const uint32_t, const bool,
                                            const bool = false, const bool = false) {
  return opkit::host::most_softmax_space(srcShape);
}
/// Results of one number a row begin at whole data blocks, so this takes eight rows at a time.
inline uint32_t GetSoftMaxFlashV2MinTmpSize(const TensorShape& srcShape, const uint32_t, const uint32_t, const bool,
                                            const bool = false, const bool = false) {
  return opkit::host::least_row_space(srcShape, opkit::high_level::kSoftmaxMatrices, opkit::high_level::kSoftmaxColumns,
                                      8);
}
inline void GetSoftMaxFlashV3MaxMinTmpSize(const TensorShape& srcShape, const uint32_t, const uint32_t,
                                           uint32_t& maxValue, uint32_t& minValue, const bool, const bool = false) {
  maxValue = opkit::host::most_row_space(srcShape, opkit::high_level::kSoftmaxV3Matrices,
                                         opkit::high_level::kSoftmaxV3Columns);
  minValue = opkit::host::least_row_space(srcShape, opkit::high_level::kSoftmaxV3Matrices,
                                          opkit::high_level::kSoftmaxV3Columns);
}
inline uint32_t GetSoftMaxGradMaxTmpSize(const TensorShape& srcShape, const uint32_t, const bool, const bool) {
  return opkit::host::most_softmax_space(srcShape, opkit::high_level::kSoftmaxGradMatrices);
}
inline uint32_t GetSoftMaxGradMinTmpSize(const TensorShape& srcShape, const uint32_t, const bool, const bool) {
  return opkit::host::least_softmax_space(srcShape, opkit::high_level::kSoftmaxGradMatrices);
}
inline uint32_t GetLogSoftMaxMaxTmpSize(const TensorShape srcShape, const uint32_t, const bool) {
  return opkit::host::most_softmax_space(srcShape);
}
inline uint32_t GetLogSoftMaxMinTmpSize(const TensorShape srcShape, const uint32_t, const bool) {
  return opkit::host::least_softmax_space(srcShape);
}

/// The tiling functions take optiling's structs and those of AscendC::tiling.
template <typename Tiling>
inline void SoftMaxTilingFunc(const TensorShape& srcShape, const uint32_t dataTypeSize, const uint32_t,
                              Tiling& softmaxTiling) {
  opkit::host::softmax_tiling(srcShape, dataTypeSize, softmaxTiling);
}
template <typename Tiling>
inline void SoftMaxFlashTilingFunc(const TensorShape& srcShape, const uint32_t dataTypeSize, const uint32_t,
                                   Tiling& softmaxFlashTiling, const bool = false) {
  opkit::host::softmax_tiling(srcShape, dataTypeSize, softmaxFlashTiling);
}
template <typename Tiling>
inline void SoftMaxFlashV2TilingFunc(const TensorShape& srcShape, const uint32_t, const uint32_t dataTypeSize2,
                                     const uint32_t, Tiling& softmaxFlashTiling, const bool, const bool = false,
                                     const bool = false) {
  opkit::host::softmax_tiling(srcShape, dataTypeSize2, softmaxFlashTiling);
}
template <typename Tiling>
inline void SoftMaxFlashV3TilingFunc(const TensorShape& srcShape, const uint32_t, const uint32_t dataTypeSize2,
                                     const uint32_t, Tiling& softmaxFlashV3Tiling, const bool, const bool = false) {
  opkit::host::softmax_tiling(srcShape, dataTypeSize2, softmaxFlashV3Tiling);
}
template <typename Tiling>
inline void SoftMaxGradTilingFunc(const TensorShape& srcShape, const uint32_t dataTypeSize, const uint32_t,
                                  Tiling& softmaxGradTiling, const bool = false) {
  opkit::host::softmax_tiling(srcShape, dataTypeSize, softmaxGradTiling);
}
template <typename Tiling>
inline void LogSoftMaxTilingFunc(const TensorShape srcShape, const uint32_t, const uint32_t, Tiling& softmaxTiling) {
  const opkit::host::RowShape rows(srcShape);
  softmaxTiling.set_srcM(rows.rows);
  softmaxTiling.set_srcK(rows.width);
}

/// Rows in eights, of a multiple of 64 elements that is at least a repeat and less than 2048.
template <typename Tiling>
inline bool IsBasicBlockInSoftMax(Tiling& tiling, const uint32_t dataTypeSize = 2) {
  const uint32_t width = tiling.get_srcK();
  return tiling.get_srcM() % 8 == 0 && width % 64 == 0 && width < 2048 && width * dataTypeSize >= 256;
}

}  // namespace AscendC
