// Folds over dims: sums, means and extremes, variance, norms, truth of all or any; softmax, which folds rows.

#include <ATen/WrapDimUtils.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <cmath>

#include "aten/natives.h"
#include "aten/parts.h"

namespace opkit::npu {

/// Which dims a reduction goes over, a bit each.
uint64_t dims_of(const IValue& value, int64_t rank) {
  if (value.isNone()) return rank >= 64 ? ~uint64_t{0} : (uint64_t{1} << rank) - 1;
  uint64_t mask = 0;
  if (value.isInt()) {
    if (rank > 0) mask |= uint64_t{1} << at::maybe_wrap_dim(value.toInt(), rank);
    return mask;
  }
  const auto dims = value.toIntVector();
  if (dims.empty()) return dims_of(IValue(), rank);
  for (const int64_t dim : dims) {
    if (rank > 0) mask |= uint64_t{1} << at::maybe_wrap_dim(dim, rank);
  }
  return mask;
}

c10::SmallVector<int64_t, 6> reduced_sizes(const at::Tensor& x, uint64_t mask, bool keeps) {
  c10::SmallVector<int64_t, 6> sizes;
  for (int64_t d = 0; d < x.dim(); ++d) {
    const bool is_reduced = (mask >> d & 1) != 0;
    if (!is_reduced) sizes.push_back(x.size(d));
    if (is_reduced && keeps) sizes.push_back(1);
  }
  return sizes;
}

namespace {

/// A tensor whose reduced dims have size 1, whether the caller keeps them or not.
at::Tensor with_ones(const at::Tensor& out, const at::Tensor& x, uint64_t mask) {
  c10::SmallVector<int64_t, 6> sizes, strides;
  int64_t at = 0;
  const bool keeps = out.dim() == x.dim();
  for (int64_t d = 0; d < x.dim(); ++d) {
    const bool is_reduced = (mask >> d & 1) != 0;
    sizes.push_back(is_reduced ? 1 : x.size(d));
    strides.push_back(is_reduced ? 0 : out.stride(at));
    if (!is_reduced || keeps) ++at;
  }
  return view_of(out, sizes, strides);
}

}  // namespace

/// Folds `formula` over the dims of `mask`. A row of the operand has to lie side by side: the innermost dim is one
/// that has stride 1, so dims are reordered by stride.
const char* reduce(const char* op, const char* formula, const at::Tensor& x, const at::Tensor& out, uint64_t mask,
                   kernels::Fold fold, c10::ArrayRef<std::pair<const char*, double>> numbers,
                   c10::ArrayRef<Named> more, bool takes_whole) {
  if (!takes_whole && !is_float_kind(x) && x.scalar_type() != at::kBool && x.scalar_type() != at::kByte) {
    return "a reduction of whole numbers";
  }
  if (!kind_of(out.scalar_type())) return kNoType;
  if (x.numel() == 0) return "an empty tensor";
  c10::SmallVector<int64_t, 6> order(x.dim());
  for (int64_t d = 0; d < x.dim(); ++d) order[d] = d;
  at::Tensor source = x;
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return x.stride(a) > x.stride(b); });
  const auto innermost = [&] {
    for (size_t k = order.size(); k-- > 0;) {
      if (source.size(order[k]) != 1) return source.stride(order[k]);
    }
    return int64_t{1};
  };
  if (innermost() != 1) {
    source = at::Tensor(x.contiguous());
    for (int64_t d = 0; d < x.dim(); ++d) order[d] = d;
  }
  const at::Tensor result = with_ones(out, x, mask);
  c10::SmallVector<int64_t, 6> sizes, source_strides, result_strides, result_sizes;
  uint64_t folded = 0;
  for (size_t k = 0; k < order.size(); ++k) {
    const int64_t d = order[k];
    sizes.push_back(source.size(d));
    source_strides.push_back(source.stride(d));
    result_sizes.push_back(result.size(d));
    result_strides.push_back(result.stride(d));
    if ((mask >> d & 1) != 0) folded |= uint64_t{1} << k;
  }
  c10::SmallVector<Named, 4> inputs{{"x", view_of(source, sizes, source_strides)}};
  for (const Named& named : more) {
    const bool is_whole_shape = named.tensor.sizes() == x.sizes();
    const at::Tensor seen = is_whole_shape ? named.tensor : with_ones(named.tensor, x, mask);
    c10::SmallVector<int64_t, 6> own_sizes, own_strides;
    for (const int64_t d : order) own_sizes.push_back(seen.size(d)), own_strides.push_back(seen.stride(d));
    inputs.push_back({named.name, view_of(seen, own_sizes, own_strides)});
  }
  const char* reason = run_formula(op, formula, sizes, inputs, {{"out", view_of(result, result_sizes, result_strides)}},
                                   numbers, fold, folded);
  if (reason == nullptr || (out.is_contiguous() && x.is_contiguous())) return reason;
  // Results whose rows lie apart are made side by side, and moved.
  const at::Tensor made = empty(out.sizes(), out.scalar_type());
  reason = reduce(op, formula, packed(x), made, mask, fold, numbers, more, takes_whole);
  return reason != nullptr ? reason : copy_or_reason(made, out);
}

namespace {

double count_of(const at::Tensor& x, uint64_t mask) {
  double count = 1;
  for (int64_t d = 0; d < x.dim(); ++d) {
    if ((mask >> d & 1) != 0) count *= static_cast<double>(x.size(d));
  }
  return count;
}

/// sum, mean, amax, amin: (self, dim, keepdim, [dtype], out).
void add_reduction(const char* op, const char* formula, kernels::Fold fold, size_t arguments, bool divides) {
  add_native(op, "vector_program", [=](const OperatorHandle&, Stack* stack) -> const char* {
    const at::Tensor x = tensor_at(*stack, arguments, 0);
    const at::Tensor out = tensor_at(*stack, arguments, arguments - 1);
    if (!on_device(x) || x.dim() > 6) return kLayout;
    const uint64_t mask = dims_of(value_at(*stack, arguments, 1), x.dim());
    const bool keeps = value_at(*stack, arguments, 2).toBool();
    if (out.sizes() != at::IntArrayRef(reduced_sizes(x, mask, keeps))) return "an out tensor of another shape";
    const c10::DeviceGuard guard(x.device());
    const double scale = divides ? 1.0 / count_of(x, mask) : 1.0;
    if (!at::isFloatingType(out.scalar_type())) return "a reduction of whole numbers";
    const char* reason = reduce(op, formula, x, out, mask, fold, {{"scale", scale}});
    return reason != nullptr ? reason : give(stack, arguments, out);
  });
}

/// Along any dim, and along rows of any length: a fold for each value that the formula takes of a line.
const char* softmax_by_folds(const char* op, const at::Tensor& x, int64_t dim, bool is_log, const at::Tensor& out) {
  const uint64_t mask = uint64_t{1} << dim;
  const auto sizes = reduced_sizes(x, mask, true);
  const at::Tensor most = empty(sizes, at::kFloat), sum = empty(sizes, at::kFloat);
  if (const char* reason = reduce(op, "fold(x) + 0", x, most, mask, kernels::Fold::Max)) return reason;
  if (const char* reason = reduce(op, "fold(exp(x - m)) + 0", x, sum, mask, kernels::Fold::Sum, {}, Named{"m", most})) {
    return reason;
  }
  return run_formula(op, is_log ? "x - m - ln(s)" : "exp(x - m) / s", x.sizes(), {{"x", x}, {"m", most}, {"s", sum}},
                     {{"y", out}}, {});
}

const char* softmax(const char* op, const char* formula, size_t out_at, size_t arguments, Stack* stack) {
  const at::Tensor x = tensor_at(*stack, arguments, 0);
  const at::Tensor out = tensor_at(*stack, arguments, out_at);
  if (!on_device(x) || !is_float_kind(x) || x.numel() == 0 || x.dim() == 0) return kLayout;
  const int64_t dim = at::maybe_wrap_dim(value_at(*stack, arguments, 1).toInt(), x.dim());
  const c10::DeviceGuard guard(x.device());
  const at::Tensor source = packed(x);
  if (!out.is_contiguous()) return "an out tensor that is not contiguous";
  const char* reason = "a dim that is not the last one";
  if (dim == x.dim() - 1) reason = run_formula(op, formula, source.sizes(), {{"x", source}}, {{"y", out}}, {});
  if (reason != nullptr) reason = softmax_by_folds(op, source, dim, std::string_view(op) == "aten::_log_softmax", out);
  return reason != nullptr ? reason : give(stack, arguments, out);
}

/// (grad_output, output, dim, input_dtype, grad_input)
const char* softmax_backward(const char* op, const char* formula, Stack* stack) {
  constexpr size_t kArguments = 5;
  const at::Tensor g = packed(tensor_at(*stack, kArguments, 0));
  const at::Tensor y = packed(tensor_at(*stack, kArguments, 1));
  const at::Tensor out = tensor_at(*stack, kArguments, 4);
  if (!on_device(g) || !on_device(y) || !is_float_kind(g) || g.numel() == 0 || g.dim() == 0 || !out.is_contiguous()) {
    return kLayout;
  }
  const int64_t dim = at::maybe_wrap_dim(value_at(*stack, kArguments, 2).toInt(), g.dim());
  const c10::DeviceGuard guard(g.device());
  const char* reason = "a dim that is not the last one";
  if (dim == g.dim() - 1) reason = run_formula(op, formula, g.sizes(), {{"g", g}, {"y", y}}, {{"out", out}}, {});
  if (reason != nullptr) {
    const bool is_log = std::string_view(op) == "aten::_log_softmax_backward_data";
    const uint64_t mask = uint64_t{1} << dim;
    const at::Tensor sum = empty(reduced_sizes(g, mask, true), at::kFloat);
    reason = reduce(op, is_log ? "fold(x) + 0" : "fold(x * y) + 0", g, sum, mask, kernels::Fold::Sum, {},
                    is_log ? c10::ArrayRef<Named>() : c10::ArrayRef<Named>(Named{"y", y}));
    if (reason == nullptr) {
      reason = run_formula(op, is_log ? "g - exp(y) * s" : "(g - s) * y", g.sizes(), {{"g", g}, {"y", y}, {"s", sum}},
                           {{"out", out}}, {});
    }
  }
  return reason != nullptr ? reason : give(stack, kArguments, out);
}

/// var.correction and std.correction: (self, dim, correction, keepdim) -> new
/// With the mean in front for var_mean and std_mean: the same arguments, two results.
const char* variance(bool is_root, bool gives_mean, Stack* stack) {
  constexpr size_t kArguments = 4;
  const char* op = is_root ? "aten::std" : "aten::var";
  const at::Tensor x = tensor_at(*stack, kArguments, 0);
  if (!on_device(x) || !is_float_kind(x) || x.dim() > 6) return kLayout;
  const uint64_t mask = dims_of(value_at(*stack, kArguments, 1), x.dim());
  const IValue& correction = value_at(*stack, kArguments, 2);
  const double taken = correction.isNone() ? 1 : correction.toScalar().toDouble();
  const double count = count_of(x, mask);
  if (count - taken <= 0) return "fewer elements than the correction takes";
  const c10::DeviceGuard guard(x.device());
  at::Tensor mean = empty(reduced_sizes(x, mask, true), at::kFloat);
  if (const char* reason =
          reduce(op, "fold(x) * inverse", x, mean, mask, kernels::Fold::Sum, {{"inverse", 1 / count}})) {
    return reason;
  }
  const auto sizes = reduced_sizes(x, mask, value_at(*stack, kArguments, 3).toBool());
  at::Tensor out = empty(sizes, x.scalar_type());
  const char* formula = is_root ? "d = x - m; sqrt(fold(d * d) * inverse)" : "d = x - m; fold(d * d) * inverse";
  const char* reason = reduce(op, formula, x, out, mask, kernels::Fold::Sum, {{"inverse", 1 / (count - taken)}},
                              Named{"m", mean});
  if (reason != nullptr || !gives_mean) return reason != nullptr ? reason : give(stack, kArguments, out);
  at::Tensor given = as_shape(mean, sizes);
  if (x.scalar_type() != at::kFloat) {
    given = empty(sizes, x.scalar_type());
    if (const char* why = copy_or_reason(as_shape(mean, sizes), given)) return why;
  }
  return give(stack, kArguments, out, given);
}

/// linalg_vector_norm.out(self, ord, dim, keepdim, dtype, out) and norm.out, which has no dtype
const char* vector_norm(const char* op, size_t count, Stack* stack) {
  const at::Tensor x = tensor_at(*stack, count, 0), out = tensor_at(*stack, count, count - 1);
  if (!on_device(x) || !is_float_kind(x) || !is_float_kind(out) || x.dim() > 6 || x.numel() == 0) return kLayout;
  const IValue& given = value_at(*stack, count, 1);
  const double order = given.isNone() ? 2 : given.toScalar().toDouble();
  const uint64_t mask = dims_of(value_at(*stack, count, 2), x.dim());
  if (out.sizes() != at::IntArrayRef(reduced_sizes(x, mask, value_at(*stack, count, 3).toBool()))) {
    return "an out tensor of another shape";
  }
  const c10::DeviceGuard guard(x.device());
  const char* reason =
      order == 2 ? reduce(op, "sqrt(fold(x * x))", x, out, mask, kernels::Fold::Sum)
      : order == 1 ? reduce(op, "fold(abs(x)) + 0", x, out, mask, kernels::Fold::Sum)
      : order == INFINITY  ? reduce(op, "fold(abs(x)) + 0", x, out, mask, kernels::Fold::Max)
      : order == -INFINITY ? reduce(op, "fold(abs(x)) + 0", x, out, mask, kernels::Fold::Min)
      : order == 0         ? reduce(op, "fold(x != 0) + 0", x, out, mask, kernels::Fold::Sum)
                           : reduce(op, "exp(ln(fold(exp(ln(abs(x)) * order))) * root)", x, out, mask,
                                    kernels::Fold::Sum, {{"order", order}, {"root", 1 / order}});
  return reason != nullptr ? reason : give(stack, count, out);
}

/// any and all, over all dims or some: the last argument is the result.
const char* truth(const char* op, kernels::Fold fold, size_t arguments, Stack* stack) {
  const at::Tensor x = tensor_at(*stack, arguments, 0), out = tensor_at(*stack, arguments, arguments - 1);
  if (!on_device(x) || x.dim() > 6 || out.scalar_type() != at::kBool) return kLayout;
  const bool is_whole = arguments == 2;
  const uint64_t mask = dims_of(is_whole ? IValue() : value_at(*stack, arguments, 1), x.dim());
  const bool keeps = !is_whole && value_at(*stack, arguments, 2).toBool();
  if (out.sizes() != at::IntArrayRef(reduced_sizes(x, mask, keeps))) return "an out tensor of another shape";
  const c10::DeviceGuard guard(x.device());
  const char* reason = reduce(op, "fold(x != 0) + 0", x, out, mask, fold);
  return reason != nullptr ? reason : give(stack, arguments, out);
}

}  // namespace

void add_reductions() {
  add_reduction("sum.IntList_out", "fold(x) * scale", kernels::Fold::Sum, 5, false);
  add_reduction("mean.out", "fold(x) * scale", kernels::Fold::Sum, 5, true);
  add_reduction("amax.out", "fold(x) * scale", kernels::Fold::Max, 4, false);
  add_reduction("amin.out", "fold(x) * scale", kernels::Fold::Min, 4, false);
  add_native("_softmax.out", "vector_program", [](const OperatorHandle&, Stack* stack) {
    return softmax("aten::_softmax", "e = exp(x - rmax(x)); e / rsum(e)", 3, 4, stack);
  });
  add_native("_log_softmax.out", "vector_program", [](const OperatorHandle&, Stack* stack) {
    return softmax("aten::_log_softmax", "d = x - rmax(x); d - ln(rsum(exp(d)))", 3, 4, stack);
  });
  add_native("_softmax_backward_data.out", "vector_program", [](const OperatorHandle&, Stack* stack) {
    return softmax_backward("aten::_softmax_backward_data", "p = g * y; p - y * rsum(p)", stack);
  });
  add_native("_log_softmax_backward_data.out", "vector_program", [](const OperatorHandle&, Stack* stack) {
    return softmax_backward("aten::_log_softmax_backward_data", "g - exp(y) * rsum(g)", stack);
  });
  for (const bool is_root : {false, true}) {
    for (const bool gives_mean : {false, true}) {
      const std::string op = std::string(is_root ? "std" : "var") + (gives_mean ? "_mean" : "") + ".correction";
      add_native(op, "vector_program",
                 [=](const OperatorHandle&, Stack* stack) { return variance(is_root, gives_mean, stack); });
    }
  }
  add_native("linalg_vector_norm.out", "vector_program", [](const OperatorHandle&, Stack* stack) {
    return vector_norm("aten::linalg_vector_norm", 6, stack);
  });
  add_native("norm.out", "vector_program",
             [](const OperatorHandle&, Stack* stack) { return vector_norm("aten::norm", 5, stack); });
  using kernels::Fold;
  const auto add_truth = [](const char* op, const char* name, Fold fold, size_t arguments) {
    add_native(op, "vector_program",
               [=](const OperatorHandle&, Stack* stack) { return truth(name, fold, arguments, stack); });
  };
  add_truth("any.all_out", "aten::any", Fold::Max, 2);
  add_truth("any.out", "aten::any", Fold::Max, 4);
  add_truth("all.all_out", "aten::all", Fold::Min, 2);
  add_truth("all.out", "aten::all", Fold::Min, 4);
}

}  // namespace opkit::npu
