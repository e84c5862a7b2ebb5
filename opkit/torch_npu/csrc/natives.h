/// The kernels that serve operators of ATen.
#pragma once

#include <ATen/core/Tensor.h>

namespace opkit::npu {

/// Copies between two tensors of one device with a kernel; false where no kernel can.
bool copy_on_device(const at::Tensor& source, const at::Tensor& destination);

/// Each adds its rows to the registry.
void add_elementwise();
void add_special();

}  // namespace opkit::npu
