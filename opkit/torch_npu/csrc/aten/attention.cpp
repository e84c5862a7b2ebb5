// Scaled-dot-product attention: one kernel forward, and a gradient that computes the weights again.
#include <ATen/Context.h>
#include <ATen/ExpandUtils.h>
#include <ATen/SDPBackend.h>
#include <ATen/native/transformers/attention.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>

#include "aten/natives.h"
#include "aten/parts.h"

namespace opkit::npu {
namespace {

using kernels::AttentionPlan;

constexpr const char* kAttention = "aten::_scaled_dot_product_fused_attention_overrideable";

/// What the kernel cannot do with these tensors, by their sizes and types alone: they may be fakes.
const char* refuse_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask,
                             double dropout) {
  if (q.dim() != 4 || k.dim() != 4 || v.dim() != 4) return "attention of other than 4 dims";
  if (!is_float_kind(q) || k.scalar_type() != q.scalar_type() || v.scalar_type() != q.scalar_type()) return kNoType;
  if (dropout != 0) return "attention with dropout";
  const int64_t batch = q.size(0), heads = q.size(1), keys = k.size(2);
  if (q.numel() == 0 || k.numel() == 0 || v.numel() == 0) return "an empty tensor";
  if (k.size(0) != batch || v.size(0) != batch || k.size(1) != v.size(1) || heads % k.size(1) != 0 ||
      v.size(2) != keys || k.size(3) != q.size(3)) {
    return kSizes;
  }
  if (keys > AttentionPlan::kMostKeys) return "more keys than a vector core's memory takes scores of";
  if (!mask.defined()) return nullptr;
  if (mask.scalar_type() != q.scalar_type() && mask.scalar_type() != at::kBool) return "a mask of another type";
  if (mask.dim() > 4 || mask.dim() == 0) return "a mask of more dims";
  const int64_t sizes[] = {batch, heads, q.size(2), keys};
  for (int64_t d = 0; d < mask.dim(); ++d) {
    const int64_t size = mask.size(mask.dim() - 1 - d);
    if (size != 1 && size != sizes[3 - d]) return "a mask of another shape";
  }
  return nullptr;
}

/// The elements of a row side by side, and rows that do not overlap.
at::Tensor with_rows(const at::Tensor& x) {
  const bool has_rows = (x.stride(3) == 1 || x.size(3) == 1) && (x.stride(2) >= x.size(3) || x.size(2) == 1);
  return has_rows ? x : x.contiguous();
}
int64_t row_stride(const at::Tensor& x) { return x.size(2) == 1 ? x.size(3) : x.stride(2); }

/// Of the sizes that scores have; a dim that it has once stands still.
at::Tensor mask_over(const at::Tensor& mask, at::IntArrayRef sizes) {
  if (!mask.defined()) return mask;
  const bool has_rows = mask.size(-1) == sizes[3] && (mask.stride(-1) == 1 || sizes[3] == 1);
  Sizes wide(mask.sizes().begin(), mask.sizes().end());
  wide.back() = sizes[3];
  return (has_rows ? mask : mask.expand(wide).contiguous()).expand(sizes);
}

/// A result with the dims in memory as the queries have them, so that heads that come from one row go back to one.
at::Tensor empty_like_queries(const at::Tensor& q, int64_t width) {
  if (q.size(1) > 1 && q.size(2) > 1 && q.stride(1) < q.stride(2)) {
    return empty({q.size(0), q.size(2), q.size(1), width}, q.scalar_type()).transpose(1, 2);
  }
  return empty({q.size(0), q.size(1), q.size(2), width}, q.scalar_type());
}

double scale_of(const IValue& given, const at::Tensor& q) {
  return given.isNone() ? 1 / std::sqrt(static_cast<double>(q.size(3))) : given.toDouble();
}

/// (query, key, value, attn_bias, dropout_p, is_causal, return_debug_mask, scale)
const char* attend(const OperatorHandle&, Stack* stack) {
  constexpr size_t kArguments = 8;
  at::Tensor q = tensor_at(*stack, kArguments, 0), k = tensor_at(*stack, kArguments, 1);
  at::Tensor v = tensor_at(*stack, kArguments, 2), mask = optional_at(*stack, kArguments, 3);
  const char* reason = refuse_attention(q, k, v, mask, value_at(*stack, kArguments, 4).toDouble());
  if (reason == nullptr && mask.defined() && mask.scalar_type() == at::kBool) reason = "a mask of another type";
  for (const at::Tensor* one : {&q, &k, &v, &mask}) {
    if (one->defined() && (!on_device(*one) || one->device() != q.device())) reason = "a tensor of another device";
  }
  // The CPU has no such operator to fall back to: scaled_dot_product_attention asks for what is served here only.
  TORCH_CHECK_NOT_IMPLEMENTED(reason == nullptr, kAttention, " has no kernel on npu for this call: ", reason);
  const c10::DeviceGuard guard(q.device());
  q = with_rows(q), k = with_rows(k), v = with_rows(v);
  mask = mask_over(mask, {q.size(0), q.size(1), q.size(2), k.size(2)});
  at::Tensor out = empty_like_queries(q, v.size(3));
  at::Tensor lse = empty({q.size(0), q.size(1), q.size(2)}, at::kFloat);

  AttentionPlan plan{};
  plan.kind = q.scalar_type() == at::kHalf ? 0 : q.scalar_type() == at::kBFloat16 ? 1 : 2;
  plan.is_causal = value_at(*stack, kArguments, 5).toBool();
  plan.has_mask = mask.defined();
  plan.width = static_cast<uint32_t>(q.size(3));
  plan.value_width = static_cast<uint32_t>(v.size(3));
  plan.scale = static_cast<float>(scale_of(value_at(*stack, kArguments, 7), q));
  plan.batch = q.size(0), plan.heads = q.size(1), plan.kv_heads = k.size(1);
  plan.queries = q.size(2), plan.keys = k.size(2);
  plan.pitch = static_cast<uint32_t>((plan.keys + 15) / 16 * 16);
  plan.q_batch = q.stride(0), plan.q_head = q.stride(1), plan.q_row = row_stride(q);
  plan.k_batch = k.stride(0), plan.k_head = k.stride(1), plan.k_row = row_stride(k);
  plan.v_batch = v.stride(0), plan.v_head = v.stride(1), plan.v_row = row_stride(v);
  plan.out_batch = out.stride(0), plan.out_head = out.stride(1), plan.out_row = row_stride(out);
  if (mask.defined()) {
    plan.mask_batch = mask.stride(0), plan.mask_head = mask.stride(1), plan.mask_row = mask.stride(2);
  }
  // Queries for every vector core, where there are enough; whole fractals of 16.
  const int64_t lines = plan.batch * plan.heads * plan.queries;
  const int64_t fair = (lines / vector_cores() + 15) / 16 * 16;
  plan.rows = static_cast<uint32_t>(std::clamp<int64_t>(fair, 16, AttentionPlan::kMostRows));
  const int64_t tasks = plan.batch * plan.heads * ((plan.queries + plan.rows - 1) / plan.rows);
  const auto blocks = static_cast<uint32_t>(std::clamp<int64_t>((tasks + 1) / 2, 1, cube_cores()));
  const int64_t between = 2 * static_cast<int64_t>(blocks) * plan.rows * plan.pitch;
  const at::Tensor scores = empty({between}, at::kFloat), weights = empty({between}, q.scalar_type());
  const at::Tensor given = mask.defined() ? mask : q;
  const Range ranges[] = {{q.data_ptr(), extent_of(q), true},
                          {k.data_ptr(), extent_of(k), true},
                          {v.data_ptr(), extent_of(v), true},
                          {given.data_ptr(), extent_of(given), true},
                          {out.data_ptr(), extent_of(out), false},
                          {lse.data_ptr(), extent_of(lse), false},
                          {scores.data_ptr(), extent_of(scores), false},
                          {weights.data_ptr(), extent_of(weights), false}};
  launch("attention", kAttention,
         {q.data_ptr(), k.data_ptr(), v.data_ptr(), given.data_ptr(), out.data_ptr(), lse.data_ptr(), scores.data_ptr(),
          weights.data_ptr()},
         ranges, &plan, sizeof(plan), blocks, q.device().index());
  const at::Tensor seed = empty({}, at::kLong), offset = empty({}, at::kLong);
  return give(stack, kArguments, out, lse, at::Tensor(), at::Tensor(), plan.queries, plan.keys, seed, offset,
              at::Tensor());
}

/// (batch heads, rows, columns), a head of keys repeated for all that share it.
at::Tensor as_matrices(const at::Tensor& x, int64_t heads) {
  const int64_t shared = heads / x.size(1);
  const at::Tensor wide = view_of(x, {x.size(0), x.size(1), shared, x.size(2), x.size(3)},
                                  {x.stride(0), x.stride(1), 0, x.stride(2), x.stride(3)});
  return as_shape(shared == 1 ? packed(x) : at::Tensor(wide.contiguous()), {x.size(0) * heads, x.size(2), x.size(3)});
}
at::Tensor turned(const at::Tensor& x) {
  return view_of(x, {x.size(0), x.size(2), x.size(1)}, {x.stride(0), x.stride(2), x.stride(1)});
}

/// A gradient for all heads, summed over those that share one.
at::Tensor shared_gradient(const at::Tensor& grad, const at::Tensor& like, int64_t heads) {
  const int64_t shared = heads / like.size(1);
  const at::Tensor all = as_shape(grad, {like.size(0), like.size(1), shared, like.size(2), like.size(3)});
  return shared == 1 ? as_shape(grad, like.sizes()) : all.sum(2);
}

/// (grad_out, query, key, value, attn_bias, grad_input_mask, out, logsumexp, ..., dropout_p, is_causal, ..., scale)
const char* attend_backward(const OperatorHandle&, Stack* stack) {
  constexpr size_t kArguments = 17;
  const char* op = "aten::_scaled_dot_product_fused_attention_overrideable_backward";
  const at::Tensor grad = tensor_at(*stack, kArguments, 0), q = tensor_at(*stack, kArguments, 1);
  const at::Tensor k = tensor_at(*stack, kArguments, 2), v = tensor_at(*stack, kArguments, 3);
  const at::Tensor bias = optional_at(*stack, kArguments, 4);
  const auto wanted = value_at(*stack, kArguments, 5).toBoolList();
  const at::Tensor out = tensor_at(*stack, kArguments, 6), lse = tensor_at(*stack, kArguments, 7);
  const char* reason = refuse_attention(q, k, v, bias, value_at(*stack, kArguments, 12).toDouble());
  TORCH_CHECK_NOT_IMPLEMENTED(reason == nullptr, op, " has no kernel on npu for this call: ", reason);
  const bool is_causal = value_at(*stack, kArguments, 13).toBool();
  const double scale = scale_of(value_at(*stack, kArguments, 16), q);
  const c10::DeviceGuard guard(q.device());
  const int64_t heads = q.size(1), lines = q.size(0) * heads, queries = q.size(2), keys = k.size(2);
  const at::Tensor q3 = as_matrices(q, heads), k3 = as_matrices(k, heads), v3 = as_matrices(v, heads);
  const at::Tensor g3 = as_matrices(grad, heads), out3 = as_matrices(out, heads);
  const at::Tensor scores = empty({lines, queries, keys}, at::kFloat), of_weights = empty(scores.sizes(), at::kFloat);
  const at::Tensor share = empty({lines, queries, 1}, at::kFloat);
  const auto check = [&](const char* why) { TORCH_CHECK(why == nullptr, op, ": ", why); };
  check(multiply(op, q3, turned(k3), scores));
  check(multiply(op, g3, turned(v3), of_weights));
  check(reduce(op, "fold(x * y) + 0", g3, share, 4, kernels::Fold::Sum, {}, Named{"y", out3}));

  const at::Tensor weights = empty(scores.sizes(), q.scalar_type()), of_scores = empty(scores.sizes(), q.scalar_type());
  const Sizes sizes{q.size(0), heads, queries, keys};
  const at::Tensor mask = mask_over(bias, sizes);
  c10::SmallVector<Named, 6> inputs{{"s", as_shape(scores, sizes)},
                                    {"g", as_shape(of_weights, sizes)},
                                    {"d", as_shape(share, {sizes[0], heads, queries, 1})},
                                    {"l", as_shape(lse, {sizes[0], heads, queries, 1})}};
  c10::SmallVector<Named, 3> outputs{{"w", as_shape(weights, sizes)}, {"gs", as_shape(of_scores, sizes)}};
  std::string formula = mask.defined() ? "w = exp(s * scale + m - l); " : "w = exp(s * scale - l); ";
  if (mask.defined()) inputs.push_back({"m", mask});
  at::Tensor places;
  if (is_causal) {
    places = empty({queries}, at::kFloat);
    check(run_formula(op, "lane + 0", {queries}, {}, {{"y", places}}, {}));
    inputs.push_back({"row", as_shape(places, {1, 1, queries, 1})});
    formula += "w = select(lane <= row, w, 0); ";
  }
  formula += "gm = w * (g - d); ";
  at::Tensor of_mask;
  if (wanted[3] && bias.defined()) {
    of_mask = empty(sizes, at::kFloat);
    outputs.push_back({"gm", of_mask});
  }
  check(run_formula(op, (formula + "gs = gm * scale").c_str(), sizes, inputs, outputs, {{"scale", scale}}));

  at::Tensor grad_q, grad_k, grad_v, grad_bias;
  if (wanted[0]) {
    const at::Tensor made = empty(q3.sizes(), q.scalar_type());
    check(multiply(op, of_scores, k3, made));
    grad_q = as_shape(made, q.sizes());
  }
  if (wanted[1]) {
    const at::Tensor made = empty(k3.sizes(), q.scalar_type());
    check(multiply(op, turned(of_scores), q3, made));
    grad_k = shared_gradient(made, k, heads);
  }
  if (wanted[2]) {
    const at::Tensor made = empty(v3.sizes(), q.scalar_type());
    check(multiply(op, turned(weights), g3, made));
    grad_v = shared_gradient(made, v, heads);
  }
  if (of_mask.defined()) grad_bias = at::sum_to(of_mask, bias.sizes()).to(bias.scalar_type());
  return give(stack, kArguments, grad_q, grad_k, grad_v, grad_bias);
}

/// Which of PyTorch's ways scaled_dot_product_attention goes: the kernel's, or several operators.
int64_t choose_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         const std::optional<at::Tensor>& mask, double dropout, bool is_causal, std::optional<double>,
                         bool) {
  const at::Tensor given = mask.has_value() ? *mask : at::Tensor();
  // torch.func's wrappers have no rule for the fused operator; they have one for each operator of the other way.
  const c10::DispatchKeySet wrappers{c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper};
  const bool is_wrapped = q.key_set().has_any(wrappers) || k.key_set().has_any(wrappers) ||
                          v.key_set().has_any(wrappers) || (given.defined() && given.key_set().has_any(wrappers));
  // Sizes that are yet to come, as torch.compile traces them, may turn out not to fit the fused operator.
  const bool has_symbols = q.unsafeGetTensorImpl()->has_symbolic_sizes_strides() ||
                           k.unsafeGetTensorImpl()->has_symbolic_sizes_strides() ||
                           v.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
  const bool is_fused = has_kernels() && !is_wrapped && !has_symbols && !q.is_nested() &&
                        at::globalContext().userEnabledOverrideableSDP() && !(is_causal && given.defined()) &&
                        refuse_attention(q, k, v, given, dropout) == nullptr;
  return static_cast<int64_t>(is_fused ? at::SDPBackend::overrideable : at::SDPBackend::math);
}

}  // namespace

void add_attention() {
  add_native("_scaled_dot_product_fused_attention_overrideable", "attention", attend);
  add_native("_scaled_dot_product_fused_attention_overrideable_backward", "matmul_batched", attend_backward);
}

}  // namespace opkit::npu

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &opkit::npu::choose_attention)
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("_fused_sdp_choice", TORCH_FN(opkit::npu::choose_attention)); }
