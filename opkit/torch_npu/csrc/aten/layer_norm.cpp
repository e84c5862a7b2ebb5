// Layer norm and group norm with their gradients.

#include <c10/core/DeviceGuard.h>

#include "aten/natives.h"
#include "aten/parts.h"

namespace opkit::npu {

namespace {

/// native_layer_norm(input, normalized_shape, weight, bias, eps) -> (output, mean, rstd)
const char* layer_norm(const OperatorHandle&, Stack* stack) {
  constexpr size_t kArguments = 5;
  const at::Tensor x = packed(tensor_at(*stack, kArguments, 0));
  const auto shape = value_at(*stack, kArguments, 1).toIntVector();
  const at::Tensor weight = optional_at(*stack, kArguments, 2);
  const at::Tensor bias = optional_at(*stack, kArguments, 3);
  const double eps = value_at(*stack, kArguments, 4).toDouble();
  if (!on_device(x) || !is_float_kind(x) || x.numel() == 0) return kLayout;
  if (shape.empty() || static_cast<int64_t>(shape.size()) > x.dim() ||
      x.sizes().slice(x.dim() - shape.size()) != at::IntArrayRef(shape)) {
    return kSizes;
  }
  if (!are_parameters_of(x, shape, {weight, bias})) return kParameters;
  const int64_t n = product_of(shape);
  const int64_t rows = x.numel() / n;
  const c10::DeviceGuard guard(x.device());
  at::Tensor y = empty(x.sizes(), x.scalar_type());
  c10::SmallVector<int64_t, 6> outer(x.sizes().begin(), x.sizes().end());
  for (size_t d = x.dim() - shape.size(); d < outer.size(); ++d) outer[d] = 1;
  // Statistics have the input's type, as on the CPU.
  at::Tensor mean = empty(outer, x.scalar_type());
  at::Tensor rstd = empty(outer, x.scalar_type());
  c10::SmallVector<Named, 4> inputs{{"x", as_shape(x, {rows, n})}};
  std::string formula = "mean = rsum(x) * inverse; d = x - mean; rstd = 1 / sqrt(rsum(d * d) * inverse + eps); y = d * rstd";
  if (weight.defined()) inputs.push_back({"w", as_shape(packed(weight), {1, n})}), formula += " * w";
  if (bias.defined()) inputs.push_back({"b", as_shape(packed(bias), {1, n})}), formula += " + b";
  const char* reason = run_formula("aten::native_layer_norm", formula.c_str(), {rows, n}, inputs,
                                   {{"y", as_shape(y, {rows, n})},
                                    {"mean", view_of(mean, {rows, 1}, {1, 0})},
                                    {"rstd", view_of(rstd, {rows, 1}, {1, 0})}},
                                   {{"inverse", 1.0 / static_cast<double>(n)}, {"eps", eps}});
  return reason != nullptr ? reason : give(stack, kArguments, y, mean, rstd);
}

/// native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask)
const char* layer_norm_backward(const OperatorHandle&, Stack* stack) {
  constexpr size_t kArguments = 8;
  const at::Tensor g = packed(tensor_at(*stack, kArguments, 0));
  const at::Tensor x = packed(tensor_at(*stack, kArguments, 1));
  const auto shape = value_at(*stack, kArguments, 2).toIntVector();
  const at::Tensor mean = packed(tensor_at(*stack, kArguments, 3));
  const at::Tensor rstd = packed(tensor_at(*stack, kArguments, 4));
  const at::Tensor weight = optional_at(*stack, kArguments, 5);
  const at::Tensor bias = optional_at(*stack, kArguments, 6);
  const auto mask = value_at(*stack, kArguments, 7).toBoolList();
  if (!on_device(g) || !on_device(x) || !is_float_kind(x) || x.numel() == 0) return kLayout;
  const int64_t n = product_of(shape);
  const int64_t rows = x.numel() / n;
  const c10::DeviceGuard guard(x.device());
  const at::Tensor g2 = as_shape(g, {rows, n}), x2 = as_shape(x, {rows, n});
  const at::Tensor m2 = view_of(mean, {rows, 1}, {1, 0}), r2 = view_of(rstd, {rows, 1}, {1, 0});
  at::Tensor dx, dw, db;
  if (mask[0]) {
    dx = empty(x.sizes(), x.scalar_type());
    c10::SmallVector<Named, 5> inputs{{"g", g2}, {"x", x2}, {"m", m2}, {"r", r2}};
    std::string formula = "h = (x - m) * r; ";
    if (weight.defined()) {
      inputs.push_back({"w", as_shape(packed(weight), {1, n})});
      formula += "q = g * w; ";
    } else {
      formula += "q = g * 1; ";
    }
    formula += "r * (q - (rsum(q) + h * rsum(q * h)) * inverse)";
    const char* reason = run_formula("aten::native_layer_norm_backward", formula.c_str(), {rows, n}, inputs,
                                     {{"dx", as_shape(dx, {rows, n})}}, {{"inverse", 1.0 / static_cast<double>(n)}});
    if (reason != nullptr) return reason;
  }
  if (mask[1] && weight.defined()) {
    dw = empty(weight.sizes(), weight.scalar_type());
    const char* reason = run_formula("aten::native_layer_norm_backward", "fold(g * ((x - m) * r)) + 0", {rows, n},
                                     {{"g", g2}, {"x", x2}, {"m", m2}, {"r", r2}}, {{"dw", as_shape(dw, {1, n})}}, {},
                                     kernels::Fold::Sum, 1);
    if (reason != nullptr) return reason;
  }
  if (mask[2] && bias.defined()) {
    db = empty(bias.sizes(), bias.scalar_type());
    const char* reason = run_formula("aten::native_layer_norm_backward", "fold(g) + 0", {rows, n}, {{"g", g2}},
                                     {{"db", as_shape(db, {1, n})}}, {}, kernels::Fold::Sum, 1);
    if (reason != nullptr) return reason;
  }
  return give(stack, kArguments, dx, dw, db);
}

/// native_group_norm(input, weight, bias, N, C, HxW, group, eps) -> (output, mean, rstd); inputs as the CPU gives them:
/// statistics are floats where the input is a half type.
const char* group_norm(const OperatorHandle&, Stack* stack) {
  constexpr size_t kArguments = 8;
  const char* const op = "aten::native_group_norm";
  const at::Tensor x = packed(tensor_at(*stack, kArguments, 0));
  const at::Tensor weight = optional_at(*stack, kArguments, 1), bias = optional_at(*stack, kArguments, 2);
  const int64_t n = value_at(*stack, kArguments, 3).toInt(), c = value_at(*stack, kArguments, 4).toInt(),
                area = value_at(*stack, kArguments, 5).toInt(), groups = value_at(*stack, kArguments, 6).toInt();
  const double eps = value_at(*stack, kArguments, 7).toDouble();
  if (!on_device(x) || !is_float_kind(x) || x.numel() == 0) return kLayout;
  if (!are_parameters_of(x, c, {weight, bias})) return kParameters;
  TORCH_CHECK(groups > 0 && c % groups == 0, "Expected number of channels in input to be divisible by num_groups, but got ",
              "input of ", c, " channels and num_groups=", groups);
  const c10::DeviceGuard guard(x.device());
  const int64_t rows = n * groups, row = c / groups * area;
  const double inverse = 1.0 / static_cast<double>(row);
  const at::Tensor table = as_shape(x, {rows, row});
  at::Tensor y = empty(x.sizes(), x.scalar_type());
  // In float until the end; the results have the types that the CPU gives them.
  const at::Tensor mean = empty({rows, 1}, at::kFloat), rstd = empty({rows, 1}, at::kFloat);
  if (const char* reason = reduce(op, "fold(x) * inverse", table, mean, 2, kernels::Fold::Sum, {{"inverse", inverse}})) {
    return reason;
  }
  if (const char* reason =
          run_formula(op, "d = x - m; 1 / sqrt(fold(d * d) * inverse + eps)", {rows, row}, {{"x", table}, {"m", mean}},
                      {{"y", rstd}}, {{"inverse", inverse}, {"eps", eps}}, kernels::Fold::Sum, 2)) {
    return reason;
  }
  c10::SmallVector<Named, 5> inputs{{"x", as_shape(x, {n, groups, c / groups, area})},
                                    {"m", as_shape(mean, {n, groups, 1, 1})},
                                    {"r", as_shape(rstd, {n, groups, 1, 1})}};
  std::string formula = "(x - m) * r";
  if (weight.defined()) inputs.push_back({"w", as_shape(packed(weight), {1, groups, c / groups, 1})}), formula += " * w";
  if (bias.defined()) inputs.push_back({"b", as_shape(packed(bias), {1, groups, c / groups, 1})}), formula += " + b";
  if (const char* reason = run_formula(op, formula.c_str(), {n, groups, c / groups, area}, inputs,
                                       {{"y", as_shape(y, {n, groups, c / groups, area})}}, {})) {
    return reason;
  }
  const at::ScalarType type = weight.defined() ? weight.scalar_type() : x.scalar_type();
  return give(stack, kArguments, y, as_shape(mean, {n, groups}).to(type), as_shape(rstd, {n, groups}).to(type));
}

/// native_group_norm_backward(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask)
const char* group_norm_backward(const OperatorHandle&, Stack* stack) {
  constexpr size_t kArguments = 10;
  const char* const op = "aten::native_group_norm_backward";
  const at::Tensor g = packed(tensor_at(*stack, kArguments, 0)), x = packed(tensor_at(*stack, kArguments, 1));
  const at::Tensor mean = packed(tensor_at(*stack, kArguments, 2)), rstd = packed(tensor_at(*stack, kArguments, 3));
  const at::Tensor weight = optional_at(*stack, kArguments, 4);
  const int64_t n = value_at(*stack, kArguments, 5).toInt(), c = value_at(*stack, kArguments, 6).toInt(),
                area = value_at(*stack, kArguments, 7).toInt(), groups = value_at(*stack, kArguments, 8).toInt();
  const auto mask = value_at(*stack, kArguments, 9).toBoolList();
  if (!on_device(g) || !on_device(x) || !is_float_kind(x) || x.numel() == 0 || g.scalar_type() != x.scalar_type()) {
    return kLayout;
  }
  const c10::DeviceGuard guard(x.device());
  const int64_t wide = c / groups;
  const at::Tensor g4 = as_shape(g, {n, groups, wide, area}), x4 = as_shape(x, {n, groups, wide, area});
  const at::Tensor m4 = as_shape(mean, {n, groups, 1, 1}), r4 = as_shape(rstd, {n, groups, 1, 1});
  // Each channel's sums of g and of g times the normalized input: all that is reduced goes by way of them.
  const at::Tensor plain = empty({n, groups, wide, 1}, at::kFloat), scaled = empty({n, groups, wide, 1}, at::kFloat);
  if (const char* reason = reduce(op, "fold(x) + 0", g4, plain, 8, kernels::Fold::Sum)) return reason;
  if (const char* reason = run_formula(op, "fold(g * ((x - m) * r)) + 0", {n, groups, wide, area},
                                       {{"g", g4}, {"x", x4}, {"m", m4}, {"r", r4}}, {{"y", scaled}}, {},
                                       kernels::Fold::Sum, 8)) {
    return reason;
  }
  at::Tensor dx, dw, db;
  if (mask[0]) {
    dx = empty(x.sizes(), x.scalar_type());
    const at::Tensor w = weight.defined() ? as_shape(packed(weight), {1, groups, wide, 1}) : at::Tensor();
    const at::Tensor share = empty({n, groups, 1, 1}, at::kFloat), slope = empty({n, groups, 1, 1}, at::kFloat);
    for (const bool is_slope : {false, true}) {
      c10::SmallVector<Named, 2> sums{{"x", is_slope ? scaled : plain}};
      if (w.defined()) sums.push_back({"w", w});
      if (const char* reason = run_formula(op, w.defined() ? "fold(x * w) * inverse" : "fold(x) * inverse",
                                           {n, groups, wide, 1}, sums, {{"y", is_slope ? slope : share}},
                                           {{"inverse", 1.0 / static_cast<double>(wide * area)}}, kernels::Fold::Sum,
                                           4)) {
        return reason;
      }
    }
    c10::SmallVector<Named, 7> inputs{{"g", g4}, {"x", x4}, {"m", m4}, {"r", r4}, {"a", share}, {"b", slope}};
    if (w.defined()) inputs.push_back({"w", w});
    const char* const formula = w.defined() ? "r * (g * w - a - (x - m) * r * b)" : "r * (g - a - (x - m) * r * b)";
    if (const char* reason = run_formula(op, formula, {n, groups, wide, area}, inputs,
                                         {{"y", as_shape(dx, {n, groups, wide, area})}}, {})) {
      return reason;
    }
  }
  const auto over_batch = [&](const at::Tensor& sums, at::Tensor& made) {
    made = empty({c}, weight.defined() ? weight.scalar_type() : x.scalar_type());
    return reduce(op, "fold(x) + 0", as_shape(sums, {n, c}), as_shape(made, {1, c}), 1, kernels::Fold::Sum);
  };
  if (mask[1]) {
    if (const char* reason = over_batch(scaled, dw)) return reason;
  }
  if (mask[2]) {
    if (const char* reason = over_batch(plain, db)) return reason;
  }
  return give(stack, kArguments, dx, dw, db);
}

}  // namespace

void add_layer_norm() {
  add_native("native_layer_norm", "vector_program", layer_norm);
  add_native("native_layer_norm_backward", "vector_program", layer_norm_backward);
  add_native("native_group_norm", "vector_program", group_norm);
  add_native("native_group_norm_backward", "vector_program", group_norm_backward);
}

}  // namespace opkit::npu
