/// SoftmaxGrad and SoftmaxGradFront. Source: Ascend C API, high-level API, activation functions, SoftMax.
#pragma once

#include "opkit/high_level/softmax.h"

namespace opkit::high_level {

/// dst = (grad - sum of grad * src in the row) * src, or that sum alone, a data block a row.
template <bool is_nz, typename T>
inline void softmax_grad(const AscendC::LocalTensor<T>& dst, const AscendC::LocalTensor<T>& grad,
                         const AscendC::LocalTensor<T>& src, const AscendC::LocalTensor<uint8_t>& space, bool is_front,
                         const AscendC::SoftMaxShapeInfo& shape, Where where) {
  constexpr uint32_t matrices = is_in_place<T, is_nz> ? 1 : kSoftmaxGradMatrices;
  in_softmax_parts<matrices>(space, shape, where, [&](const SoftmaxPart& part, const Floats* matrix) {
    const Rows& rows = part.rows;
    const Floats gradient = rows.template load<is_nz>(grad, shape.srcM, matrix[0]);
    const Floats data = rows.template load<is_nz>(src, shape.srcM, matrix[matrices / 2]);
    const Floats& products = matrix[matrices - 1];
    rows.all().mul(products, gradient, data);
    rows.sum(part.sum(), products);
    if (is_front) {
      part.template store<false>(dst, part.sum());
      return;
    }
    rows.sub(products, gradient, part.sum());
    const Floats results = rows.template target<is_nz>(dst, products);
    rows.all().mul(results, products, data);
    rows.template store<is_nz>(dst, shape.srcM, results);
  });
}

}  // namespace opkit::high_level

namespace AscendC {

template <typename T, bool isReuseSource = false, bool isDataFormatNZ = false>
inline void SoftmaxGrad(const LocalTensor<T>& dstTensor, const LocalTensor<T>& gradTensor,
                        const LocalTensor<T>& srcTensor, const LocalTensor<uint8_t>& sharedTmpBuffer,
                        const SoftMaxTiling& tiling, bool isFront = false,
                        const SoftMaxShapeInfo& softmaxShapeInfo = {}, OPKIT_HERE) {
  const auto shape = opkit::high_level::softmax_shape<T>(softmaxShapeInfo, tiling, SOFTMAX_DEFAULT_CFG, where);
  opkit::high_level::softmax_grad<isDataFormatNZ>(dstTensor, gradTensor, srcTensor, sharedTmpBuffer, isFront, shape,
                                                  where);
}
template <typename T, bool isReuseSource = false, bool isDataFormatNZ = false>
inline void SoftmaxGrad(const LocalTensor<T>& dstTensor, const LocalTensor<T>& gradTensor,
                        const LocalTensor<T>& srcTensor, const SoftMaxTiling& tiling, bool isFront = false,
                        const SoftMaxShapeInfo& softmaxShapeInfo = {}, OPKIT_HERE) {
  SoftmaxGrad<T, isReuseSource, isDataFormatNZ>(dstTensor, gradTensor, srcTensor, opkit::high_level::free_space(),
                                                tiling, isFront, softmaxShapeInfo, where);
}

template <typename T, bool isBasicBlock = false, bool isDataFormatNZ = false>
inline void SoftmaxGradFront(const LocalTensor<T>& dstTensor, const LocalTensor<T>& gradTensor,
                             const LocalTensor<T>& srcTensor, const LocalTensor<uint8_t>& sharedTmpBuffer,
                             const SoftMaxTiling& tiling, const SoftMaxShapeInfo& softmaxShapeInfo = {}, OPKIT_HERE) {
  SoftmaxGrad<T, false, isDataFormatNZ>(dstTensor, gradTensor, srcTensor, sharedTmpBuffer, tiling, true,
                                        softmaxShapeInfo, where);
}
template <typename T, bool isBasicBlock = false, bool isDataFormatNZ = false>
inline void SoftmaxGradFront(const LocalTensor<T>& dstTensor, const LocalTensor<T>& gradTensor,
                             const LocalTensor<T>& srcTensor, const SoftMaxTiling& tiling,
                             const SoftMaxShapeInfo& softmaxShapeInfo = {}, OPKIT_HERE) {
  SoftmaxGradFront<T, isBasicBlock, isDataFormatNZ>(dstTensor, gradTensor, srcTensor, opkit::high_level::free_space(),
                                                    tiling, softmaxShapeInfo, where);
}

}  // namespace AscendC
