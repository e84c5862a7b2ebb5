/// Tensors for the results of operators. Source: public op-plugin guide, OpPreparation.
#pragma once

#include <torch/extension.h>

namespace at_npu::native {

class OpPreparation {
 public:
  /// A new tensor like this one: its sizes, type and device.
  static at::Tensor apply_tensor(const at::Tensor& like) { return at::empty(like.sizes(), like.options()); }
  static at::Tensor apply_tensor(const at::Tensor& like, at::IntArrayRef sizes) {
    return at::empty(sizes, like.options());
  }
  static at::Tensor apply_tensor(at::IntArrayRef sizes, const at::TensorOptions& options) {
    return at::empty(sizes, options);
  }
  static at::Tensor apply_tensor_without_format(const at::Tensor& like) { return apply_tensor(like); }
  static at::Tensor apply_tensor_without_format(const at::Tensor& like, at::IntArrayRef sizes) {
    return apply_tensor(like, sizes);
  }
  static at::Tensor apply_tensor_without_format(at::IntArrayRef sizes, const at::TensorOptions& options) {
    return at::empty(sizes, options);
  }
  /// Formats are a matter of kernels here, not of tensors.
  static at::Tensor apply_tensor_with_format(const at::Tensor& like, int64_t) { return apply_tensor(like); }
  static at::Tensor apply_tensor_with_format(at::IntArrayRef sizes, const at::TensorOptions& options, int64_t) {
    return at::empty(sizes, options);
  }
};

}  // namespace at_npu::native
