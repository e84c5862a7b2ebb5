/// The kernels that serve operators of ATen.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <string_view>

namespace opkit::npu {

/// Copies between two tensors of one device with a kernel; a reason where no kernel can.
const char* copy_on_device(const at::Tensor& source, const at::Tensor& destination);

/// Convolution and its gradient by kernels, on the stacks of `convolution_overrideable` and its backward; a reason
/// where none can.
const char* convolve(torch::jit::Stack* stack);
const char* convolve_backward(torch::jit::Stack* stack);
/// The same over three dims, done by others over two.
const char* convolve_volume(torch::jit::Stack* stack);
const char* convolve_volume_backward(torch::jit::Stack* stack);

/// The formula of an element-wise operator over the names of its arguments.
const char* elementwise_formula(std::string_view op);

/// Each adds its rows to the registry.
void add_elementwise();
void add_operators();
void add_reductions();
void add_layer_norm();
void add_batch_norm();
void add_products();
void add_rows();
void add_bounds();
void add_indexing();
void add_lines();
void add_convolution();
void add_losses();
void add_random();
void add_optimizers();
void add_attention();
void add_foreach();
void add_composed();
void add_resampling();
void add_sampling();
void add_bags();
void add_weighted();
void add_polynomials();
void add_ordering();
void add_folding();
void add_whole();

}  // namespace opkit::npu
