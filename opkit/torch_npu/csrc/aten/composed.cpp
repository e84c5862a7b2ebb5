// Operators that other operators of the device make up: those are what is counted.
#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/conj_physical.h>
#include <ATen/ops/count_nonzero.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/div.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/fill.h>
#include <ATen/ops/floor_divide.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/index_put.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/round.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/scatter_add.h>
#include <ATen/ops/scatter_reduce.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/take.h>
#include <ATen/ops/tril.h>
#include <ATen/ops/triu.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>

#include <cmath>

#include "aten/natives.h"
#include "aten/parts.h"

namespace opkit::npu {
namespace {

// ---- places that a mask names

/// Where a flat mask holds, in order; `count` of them.
at::Tensor places_of(const at::Tensor& mask, int64_t count) {
  const at::TensorOptions whole = mask.options().dtype(at::kLong);
  // Each place goes to the slot of its number among the chosen; the others to one slot behind them.
  const at::Tensor slots = at::where(mask, at::sub(at::cumsum(mask, 0), 1), at::Scalar(count));
  return at::scatter(at::zeros({count + 1}, whole), 0, slots, at::arange(mask.numel(), whole)).narrow(0, 0, count);
}

int64_t count_of_mask(const at::Tensor& mask) { return at::count_nonzero(mask, at::IntArrayRef{0}).item<int64_t>(); }

/// nonzero(self)
const char* nonzero(const OperatorHandle&, Stack* stack) {
  const at::Tensor x = tensor_at(*stack, 1, 0);
  if (!on_device(x) || !kind_of(x.scalar_type())) return kNoType;
  if (x.numel() > kWholeLimit) return kTooManyWhole;
  const c10::DeviceGuard guard(x.device());
  if (x.numel() == 0) return give_composed(stack, 1, empty({0, x.dim()}, at::kLong));
  if (x.dim() == 0) return give_composed(stack, 1, empty({at::ne(x, 0).item<bool>() ? 1 : 0, 0}, at::kLong));
  const at::Tensor mask = at::ne(packed(x), 0).view({-1});
  const int64_t count = count_of_mask(mask);
  const at::Tensor out = empty({count, x.dim()}, at::kLong);
  if (count == 0) return give_composed(stack, 1, out);
  at::Tensor rest = places_of(mask, count);
  for (int64_t d = x.dim(); d-- > 0;) {
    out.select(1, d).copy_(d == 0 ? rest : at::remainder(rest, x.size(d)));
    if (d != 0) rest = at::floor_divide(rest, x.size(d));
  }
  return give_composed(stack, 1, out);
}

/// masked_select(self, mask)
const char* masked_select(const OperatorHandle&, Stack* stack) {
  const at::Tensor x = tensor_at(*stack, 2, 0), mask = tensor_at(*stack, 2, 1);
  if (!on_device(x) || !on_device(mask) || !kind_of(x.scalar_type())) return kNoType;
  if (mask.scalar_type() != at::kBool || x.device() != mask.device()) return kLayout;
  const auto sizes = at::infer_size(x.sizes(), mask.sizes());
  if (product_of(sizes) == 0) return "no element to choose from";
  if (product_of(sizes) > kWholeLimit) return kTooManyWhole;
  const c10::DeviceGuard guard(x.device());
  const at::Tensor flat = packed(mask.expand(sizes)).view({-1});
  const int64_t count = count_of_mask(flat);
  if (count == 0) return give_composed(stack, 2, empty({0}, x.scalar_type()));
  return give_composed(stack, 2, at::take(packed(x.expand(sizes)), places_of(flat, count)));
}

/// put_(self, index, source, accumulate)
const char* put(const OperatorHandle&, Stack* stack) {
  at::Tensor self = tensor_at(*stack, 4, 0);
  const at::Tensor index = tensor_at(*stack, 4, 1), source = tensor_at(*stack, 4, 2);
  const bool adds = value_at(*stack, 4, 3).toBool();
  if (!on_device(self) || !on_device(index) || !on_device(source) || !self.is_contiguous() || self.numel() == 0 ||
      index.numel() == 0 || index.numel() != source.numel() || source.scalar_type() != self.scalar_type() ||
      index.scalar_type() != at::kLong || (adds && self.scalar_type() == at::kBool)) {
    return kLayout;
  }
  const c10::DeviceGuard guard(self.device());
  at::Tensor flat = self.view({-1});
  c10::List<std::optional<at::Tensor>> places;
  places.push_back(packed(index).view({-1}));
  at::index_put_(flat, places, packed(source).view({-1}), adds);
  return give_composed(stack, 4, self);
}

// ---- sums at places

/// The largest, or least, of what goes to each place: put in rising, or falling, order, the last one stays.
at::Tensor extreme_at(const at::Tensor& self, int64_t dim, const at::Tensor& index, at::Tensor source,
                      bool includes_self, bool is_least) {
  if (is_least && at::isFloatingType(self.scalar_type())) {
    // No number is behind all others in rising order only.
    return at::neg(extreme_at(at::neg(self), dim, index, at::neg(source), includes_self, false));
  }
  for (int64_t d = 0; d < index.dim(); ++d) source = source.narrow(d, 0, index.size(d));
  const auto [values, order] = at::sort(source, true, dim, is_least);
  const at::Tensor made = at::scatter(self, dim, at::gather(index, dim, order), values);
  if (!includes_self) return made;
  return is_least ? at::minimum(self, made) : at::maximum(self, made);
}

/// scatter_reduce.two_out(self, dim, index, src, reduce, include_self, out): sums, means and extremes.
const char* scatter_reduce(const OperatorHandle&, Stack* stack) {
  constexpr size_t kArguments = 7;
  at::Tensor self = tensor_at(*stack, kArguments, 0), source = tensor_at(*stack, kArguments, 3);
  const int64_t dim = value_at(*stack, kArguments, 1).toInt();
  const at::Tensor index = tensor_at(*stack, kArguments, 2), out = tensor_at(*stack, kArguments, 6);
  const std::string kind(value_at(*stack, kArguments, 4).toStringRef());
  const bool includes_self = value_at(*stack, kArguments, 5).toBool();
  const bool is_extreme = kind == "amax" || kind == "amin";
  if (kind != "sum" && kind != "mean" && !is_extreme) return "a product at each element";
  if (!on_device(self) || !on_device(source) || !on_device(index) || self.dim() == 0 || index.numel() == 0 ||
      source.scalar_type() != self.scalar_type() || out.scalar_type() != self.scalar_type() ||
      self.scalar_type() == at::kBool || out.sizes() != self.sizes()) {
    return kLayout;
  }
  const c10::DeviceGuard guard(self.device());
  if (is_extreme) {
    out.copy_(extreme_at(self, dim, index, source, includes_self, kind == "amin"));
    return give_composed(stack, kArguments, out);
  }
  // Sums of half types are rounded once.
  if (is_half_kind(self)) self = self.to(at::kFloat), source = source.to(at::kFloat);
  const auto begun = [&](const at::Tensor& x) { return includes_self ? x : at::scatter(x, dim, index, at::Scalar(0)); };
  at::Tensor made = at::scatter_add(begun(self), dim, index, source);
  if (kind == "mean") {
    at::Tensor counts = at::scatter_add(begun(at::ones_like(self)), dim, index, at::ones_like(source));
    counts = at::clamp_min(counts, 1);
    made = at::isFloatingType(made.scalar_type()) ? at::div(made, counts) : at::div(made, counts, "floor");
  }
  out.copy_(made);
  return give_composed(stack, kArguments, out);
}

/// index_add.out(self, dim, index, source, alpha, out) with a factor
const char* index_add_scaled(const OperatorHandle&, Stack* stack) {
  constexpr size_t kArguments = 6;
  const at::Tensor self = tensor_at(*stack, kArguments, 0), source = tensor_at(*stack, kArguments, 3);
  const at::Scalar factor = value_at(*stack, kArguments, 4).toScalar();
  at::Tensor out = tensor_at(*stack, kArguments, 5);
  if (!on_device(self) || !on_device(source) || factor.isComplex() || self.scalar_type() == at::kBool ||
      source.scalar_type() != self.scalar_type() || (factor.toDouble() == 1)) {
    return kLayout;
  }
  const c10::DeviceGuard guard(self.device());
  at::index_add_out(out, self, value_at(*stack, kArguments, 1).toInt(), tensor_at(*stack, kArguments, 2),
                    at::mul(source, factor), 1);
  return give_composed(stack, kArguments, out);
}

/// index_reduce.out(self, dim, index, source, reduce, include_self, out): means and extremes.
const char* index_reduce(const OperatorHandle&, Stack* stack) {
  constexpr size_t kArguments = 7;
  const auto line = [](const at::Tensor& x) { return x.dim() == 0 ? x.unsqueeze(0) : x; };
  const at::Tensor self = line(tensor_at(*stack, kArguments, 0)), source = line(tensor_at(*stack, kArguments, 3));
  const at::Tensor index = line(tensor_at(*stack, kArguments, 2)), out = tensor_at(*stack, kArguments, 6);
  const std::string kind(value_at(*stack, kArguments, 4).toStringRef());
  if (kind == "prod") return "a product at each element";
  if (!on_device(self) || !on_device(source) || !on_device(index) || self.scalar_type() == at::kBool ||
      source.scalar_type() != self.scalar_type() || out.scalar_type() != self.scalar_type() || source.numel() == 0 ||
      source.dim() != self.dim()) {
    return kLayout;
  }
  const int64_t dim = at::maybe_wrap_dim(value_at(*stack, kArguments, 1).toInt(), self.dim());
  Sizes sizes(self.dim(), 1);
  sizes[dim] = index.numel();
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (source.size(d) != (d == dim ? index.numel() : self.size(d))) return kSizes;
  }
  const c10::DeviceGuard guard(self.device());
  const at::Tensor places = index.to(at::kLong).view(sizes).expand(source.sizes());
  const bool includes_self = value_at(*stack, kArguments, 5).toBool();
  const at::Tensor made = at::scatter_reduce(self, dim, places, source, kind, includes_self);
  return give_into(stack, kArguments, made.view(out.sizes()), out);
}

/// addbmm(self, batch1, batch2, beta, alpha): the batch is one more dim that products are summed over.
const char* add_batches(const OperatorHandle&, Stack* stack) {
  const at::Tensor self = tensor_at(*stack, 5, 0), a = tensor_at(*stack, 5, 1), b = tensor_at(*stack, 5, 2);
  // In half types the CPU rounds behind each product.
  if (!on_device(self) || !on_device(a) || !on_device(b) || a.scalar_type() != at::kFloat || a.dim() != 3 ||
      b.dim() != 3 || a.size(0) != b.size(0) || a.size(2) != b.size(1) || a.scalar_type() != b.scalar_type() ||
      self.scalar_type() != a.scalar_type()) {
    return kLayout;
  }
  const c10::DeviceGuard guard(self.device());
  const at::Tensor rows = a.transpose(0, 1).reshape({a.size(1), a.size(0) * a.size(2)});
  const at::Tensor columns = b.reshape({b.size(0) * b.size(1), b.size(2)});
  return give_composed(
      stack, 5, at::addmm(self, rows, columns, value_at(*stack, 5, 3).toScalar(), value_at(*stack, 5, 4).toScalar()));
}

/// dot(self, tensor) and vdot of nothing
const char* dot_of_none(const OperatorHandle&, Stack* stack) {
  const at::Tensor a = tensor_at(*stack, 2, 0), b = tensor_at(*stack, 2, 1);
  if (!on_device(a) || a.device() != b.device() || a.dim() != 1 || a.numel() != 0 || a.sizes() != b.sizes() ||
      a.scalar_type() != b.scalar_type() || !kind_of(a.scalar_type())) {
    return kLayout;
  }
  const c10::DeviceGuard guard(a.device());
  return give_composed(stack, 2, at::zeros({}, a.options()));
}

/// dot(self, tensor) of whole numbers
const char* dot_whole(const OperatorHandle&, Stack* stack) {
  const at::Tensor a = tensor_at(*stack, 2, 0), b = tensor_at(*stack, 2, 1);
  if (!on_device(a) || !on_device(b) || a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type() ||
      !kind_of(a.scalar_type()) || at::isFloatingType(a.scalar_type()) || a.scalar_type() == at::kBool) {
    return kLayout;
  }
  const c10::DeviceGuard guard(a.device());
  return give_composed(stack, 2, at::sum(at::mul(a, b), a.scalar_type()));
}

// ---- others

/// eye.m_out(n, m, out)
const char* eye(size_t count, Stack* stack) {
  const int64_t rows = value_at(*stack, count, 0).toInt(), columns = value_at(*stack, count, count - 2).toInt();
  const at::Tensor out = tensor_at(*stack, count, count - 1);
  if (!on_device(out) || !kind_of(out.scalar_type())) return kNoType;
  if (rows <= 0 || columns <= 0) return "no element to write";
  const c10::DeviceGuard guard(out.device());
  const at::TensorOptions numbers = out.options().dtype(at::kFloat);
  if (out.sizes() != at::IntArrayRef({rows, columns})) out.resize_({rows, columns});
  out.copy_(at::eq(at::arange(rows, numbers).unsqueeze(1), at::arange(columns, numbers)));
  return give_composed(stack, count, out);
}

/// tril_indices(row, col, offset, dtype, layout, device, pin_memory), triu_indices
const char* triangle_places(bool is_upper, const OperatorHandle&, Stack* stack) {
  constexpr size_t kArguments = 7;
  const int64_t rows = value_at(*stack, kArguments, 0).toInt(), columns = value_at(*stack, kArguments, 1).toInt();
  const int64_t offset = value_at(*stack, kArguments, 2).toInt();
  const IValue &type = value_at(*stack, kArguments, 3), &device = value_at(*stack, kArguments, 5);
  if (rows < 0 || columns < 0) return "sizes below 0";
  if (rows > kWholeLimit || columns > kWholeLimit || columns * rows > kWholeLimit) return kTooManyWhole;
  const at::ScalarType wanted = type.isNone() ? at::kLong : type.toScalarType();
  if (wanted != at::kLong && wanted != at::kInt) return kNoType;
  if (device.isNone()) return "no device is named";
  const c10::OptionalDeviceGuard guard(device.toDevice());
  if (rows * columns == 0) return give_composed(stack, kArguments, empty({2, 0}, wanted));
  const at::Tensor all = at::ones({rows, columns}, at::TensorOptions().device(device.toDevice()).dtype(at::kFloat));
  const at::Tensor places = at::nonzero(is_upper ? at::triu(all, offset) : at::tril(all, offset));
  return give_composed(stack, kArguments, places.t().contiguous().to(wanted));
}

// ---- weights by length and direction

at::Tensor as_float(const at::Tensor& x) { return is_half_kind(x) ? x.to(at::kFloat) : x; }

/// All dims but one.
c10::DimVector dims_but(const at::Tensor& x, int64_t dim) {
  c10::DimVector dims;
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (d != dim) dims.push_back(d);
  }
  return dims;
}

bool has_weight_norm(const at::Tensor& v, const at::Tensor& g) {
  return on_device(v) && on_device(g) && is_float_kind(v) && g.scalar_type() == v.scalar_type() && v.numel() > 0 &&
         v.dim() > 1 && g.dim() == v.dim();
}

/// _weight_norm_interface(v, g, dim) -> (v * g / norms, norms): norms are float, as on the CPU.
const char* weight_norm(const OperatorHandle&, Stack* stack) {
  const at::Tensor v = tensor_at(*stack, 3, 0), g = tensor_at(*stack, 3, 1);
  if (!has_weight_norm(v, g)) return kLayout;
  const c10::DeviceGuard guard(v.device());
  const at::Tensor wide = as_float(v);
  const at::Tensor norms =
      at::linalg_vector_norm(wide, 2, dims_but(v, at::maybe_wrap_dim(value_at(*stack, 3, 2).toInt(), v.dim())), true);
  const at::Tensor w = at::mul(wide, at::div(as_float(g), norms));
  return give_composed(stack, 3, w.to(v.scalar_type()), norms);
}

/// _weight_norm_interface_backward(grad_w, saved_v, saved_g, saved_norms, dim) -> (grad_v, grad_g)
const char* weight_norm_backward(const OperatorHandle&, Stack* stack) {
  const at::Tensor grad = tensor_at(*stack, 5, 0), v = tensor_at(*stack, 5, 1), g = tensor_at(*stack, 5, 2);
  const at::Tensor norms = tensor_at(*stack, 5, 3);
  if (!has_weight_norm(v, g) || !on_device(grad) || !on_device(norms) || norms.scalar_type() != at::kFloat) {
    return kLayout;
  }
  const c10::DeviceGuard guard(v.device());
  const at::Tensor wide = as_float(v), dw = as_float(grad);
  const int64_t dim = at::maybe_wrap_dim(value_at(*stack, 5, 4).toInt(), v.dim());
  // The gradient along the direction is the length's; what is across it turns the direction.
  const at::Tensor dg = at::div(at::sum(at::mul(dw, wide), dims_but(v, dim), true), norms);
  const at::Tensor along = at::mul(wide, at::div(dg, norms));
  const at::Tensor dv = at::mul(at::div(as_float(g), norms), at::sub(dw, along));
  return give_composed(stack, 5, dv.to(v.scalar_type()), dg.to(g.scalar_type()));
}

// ---- slopes by channel, decimals, powers

/// _prelu_kernel_backward(grad_output, self, weight) -> (grad_self, grad_weight), both of self's sizes
const char* prelu_backward(const OperatorHandle&, Stack* stack) {
  const at::Tensor grad = tensor_at(*stack, 3, 0), x = tensor_at(*stack, 3, 1), weight = tensor_at(*stack, 3, 2);
  if (!on_device(grad) || !on_device(x) || !on_device(weight) || !is_float_kind(x) || x.numel() == 0 || x.dim() > 6 ||
      weight.scalar_type() != x.scalar_type() || grad.scalar_type() != x.scalar_type()) {
    return kLayout;
  }
  const c10::DeviceGuard guard(x.device());
  const at::Tensor slope = packed(weight.expand(x.sizes())), g = packed(grad.expand(x.sizes())), given = packed(x);
  const at::Tensor by_self = empty(x.sizes(), x.scalar_type()), by_weight = empty(x.sizes(), x.scalar_type());
  constexpr const char* kOp = "aten::_prelu_kernel_backward";
  const char* reason = run_formula(kOp, "select(x > 0, g, w * g)", x.sizes(), {{"x", given}, {"g", g}, {"w", slope}},
                                   {{"y", by_self}}, {});
  if (reason == nullptr) {
    reason = run_formula(kOp, "select(x > 0, 0, x * g)", x.sizes(), {{"x", given}, {"g", g}}, {{"y", by_weight}}, {});
  }
  return reason != nullptr ? reason : give_composed(stack, 3, by_self, by_weight);
}

/// glu.out(self, dim, out): the first half times the second's sigmoid
const char* glu(const OperatorHandle&, Stack* stack) {
  const at::Tensor x = tensor_at(*stack, 3, 0), out = tensor_at(*stack, 3, 2);
  if (!on_device(x) || !is_float_kind(x) || x.dim() == 0 || x.dim() > 6 || x.numel() == 0) return kNoType;
  const int64_t dim = at::maybe_wrap_dim(value_at(*stack, 3, 1).toInt(), x.dim()), half = x.size(dim) / 2;
  if (x.size(dim) % 2 != 0 || out.scalar_type() != x.scalar_type()) return kSizes;
  const c10::DeviceGuard guard(x.device());
  const at::Tensor a = packed(x.narrow(dim, 0, half)), b = packed(x.narrow(dim, half, half));
  const at::Tensor made = empty(a.sizes(), x.scalar_type());
  const char* reason = run_formula("aten::glu", "a * sigmoid(b)", a.sizes(), {{"a", a}, {"b", b}}, {{"y", made}}, {});
  return reason != nullptr ? reason : give_into(stack, 3, made, out);
}

/// glu_backward(grad_output, self, dim)
const char* glu_backward(const OperatorHandle&, Stack* stack) {
  const at::Tensor grad = tensor_at(*stack, 3, 0), x = tensor_at(*stack, 3, 1);
  if (!on_device(x) || !on_device(grad) || !is_float_kind(x) || x.dim() == 0 || x.dim() > 6 || x.numel() == 0 ||
      grad.scalar_type() != x.scalar_type()) {
    return kNoType;
  }
  const int64_t dim = at::maybe_wrap_dim(value_at(*stack, 3, 2).toInt(), x.dim()), half = x.size(dim) / 2;
  const c10::DeviceGuard guard(x.device());
  const at::Tensor a = packed(x.narrow(dim, 0, half)), b = packed(x.narrow(dim, half, half)), g = packed(grad);
  if (x.size(dim) % 2 != 0 || g.sizes() != a.sizes()) return kSizes;
  const at::Tensor by_a = empty(a.sizes(), x.scalar_type()), by_b = empty(a.sizes(), x.scalar_type());
  const char* reason =
      run_formula("aten::glu_backward", "g * sigmoid(b)", a.sizes(), {{"g", g}, {"b", b}}, {{"y", by_a}}, {});
  if (reason == nullptr) {
    reason = run_formula("aten::glu_backward", "s = sigmoid(b); g * a * s * (1 - s)", a.sizes(),
                         {{"g", g}, {"a", a}, {"b", b}}, {{"y", by_b}}, {});
  }
  return reason != nullptr ? reason : give_composed(stack, 3, at::cat({by_a, by_b}, dim));
}

/// round.decimals_out(self, decimals, out); the type rounds each step, as on the CPU.
const char* round_decimals(const OperatorHandle&, Stack* stack) {
  const at::Tensor x = tensor_at(*stack, 3, 0), out = tensor_at(*stack, 3, 2);
  const int64_t decimals = value_at(*stack, 3, 1).toInt();
  if (!on_device(x) || !on_device(out) || !is_float_kind(x) || x.scalar_type() != out.scalar_type()) return kNoType;
  if (std::abs(decimals) > 30) return "so many decimals";
  const c10::DeviceGuard guard(x.device());
  if (x.numel() == 0) return give_into(stack, 3, x, out);
  const at::Scalar ten = std::pow(10.0, static_cast<double>(std::abs(decimals)));
  const at::Tensor made = decimals < 0 ? at::mul(at::round(at::div(x, at::scalar_tensor(ten, x.options()))), ten)
                                       : at::div(at::round(at::mul(x, ten)), at::scalar_tensor(ten, x.options()));
  return give_into(stack, 3, made, out);
}

/// logspace.out(start, end, steps, base, out)
const char* logspace(const OperatorHandle&, Stack* stack) {
  const at::Tensor out = tensor_at(*stack, 5, 4);
  const at::Scalar start = value_at(*stack, 5, 0).toScalar(), end = value_at(*stack, 5, 1).toScalar();
  const int64_t steps = value_at(*stack, 5, 2).toInt();
  if (!on_device(out) || !is_float_kind(out) || start.isComplex() || end.isComplex()) return kNoType;
  if (steps < 0) return kSizes;
  const c10::DeviceGuard guard(out.device());
  if (steps == 0) return give_composed(stack, 5, out.resize_({0}));
  const at::Tensor exponents = at::linspace(start, end, steps, out.options().dtype(at::kFloat));
  return give_into(stack, 5, at::pow(at::Scalar(value_at(*stack, 5, 3).toDouble()), exponents), out);
}

// ---- numbers in tensors

/// fill_.Tensor(self, value): the number is one for all elements.
const char* fill_by_tensor(const OperatorHandle&, Stack* stack) {
  at::Tensor self = tensor_at(*stack, 2, 0);
  const at::Tensor value = tensor_at(*stack, 2, 1);
  if (value.dim() != 0 || value.is_complex() || !on_device(self)) return "a value that is no number";
  at::fill_(self, value.item());
  return give_composed(stack, 2, self);
}

/// index_fill_.int_Tensor(self, dim, index, value)
const char* index_fill_by_tensor(const OperatorHandle&, Stack* stack) {
  at::Tensor self = tensor_at(*stack, 4, 0);
  const at::Tensor value = tensor_at(*stack, 4, 3);
  if (value.dim() != 0 || value.is_complex() || !on_device(self)) return "a value that is no number";
  self.index_fill_(value_at(*stack, 4, 1).toInt(), tensor_at(*stack, 4, 2), value.item());
  return give_composed(stack, 4, self);
}

/// conj_physical_(self): PyTorch's own for all devices looks for a kernel in its table of the CPU's.
const char* conjugate_in_place(const OperatorHandle&, Stack* stack) {
  at::Tensor self = tensor_at(*stack, 1, 0);
  if (self.is_complex()) at::conj_physical_out(self, self);
  return give_composed(stack, 1, self);
}

void add_composed_behind(const char* op, Serve serve) {
  add_kernel({op, "composed", -1, "", std::nullopt, std::move(serve)});
}

}  // namespace

void add_composed() {
  add_native("nonzero", "composed", nonzero);
  add_native("masked_select", "composed", masked_select);
  add_native("put_", "composed", put);
  add_native("scatter_reduce.two_out", "composed", scatter_reduce);
  add_native("_weight_norm_interface", "composed", weight_norm);
  add_native("_weight_norm_interface_backward", "composed", weight_norm_backward);
  add_native("fill_.Tensor", "composed", fill_by_tensor);
  add_native("index_fill_.int_Tensor", "composed", index_fill_by_tensor);
  add_native("conj_physical_", "composed", conjugate_in_place);
  for (const bool is_upper : {false, true}) {
    add_native(is_upper ? "triu_indices" : "tril_indices", "composed",
               [=](const OperatorHandle& of, Stack* stack) { return triangle_places(is_upper, of, stack); });
  }
  add_composed_behind("aten::index_add.out", index_add_scaled);
  add_native("addbmm", "composed", add_batches);
  add_native("index_reduce.out", "composed", index_reduce);
  add_native("_prelu_kernel_backward", "composed", prelu_backward);
  add_native("round.decimals_out", "composed", round_decimals);
  add_native("logspace.out", "composed", logspace);
  add_native("glu.out", "composed", glu);
  add_native("glu_backward", "composed", glu_backward);
  add_composed_behind("aten::dot", dot_whole);
  add_composed_behind("aten::vdot", dot_whole);
  for (const char* op : {"aten::dot", "aten::vdot"}) add_kernel({op, "composed", -2, "", std::nullopt, dot_of_none});
  for (const size_t count : {2, 3}) {
    add_native(count == 2 ? "eye.out" : "eye.m_out", "composed",
               [=](const OperatorHandle&, Stack* stack) { return eye(count, stack); });
  }
}

}  // namespace opkit::npu
