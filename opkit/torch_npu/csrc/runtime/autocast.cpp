// torch.autocast("npu"): which operators compute in the lower type, which in float, which in the widest that they meet.
// The lists are those of PyTorch's documentation of autocast for devices.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include "runtime/device.h"
#include "runtime/fallback.h"

// Of ATen/autocast_mode.h, which would bring every operator's header.
namespace at::autocast {
TORCH_API Tensor cached_cast(ScalarType to_type, const Tensor& arg, DeviceType device_type);
TORCH_API ScalarType get_autocast_dtype(DeviceType device_type);
}  // namespace at::autocast

namespace opkit::npu {
namespace {

bool is_cast(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kDevice && tensor.is_floating_point() &&
         tensor.scalar_type() != at::kDouble;
}

c10::IValue cast(const c10::IValue& value, at::ScalarType type) {
  const auto one = [&](const at::Tensor& tensor) {
    return is_cast(tensor) ? at::autocast::cached_cast(type, tensor, kDevice) : tensor;
  };
  if (value.isTensor()) return one(value.toTensor());
  if (!value.isTensorList()) return value;
  c10::List<at::Tensor> list;
  for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(one(tensor));
  return list;
}

template <typename Choose>
void call_in(const c10::OperatorHandle& op, c10::Stack* stack, const Choose& choose) {
  const c10::impl::ExcludeDispatchKeyGuard without(c10::DispatchKey::AutocastPrivateUse1);
  const size_t first = stack->size() - op.schema().arguments().size();
  const at::ScalarType type = choose(first);
  for (size_t i = first; i < stack->size(); ++i) (*stack)[i] = cast((*stack)[i], type);
  op.callBoxed(stack);
}

void in_lower(const c10::OperatorHandle& op, c10::Stack* stack) {
  call_in(op, stack, [](size_t) { return at::autocast::get_autocast_dtype(kDevice); });
}

void in_float(const c10::OperatorHandle& op, c10::Stack* stack) {
  call_in(op, stack, [](size_t) { return at::kFloat; });
}

void in_widest(const c10::OperatorHandle& op, c10::Stack* stack) {
  call_in(op, stack, [&](size_t first) {
    at::ScalarType widest = at::autocast::get_autocast_dtype(kDevice);
    for (size_t i = first; i < stack->size(); ++i) {
      const c10::IValue& value = (*stack)[i];
      if (value.isTensor() && is_cast(value.toTensor()) && value.toTensor().scalar_type() == at::kFloat) {
        widest = at::kFloat;
      }
    }
    return widest;
  });
}

constexpr const char* kInLower[] = {"_convolution",
                                    "conv1d",
                                    "conv2d",
                                    "conv3d",
                                    "conv_transpose1d",
                                    "conv_transpose2d.input",
                                    "conv_transpose3d.input",
                                    "convolution",
                                    "prelu",
                                    "addmm",
                                    "addmv",
                                    "addr",
                                    "matmul",
                                    "einsum",
                                    "mm",
                                    "mv",
                                    "linear",
                                    "addbmm",
                                    "baddbmm",
                                    "bmm",
                                    "chain_matmul",
                                    "linalg_multi_dot",
                                    "linalg_vecdot",
                                    "_thnn_fused_lstm_cell",
                                    "_thnn_fused_gru_cell",
                                    "lstm_cell",
                                    "gru_cell",
                                    "rnn_tanh_cell",
                                    "rnn_relu_cell",
                                    "scaled_dot_product_attention"};
constexpr const char* kInFloat[] = {"acos",
                                    "asin",
                                    "cosh",
                                    "erfinv",
                                    "exp",
                                    "expm1",
                                    "log",
                                    "log10",
                                    "log2",
                                    "log1p",
                                    "reciprocal",
                                    "rsqrt",
                                    "sinh",
                                    "tan",
                                    "pow.Tensor_Scalar",
                                    "pow.Tensor_Tensor",
                                    "pow.Scalar",
                                    "softplus",
                                    "layer_norm",
                                    "native_layer_norm",
                                    "rms_norm",
                                    "group_norm",
                                    "cosine_similarity",
                                    "poisson_nll_loss",
                                    "cosine_embedding_loss",
                                    "nll_loss",
                                    "nll_loss2d",
                                    "hinge_embedding_loss",
                                    "kl_div",
                                    "l1_loss",
                                    "smooth_l1_loss",
                                    "huber_loss",
                                    "mse_loss",
                                    "margin_ranking_loss",
                                    "multilabel_margin_loss",
                                    "soft_margin_loss",
                                    "triplet_margin_loss",
                                    "multi_margin_loss",
                                    "binary_cross_entropy_with_logits",
                                    "dist",
                                    "pdist",
                                    "cdist",
                                    "renorm",
                                    "logsumexp",
                                    "prod",
                                    "prod.dim_int",
                                    "softmax.int",
                                    "log_softmax.int",
                                    "cumprod",
                                    "cumsum",
                                    "linalg_vector_norm",
                                    "sum",
                                    "sum.dim_IntList",
                                    "norm.Scalar",
                                    "norm.ScalarOpt_dim",
                                    "upsample_nearest2d",
                                    "upsample_bilinear2d",
                                    "upsample_bicubic2d"};
constexpr const char* kInWidest[] = {"addcdiv", "addcmul",      "atan2",     "bilinear",  "cross",      "dot",
                                     "vdot",    "grid_sampler", "index_put", "tensordot", "scatter_add"};

}  // namespace
}  // namespace opkit::npu

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  using namespace opkit::npu;
  for (const char* op : kInLower) m.impl(op, torch::CppFunction::makeFromBoxedFunction<&in_lower>());
  for (const char* op : kInFloat) m.impl(op, torch::CppFunction::makeFromBoxedFunction<&in_float>());
  for (const char* op : kInWidest) m.impl(op, torch::CppFunction::makeFromBoxedFunction<&in_widest>());
}

// What collectives over the host's network send: the tensor's own memory, seen as a tensor of the CPU.
TORCH_LIBRARY_FRAGMENT(opkit_npu, m) {
  m.def("as_cpu(Tensor(a) self) -> Tensor(a)", [](const at::Tensor& self) { return opkit::npu::as_cpu(self); });
}
