// Batch norm and its gradient.

#include <c10/core/DeviceGuard.h>

#include "aten/natives.h"
#include "aten/parts.h"

namespace opkit::npu {

namespace {

/// x of (N, C, ...) as (N, C, rest).
at::Tensor by_channel(const at::Tensor& x) {
  return as_shape(packed(x), {x.size(0), x.size(1), x.numel() / (x.size(0) * x.size(1))});
}

at::Tensor channel_row(const at::Tensor& values) { return view_of(packed(values), {1, values.numel(), 1}, {0, 1, 0}); }

constexpr uint64_t kAllButChannel = 0b101;

/// The mean and the inverse deviation that an evaluation takes from what training has gathered.
const char* running_statistics(const char* op, const at::Tensor& running_mean, const at::Tensor& running_var,
                               double eps, const at::Tensor& mean, const at::Tensor& invstd) {
  if (!running_mean.defined() || !running_var.defined()) return "statistics are missing";
  const at::IntArrayRef channels = mean.sizes();
  const char* reason = run_formula(op, "m * 1", channels, {{"m", running_mean}}, {{"y", mean}}, {});
  if (reason != nullptr) return reason;
  return run_formula(op, "1 / sqrt(v + eps)", channels, {{"v", running_var}}, {{"y", invstd}}, {{"eps", eps}});
}

/// Refuses what has not one element for each channel: PyTorch's kernels of the CPU read beyond it.
void check_channels(const char* op, const at::Tensor& x, c10::ArrayRef<Named> given) {
  for (const Named& each : given) {
    TORCH_CHECK(!each.tensor.defined() || x.dim() < 2 || each.tensor.numel() == x.size(1), op, ": ", each.name, " has ",
                each.tensor.numel(), " elements where the input has ", x.size(1), " channels");
  }
}

void check_statistics(const char* op, const at::Tensor& mean, const at::Tensor& variance) {
  TORCH_CHECK(mean.defined() && variance.defined(), op, ": an evaluation needs running_mean and running_var");
}

/// native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps) -> (out, mean, invstd);
/// a form has no running ones.
const char* batch_norm(const OperatorHandle& of, Stack* stack) {
  const size_t kArguments = of.schema().arguments().size(), behind = kArguments - 3;
  const char* op = of.schema().name().c_str();
  const at::Tensor x = tensor_at(*stack, kArguments, 0);
  const at::Tensor weight = optional_at(*stack, kArguments, 1), bias = optional_at(*stack, kArguments, 2);
  at::Tensor running_mean, running_var;
  if (behind == 5) running_mean = optional_at(*stack, kArguments, 3), running_var = optional_at(*stack, kArguments, 4);
  const bool is_training = value_at(*stack, kArguments, behind).toBool();
  const double momentum = value_at(*stack, kArguments, behind + 1).toDouble();
  const double eps = value_at(*stack, kArguments, behind + 2).toDouble();
  check_channels(op, x, {{"weight", weight}, {"bias", bias}});
  check_channels(op, x, {{"running_mean", running_mean}, {"running_var", running_var}});
  if (!is_training) check_statistics(op, running_mean, running_var);
  if (!on_device(x) || !is_float_kind(x) || x.numel() == 0 || x.dim() < 2) return kLayout;
  const int64_t channels = x.size(1);
  if (!are_parameters_of(x, channels, {weight, bias, running_mean, running_var})) return kParameters;
  const c10::DeviceGuard guard(x.device());
  const at::Tensor seen = by_channel(x);
  const double count = static_cast<double>(x.numel() / channels);
  at::Tensor mean = empty({channels}, at::kFloat), invstd = empty({channels}, at::kFloat);
  if (is_training) {
    const std::pair<const char*, double> inverse{"inverse", 1.0 / count};
    if (const char* reason = reduce(op, "fold(x) * inverse", seen, as_shape(mean, {1, channels, 1}), kAllButChannel,
                                    kernels::Fold::Sum, inverse)) {
      return reason;
    }
    at::Tensor variance = empty({channels}, at::kFloat);
    if (const char* reason =
            reduce(op, "d = x - m; fold(d * d) * inverse", seen, as_shape(variance, {1, channels, 1}), kAllButChannel,
                   kernels::Fold::Sum, inverse, Named{"m", as_shape(mean, {1, channels, 1})})) {
      return reason;
    }
    if (const char* reason =
            run_formula(op, "1 / sqrt(v + eps)", {channels}, {{"v", variance}}, {{"y", invstd}}, {{"eps", eps}})) {
      return reason;
    }
    if (running_mean.defined()) {
      if (const char* reason =
              run_formula(op, "r * keep + m * momentum", {channels}, {{"r", running_mean}, {"m", mean}},
                          {{"y", running_mean}}, {{"keep", 1 - momentum}, {"momentum", momentum}})) {
        return reason;
      }
    }
    if (running_var.defined()) {
      const double unbiased = momentum * count / std::max(count - 1, 1.0);
      if (const char* reason =
              run_formula(op, "r * keep + v * momentum", {channels}, {{"r", running_var}, {"v", variance}},
                          {{"y", running_var}}, {{"keep", 1 - momentum}, {"momentum", unbiased}})) {
        return reason;
      }
    }
  } else if (const char* reason = running_statistics(op, running_mean, running_var, eps, mean, invstd)) {
    return reason;
  }
  at::Tensor y = empty(x.sizes(), x.scalar_type());
  c10::SmallVector<Named, 5> inputs{{"x", seen}, {"m", channel_row(mean)}, {"s", channel_row(invstd)}};
  std::string formula = "(x - m) * s";
  if (weight.defined()) inputs.push_back({"w", channel_row(weight)}), formula += " * w";
  if (bias.defined()) inputs.push_back({"b", channel_row(bias)}), formula += " + b";
  const char* reason = run_formula(op, formula.c_str(), seen.sizes(), inputs, {{"y", as_shape(y, seen.sizes())}}, {});
  if (reason != nullptr) return reason;
  // As on the CPU: statistics have the input's type where all that goes in has it.
  at::ScalarType type = x.scalar_type();
  for (const at::Tensor& given : {weight, bias, running_mean, running_var}) {
    if (given.defined() && given.scalar_type() != type) type = at::kFloat;
  }
  for (at::Tensor* statistic : {&mean, &invstd}) {
    // As on the CPU too: an evaluation saves nothing.
    at::Tensor saved = empty({is_training ? channels : 0}, type);
    if (const char* failed = is_training ? copy_or_reason(*statistic, saved) : nullptr) return failed;
    *statistic = saved;
  }
  return give(stack, kArguments, y, mean, invstd);
}

/// native_batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps,
/// output_mask)
const char* batch_norm_backward(const OperatorHandle&, Stack* stack) {
  constexpr size_t kArguments = 10;
  const char* op = "aten::native_batch_norm_backward";
  const at::Tensor g = tensor_at(*stack, kArguments, 0), x = tensor_at(*stack, kArguments, 1);
  const at::Tensor weight = optional_at(*stack, kArguments, 2);
  at::Tensor mean = optional_at(*stack, kArguments, 5), invstd = optional_at(*stack, kArguments, 6);
  const bool is_training = value_at(*stack, kArguments, 7).toBool();
  const auto mask = value_at(*stack, kArguments, 9).toBoolList();
  const at::Tensor running_mean = optional_at(*stack, kArguments, 3), running_var = optional_at(*stack, kArguments, 4);
  check_channels(op, x, {{"weight", weight}, {"running_mean", running_mean}, {"running_var", running_var}});
  if (is_training) check_channels(op, x, {{"save_mean", mean}, {"save_invstd", invstd}});
  if (!is_training) check_statistics(op, running_mean, running_var);
  if (!on_device(g) || !on_device(x) || !is_float_kind(x) || x.numel() == 0 || x.dim() < 2 ||
      (is_training && (!mean.defined() || !invstd.defined()))) {
    return kLayout;
  }
  const c10::DeviceGuard guard(x.device());
  const int64_t channels = x.size(1);
  if (!is_training) {
    mean = empty({channels}, at::kFloat), invstd = empty({channels}, at::kFloat);
    const double eps = value_at(*stack, kArguments, 8).toDouble();
    const char* reason = running_statistics(op, running_mean, running_var, eps, mean, invstd);
    if (reason != nullptr) return reason;
  }
  const at::Tensor g3 = by_channel(g), x3 = by_channel(x);
  const at::Tensor m3 = channel_row(mean), s3 = channel_row(invstd);
  at::Tensor db = empty({channels}, at::kFloat), dw = empty({channels}, at::kFloat);
  if (const char* reason =
          reduce(op, "fold(x) + 0", g3, as_shape(db, {1, channels, 1}), kAllButChannel, kernels::Fold::Sum)) {
    return reason;
  }
  if (const char* reason =
          run_formula(op, "fold(g * ((x - m) * s)) + 0", x3.sizes(), {{"g", g3}, {"x", x3}, {"m", m3}, {"s", s3}},
                      {{"y", view_of(dw, {1, channels, 1}, {0, 1, 0})}}, {}, kernels::Fold::Sum, kAllButChannel)) {
    return reason;
  }
  at::Tensor dx;
  if (mask[0]) {
    dx = empty(x.sizes(), x.scalar_type());
    c10::SmallVector<Named, 7> inputs{{"g", g3}, {"s", s3}};
    std::string formula = "g * s";
    // In training the statistics move with x, in an evaluation they stand.
    if (is_training) {
      inputs.insert(inputs.end(), {{"x", x3}, {"m", m3}, {"b", channel_row(db)}, {"w", channel_row(dw)}});
      formula = "(g - (b + (x - m) * s * w) * inverse) * s";
    }
    if (weight.defined()) inputs.push_back({"k", channel_row(weight)}), formula += " * k";
    const double count = static_cast<double>(x.numel() / channels);
    if (const char* reason = run_formula(op, formula.c_str(), x3.sizes(), inputs, {{"y", as_shape(dx, x3.sizes())}},
                                         {{"inverse", 1.0 / count}})) {
      return reason;
    }
  }
  const at::ScalarType type = weight.defined() ? weight.scalar_type() : x.scalar_type();
  for (at::Tensor* grad : {&dw, &db}) {
    if (type == at::kFloat) continue;
    at::Tensor narrow = empty({channels}, type);
    if (const char* reason = copy_or_reason(*grad, narrow)) return reason;
    *grad = narrow;
  }
  return give(stack, kArguments, dx, mask[1] ? dw : at::Tensor(), mask[2] ? db : at::Tensor());
}

}  // namespace

void add_batch_norm() {
  for (const char* op : {"native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit.no_stats"}) {
    add_native(op, "vector_program", batch_norm);
  }
  add_native("native_batch_norm_backward", "vector_program", batch_norm_backward);
}

}  // namespace opkit::npu
