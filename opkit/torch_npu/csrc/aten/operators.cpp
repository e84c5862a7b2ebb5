// What the device has kernels for: each family adds its rows; and the few operators that are no family.

#include <c10/core/DeviceGuard.h>

#include "aten/natives.h"
#include "aten/parts.h"
#include "runtime/forms.h"

namespace opkit::npu {

namespace {

// Formulas of operators that have no row in elementwise.inc: they give back more than one tensor, or take more.
#include "special_formulas.inc"

/// log_sigmoid_forward(self) -> (output, buffer): the backward needs no buffer.
const char* log_sigmoid(const OperatorHandle&, Stack* stack) {
  const at::Tensor x = tensor_at(*stack, 1, 0);
  if (!on_device(x) || !is_float_kind(x) || x.numel() == 0) return kLayout;
  const c10::DeviceGuard guard(x.device());
  const at::Tensor out = empty(x.sizes(), x.scalar_type()), buffer = empty({0}, x.scalar_type());
  const char* reason = run_formula("aten::log_sigmoid_forward", kLogSigmoid, x.sizes(), {{"self", packed(x)}}, {{"y", out}}, {});
  return reason != nullptr ? reason : give(stack, 1, out, buffer);
}

/// log_sigmoid_backward(grad_output, self, buffer)
const char* log_sigmoid_backward(const OperatorHandle&, Stack* stack) {
  const at::Tensor g = tensor_at(*stack, 3, 0), x = tensor_at(*stack, 3, 1);
  if (!on_device(x) || !on_device(g) || !is_float_kind(x) || x.numel() == 0 || g.sizes() != x.sizes() ||
      g.scalar_type() != x.scalar_type()) {
    return kLayout;
  }
  const c10::DeviceGuard guard(x.device());
  const at::Tensor out = empty(x.sizes(), x.scalar_type());
  const char* reason = run_formula("aten::log_sigmoid_backward", kLogSigmoidBackward, x.sizes(),
                                   {{"grad_output", packed(g)}, {"self", packed(x)}}, {{"y", out}}, {});
  return reason != nullptr ? reason : give(stack, 3, out);
}

/// Those that are no family.
void add_others() {
  add_native("log_sigmoid_forward", "vector_program", log_sigmoid);
  add_native("log_sigmoid_backward", "vector_program", log_sigmoid_backward);
  add_native("fill_.Scalar", "vector_program", [](const OperatorHandle&, Stack* stack) -> const char* {
    const at::Tensor self = tensor_at(*stack, 2, 0);
    const char* reason = fill("aten::fill_", self, value_at(*stack, 2, 1).toScalar());
    return reason != nullptr ? reason : give(stack, 2, self);
  });
  add_native("zero_", "vector_program", [](const OperatorHandle&, Stack* stack) -> const char* {
    const at::Tensor self = tensor_at(*stack, 1, 0);
    const char* reason = fill("aten::zero_", self, 0);
    return reason != nullptr ? reason : give(stack, 1, self);
  });
}

}  // namespace

void add_operators() {
  add_others();
  add_reductions();
  add_layer_norm();
  add_batch_norm();
  add_products();
  add_rows();
  add_bounds();
  add_indexing();
  add_lines();
  add_convolution();
  add_losses();
  add_random();
  add_optimizers();
  add_attention();
  add_foreach();
  add_composed();
  add_resampling();
  add_sampling();
  add_bags();
  add_weighted();
  add_polynomials();
  add_ordering();
  add_folding();
  add_whole();
  add_forms();  // behind all others: of those that they leave out
}

}  // namespace opkit::npu
