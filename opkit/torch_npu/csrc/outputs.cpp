// Tensors that a call gives for its results.
#include "outputs.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/List.h>
#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/ops/_log_softmax_backward_data_meta_dispatch.h>
#include <ATen/ops/_log_softmax_meta_dispatch.h>
#include <ATen/ops/_softmax_backward_data_meta_dispatch.h>
#include <ATen/ops/_softmax_meta_dispatch.h>
#include <ATen/ops/_upsample_bicubic2d_aa_meta_dispatch.h>
#include <ATen/ops/_upsample_bilinear2d_aa_meta_dispatch.h>
#include <ATen/ops/_upsample_nearest_exact1d_meta_dispatch.h>
#include <ATen/ops/_upsample_nearest_exact2d_meta_dispatch.h>
#include <ATen/ops/_upsample_nearest_exact3d_meta_dispatch.h>
#include <ATen/ops/addmm_meta_dispatch.h>
#include <ATen/ops/addmv_meta_dispatch.h>
#include <ATen/ops/amax_meta_dispatch.h>
#include <ATen/ops/amin_meta_dispatch.h>
#include <ATen/ops/aminmax_meta_dispatch.h>
#include <ATen/ops/argmax_meta_dispatch.h>
#include <ATen/ops/argmin_meta_dispatch.h>
#include <ATen/ops/avg_pool2d_meta_dispatch.h>
#include <ATen/ops/avg_pool3d_meta_dispatch.h>
#include <ATen/ops/baddbmm_meta_dispatch.h>
#include <ATen/ops/bmm_meta_dispatch.h>
#include <ATen/ops/cat_meta_dispatch.h>
#include <ATen/ops/cumprod_meta_dispatch.h>
#include <ATen/ops/cumsum_meta_dispatch.h>
#include <ATen/ops/gather_meta_dispatch.h>
#include <ATen/ops/glu_meta_dispatch.h>
#include <ATen/ops/index_add_meta_dispatch.h>
#include <ATen/ops/index_copy_meta_dispatch.h>
#include <ATen/ops/index_reduce_meta_dispatch.h>
#include <ATen/ops/linalg_vector_norm_meta_dispatch.h>
#include <ATen/ops/max_meta_dispatch.h>
#include <ATen/ops/max_pool2d_with_indices_meta_dispatch.h>
#include <ATen/ops/mean_meta_dispatch.h>
#include <ATen/ops/min_meta_dispatch.h>
#include <ATen/ops/mm_meta_dispatch.h>
#include <ATen/ops/mse_loss_meta_dispatch.h>
#include <ATen/ops/nll_loss_backward_meta_dispatch.h>
#include <ATen/ops/nll_loss_forward_meta_dispatch.h>
#include <ATen/ops/prod_meta_dispatch.h>
#include <ATen/ops/scatter_add_meta_dispatch.h>
#include <ATen/ops/scatter_reduce_meta_dispatch.h>
#include <ATen/ops/smooth_l1_loss_meta_dispatch.h>
#include <ATen/ops/sort_meta_dispatch.h>
#include <ATen/ops/special_chebyshev_polynomial_t_meta_dispatch.h>
#include <ATen/ops/special_chebyshev_polynomial_u_meta_dispatch.h>
#include <ATen/ops/special_chebyshev_polynomial_v_meta_dispatch.h>
#include <ATen/ops/special_chebyshev_polynomial_w_meta_dispatch.h>
#include <ATen/ops/special_hermite_polynomial_h_meta_dispatch.h>
#include <ATen/ops/special_hermite_polynomial_he_meta_dispatch.h>
#include <ATen/ops/special_laguerre_polynomial_l_meta_dispatch.h>
#include <ATen/ops/special_legendre_polynomial_p_meta_dispatch.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_t_meta_dispatch.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_u_meta_dispatch.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_v_meta_dispatch.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_w_meta_dispatch.h>
#include <ATen/ops/sum_meta_dispatch.h>
#include <ATen/ops/topk_meta_dispatch.h>
#include <ATen/ops/tril_meta_dispatch.h>
#include <ATen/ops/triu_meta_dispatch.h>
#include <ATen/ops/upsample_bicubic2d_meta_dispatch.h>
#include <ATen/ops/upsample_bilinear2d_meta_dispatch.h>
#include <ATen/ops/upsample_linear1d_meta_dispatch.h>
#include <ATen/ops/upsample_nearest1d_meta_dispatch.h>
#include <ATen/ops/upsample_nearest2d_meta_dispatch.h>
#include <ATen/ops/upsample_nearest3d_meta_dispatch.h>
#include <ATen/ops/upsample_trilinear3d_meta_dispatch.h>

#include "device.h"

#include <map>
#include <string>

namespace opkit::npu {
namespace {

using c10::IValue;
using c10::KernelFunction;

const std::map<std::string, KernelFunction>& meta_functions() {
  static const auto* functions = new std::map<std::string, KernelFunction>{
#define META(op, function) {"aten::" op, KernelFunction::makeFromUnboxedFunction(TORCH_FN(at::meta::function))},
#include "meta_functions.inc"
#undef META
  };
  return *functions;
}

/// A tensor of the device, or a number in one, as PyTorch's meta functions take it.
at::Tensor meta_of(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.is_meta()) return tensor;
  at::Tensor made = at::detail::empty_strided_meta(tensor.sizes(), tensor.strides(), tensor.scalar_type());
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) made.unsafeGetTensorImpl()->set_wrapped_number(true);
  return made;
}

IValue meta_of(const IValue& value) {
  if (value.isTensor()) return meta_of(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(meta_of(tensor));
    return list;
  }
  return value;
}

}  // namespace

OutputCheck output_check(const std::string& op) {
  const auto found = meta_functions().find(op);
  return found == meta_functions().end() ? nullptr : &found->second;
}

bool prepare_outputs(OutputCheck check, const c10::OperatorHandle& op, const c10::Stack& stack) {
  const auto& arguments = op.schema().arguments();
  const size_t first = stack.size() - arguments.size();
  c10::Stack seen;
  for (size_t i = first; i < stack.size(); ++i) seen.push_back(meta_of(stack[i]));
  const c10::Stack given(seen);
  check->callBoxed(op, c10::DispatchKeySet(c10::DispatchKey::Meta), &seen);
  bool is_empty = true;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (given[i].isTensorList()) is_empty = false;
    if (given[i].isTensor() && stack[first + i].toTensor().defined()) {
      is_empty &= stack[first + i].toTensor().device().type() == kDevice;
      is_empty &= !arguments[i].is_out() || given[i].toTensor().numel() == 0;
    }
    if (!arguments[i].is_out() || !given[i].isTensor()) continue;
    const at::Tensor &out = stack[first + i].toTensor(), &wanted = given[i].toTensor();
    if (out.sizes() == wanted.sizes()) continue;
    out.resize_(wanted.sizes());
    if (out.strides() != wanted.strides()) out.as_strided_(wanted.sizes(), wanted.strides());
  }
  return is_empty;
}

}  // namespace opkit::npu
