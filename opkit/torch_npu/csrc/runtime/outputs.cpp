// Tensors that a call gives for its results.
#include "runtime/outputs.h"

#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
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
#include <ATen/ops/ones.h>
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
#include <ATen/record_function.h>

#include "runtime/device.h"

#include <map>
#include <string>

namespace opkit::npu {
namespace {

using c10::IValue;
using c10::KernelFunction;

const std::map<std::string, KernelFunction>& meta_functions() {
  static const auto* functions = new std::map<std::string, KernelFunction>{
#define META(op, function) {"aten::" op, KernelFunction::makeFromUnboxedFunction(TORCH_FN(at::meta::function))},
#include "runtime/meta_functions.inc"
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

/// A tensor of the CPU of one element, which a number in a tensor stays; numbers as 1 of their kind: what PyTorch
/// refuses of types is asked, not of values.
IValue smallest_of(const IValue& value) {
  if (value.isTensor() && value.toTensor().defined()) {
    const at::Tensor& tensor = value.toTensor();
    at::Tensor made = at::ones(at::IntArrayRef{1}.slice(0, tensor.dim() > 0 ? 1 : 0), tensor.scalar_type());
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) made.unsafeGetTensorImpl()->set_wrapped_number(true);
    return made;
  }
  if (value.isBool()) return true;
  if (value.isInt()) return 1;
  if (value.isDouble()) return 1.0;
  return value;
}

/// Whether the CPU computes it. What it lacks of half types is no refusal.
bool is_taken_by_cpu(const c10::OperatorHandle& op, c10::ArrayRef<IValue> arguments, bool has_half) {
  const at::RecordFunctionGuard unseen(false);
  c10::Stack seen;
  for (const IValue& value : arguments) seen.push_back(smallest_of(value));
  try {
    op.callBoxed(&seen);
  } catch (const c10::NotImplementedError&) {
    return has_half;
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

/// Whether all tensors but numbers have one float type, and no number is a truth.
bool have_one_float(c10::ArrayRef<IValue> arguments) {
  at::ScalarType first = at::ScalarType::Undefined;
  for (const IValue& value : arguments) {
    if (value.isBool()) return false;
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    const at::Tensor& tensor = value.toTensor();
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) continue;
    if (first == at::ScalarType::Undefined) first = tensor.scalar_type();
    if (tensor.scalar_type() != first || !at::isFloatingType(first)) return false;
  }
  return true;
}

/// Products write each element once, and read what they write: the CPU refuses an `out=` whose elements share memory.
bool is_product(const std::string& name) {
  return name == "aten::mm" || name == "aten::bmm" || name == "aten::addmm" || name == "aten::baddbmm";
}

}  // namespace

bool TypesTaken::operator()(const c10::OperatorHandle& op, const c10::Stack& stack) {
  const auto& schema = op.schema().arguments();
  const c10::ArrayRef<IValue> arguments(&stack[stack.size() - schema.size()], schema.size());
  if (have_one_float(arguments) && !(is_truth_ && schema.back().is_out())) return true;
  std::string types;
  bool has_half = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const IValue& value = arguments[i];
    if (!value.isTensor() || !value.toTensor().defined()) {
      types += value.isString() ? value.toStringRef() : value.isBool() ? "b" : value.isInt() ? "i" : "-";
      continue;
    }
    const at::Tensor& tensor = value.toTensor();
    types += static_cast<char>('A' + static_cast<int>(tensor.scalar_type()));
    types += tensor.unsafeGetTensorImpl()->is_wrapped_number() ? 'w' : tensor.dim() > 0 ? 't' : 'n';
    has_half |= (tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16) && !schema[i].is_out();
  }
  const std::lock_guard<std::mutex> guard(lock_);
  const auto found = known_.find(types);
  if (found != known_.end()) return found->second;
  return known_[types] = is_taken_by_cpu(op, arguments, has_half);
}

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
    if (is_product(op.schema().name())) at::assert_no_internal_overlap(out);
    if (out.sizes() == wanted.sizes()) continue;
    out.resize_(wanted.sizes());
    if (out.strides() != wanted.strides()) out.as_strided_(wanted.sizes(), wanted.strides());
  }
  return is_empty;
}

}  // namespace opkit::npu
