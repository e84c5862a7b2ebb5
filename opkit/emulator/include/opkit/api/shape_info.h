/// The shape that a tensor can carry along. Source: Ascend C API, auxiliary data structures, ShapeInfo.
#pragma once

#include <cstdint>

namespace AscendC {

constexpr int32_t K_MAX_DIM = 8;
// Kernels may define it as a macro, to make tensors carry less.
#ifndef K_MAX_SHAPE_DIM
constexpr int32_t K_MAX_SHAPE_DIM = 8;
#endif

enum class DataFormat : uint8_t { ND = 0, NZ, NCHW, NC1HWC0, NHWC, NCDHW, NDC1HWC0, FRACTAL_Z_3D };

struct ShapeInfo {
  ShapeInfo() = default;
  ShapeInfo(const uint8_t inputShapeDim, const uint32_t inputShape[], const uint8_t inputOriginalShapeDim,
            const uint32_t inputOriginalShape[], const DataFormat inputFormat)
      : shapeDim(inputShapeDim), originalShapeDim(inputOriginalShapeDim), dataFormat(inputFormat) {
    for (int32_t i = 0; i < inputShapeDim && i < K_MAX_DIM; ++i) shape[i] = inputShape[i];
    for (int32_t i = 0; i < inputOriginalShapeDim && i < K_MAX_DIM; ++i) originalShape[i] = inputOriginalShape[i];
  }
  ShapeInfo(const uint8_t inputShapeDim, const uint32_t inputShape[], const DataFormat inputFormat)
      : ShapeInfo(inputShapeDim, inputShape, inputShapeDim, inputShape, inputFormat) {}
  ShapeInfo(const uint8_t inputShapeDim, const uint32_t inputShape[])
      : ShapeInfo(inputShapeDim, inputShape, DataFormat::ND) {}

  uint8_t shapeDim = 0;
  uint8_t originalShapeDim = 0;
  uint32_t shape[K_MAX_DIM] = {};
  uint32_t originalShape[K_MAX_DIM] = {};
  DataFormat dataFormat = DataFormat::ND;
};

inline int GetShapeSize(const ShapeInfo& shapeInfo) {
  int size = 1;
  for (int32_t i = 0; i < shapeInfo.shapeDim; ++i) size *= static_cast<int>(shapeInfo.shape[i]);
  return size;
}

}  // namespace AscendC
