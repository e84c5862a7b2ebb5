// Operators that other operators of the device make up: those are what is counted.
#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/count_nonzero.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/div.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/floor_divide.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/index_put.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/scatter_add.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/take.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>

#include "natives.h"
#include "special.h"

namespace opkit::npu {
namespace {

template <typename... Results>
const char* give_composed(Stack* stack, size_t count, Results&&... results) {
  give(stack, count, std::forward<Results>(results)...);
  return kDecomposed;
}

bool is_half_kind(const at::Tensor& x) { return x.scalar_type() == at::kHalf || x.scalar_type() == at::kBFloat16; }

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
  if (x.dim() == 0 || x.numel() == 0) return "no element to choose from";
  if (x.numel() > kWholeLimit) return kTooManyWhole;
  const c10::DeviceGuard guard(x.device());
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

/// scatter_reduce.two_out(self, dim, index, src, reduce, include_self, out): sums and means.
const char* scatter_reduce(const OperatorHandle&, Stack* stack) {
  constexpr size_t kArguments = 7;
  at::Tensor self = tensor_at(*stack, kArguments, 0), source = tensor_at(*stack, kArguments, 3);
  const int64_t dim = value_at(*stack, kArguments, 1).toInt();
  const at::Tensor index = tensor_at(*stack, kArguments, 2), out = tensor_at(*stack, kArguments, 6);
  const std::string kind(value_at(*stack, kArguments, 4).toStringRef());
  const bool includes_self = value_at(*stack, kArguments, 5).toBool();
  if (kind != "sum" && kind != "mean") return "a reduction by another function";
  if (!on_device(self) || !on_device(source) || !on_device(index) || self.dim() == 0 || index.numel() == 0 ||
      source.scalar_type() != self.scalar_type() || out.scalar_type() != self.scalar_type() ||
      self.scalar_type() == at::kBool || out.sizes() != self.sizes()) {
    return kLayout;
  }
  const c10::DeviceGuard guard(self.device());
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

// ---- paddings

/// The place in a line of `size` elements that each element of the padded line comes from; none where PyTorch refuses.
at::Tensor padded_places(int64_t size, int64_t before, int64_t behind, bool reflects, const at::Tensor& like) {
  const int64_t length = size + before + behind;
  if (length < 1 || (reflects && (before >= size || behind >= size))) return {};
  const at::Tensor host = at::detail::empty_cpu({length}, at::kLong);
  auto* places = host.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < length; ++i) {
    int64_t from = i - before;
    if (reflects) {
      from = from < 0 ? -from : from;
      from = from >= size ? 2 * (size - 1) - from : from;
    }
    places[i] = std::min(std::max<int64_t>(from, 0), size - 1);
  }
  return host.to(like.device());
}

/// reflection_pad1d.out(self, padding, out) and the like; the last argument may be missing.
const char* pad(bool reflects, const OperatorHandle& op, Stack* stack) {
  const size_t count = op.schema().arguments().size();
  const at::Tensor x = tensor_at(*stack, count, 0);
  const auto padding = value_at(*stack, count, 1).toIntVector();
  const auto dims = static_cast<int64_t>(padding.size() / 2);
  if (!on_device(x) || !kind_of(x.scalar_type())) return kNoType;
  if (x.numel() == 0 || x.dim() < dims + 1 || x.dim() > dims + 2) return "sizes that do not fit";
  const c10::DeviceGuard guard(x.device());
  at::Tensor made = x;
  for (int64_t i = 0; i < dims; ++i) {
    const int64_t d = x.dim() - 1 - i;
    const at::Tensor places = padded_places(x.size(d), padding[2 * i], padding[2 * i + 1], reflects, x);
    if (!places.defined()) return "sizes that do not fit";
    made = at::index_select(made, d, places);
  }
  if (count == 2) return give_composed(stack, count, made);
  const at::Tensor out = tensor_at(*stack, count, 2);
  if (out.scalar_type() != x.scalar_type()) return kLayout;
  if (out.sizes() != made.sizes()) out.resize_(made.sizes());
  out.copy_(made);
  return give_composed(stack, count, out);
}

/// reflection_pad1d_backward.grad_input(grad_output, self, padding, grad_input) and the like
const char* pad_backward(bool reflects, const OperatorHandle& op, Stack* stack) {
  const size_t count = op.schema().arguments().size();
  at::Tensor grad = tensor_at(*stack, count, 0);
  const at::Tensor x = tensor_at(*stack, count, 1);
  const auto padding = value_at(*stack, count, 2).toIntVector();
  const auto dims = static_cast<int64_t>(padding.size() / 2);
  if (!on_device(x) || !on_device(grad) || !is_float_kind(x)) return kNoType;
  if (x.numel() == 0 || grad.dim() != x.dim() || x.dim() < dims + 1) return "sizes that do not fit";
  const c10::DeviceGuard guard(x.device());
  if (is_half_kind(grad)) grad = grad.to(at::kFloat);
  for (int64_t i = 0; i < dims; ++i) {
    const int64_t d = x.dim() - 1 - i;
    const at::Tensor places = padded_places(x.size(d), padding[2 * i], padding[2 * i + 1], reflects, x);
    if (!places.defined() || places.numel() != grad.size(d)) return "sizes that do not fit";
    std::vector<int64_t> sizes = grad.sizes().vec();
    sizes[d] = x.size(d);
    grad = at::index_add(at::zeros(sizes, grad.options()), d, places, grad);
  }
  if (count == 3) return give_composed(stack, count, grad.to(x.scalar_type()));
  const at::Tensor out = tensor_at(*stack, count, 3);
  if (out.sizes() != x.sizes()) out.resize_(x.sizes());
  out.copy_(grad);
  return give_composed(stack, count, out);
}

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

void add_composed_behind(const char* op, Serve serve) {
  add_kernel({op, "composed", -1, "", std::nullopt, std::move(serve)});
}

}  // namespace

void add_composed() {
  add_native("nonzero", "composed", nonzero);
  add_native("masked_select", "composed", masked_select);
  add_native("put_", "composed", put);
  add_native("scatter_reduce.two_out", "composed", scatter_reduce);
  add_composed_behind("aten::index_add.out", index_add_scaled);
  add_composed_behind("aten::dot", dot_whole);
  for (const size_t count : {2, 3}) {
    add_native(count == 2 ? "eye.out" : "eye.m_out", "composed",
               [=](const OperatorHandle&, Stack* stack) { return eye(count, stack); });
  }
  const auto add_padding = [](const std::string& op, bool reflects) {
    add_native(op, "composed", [=](const OperatorHandle& of, Stack* stack) { return pad(reflects, of, stack); });
  };
  const auto add_gradient = [](const std::string& op, bool reflects) {
    add_native(op, "composed",
               [=](const OperatorHandle& of, Stack* stack) { return pad_backward(reflects, of, stack); });
  };
  for (const char* dims : {"1d", "2d", "3d"}) {
    for (const bool reflects : {true, false}) {
      const std::string op = std::string(reflects ? "reflection_pad" : "replication_pad") + dims;
      add_padding(op + ".out", reflects);
      add_gradient(op + "_backward.grad_input", reflects);
    }
  }
  add_padding("reflection_pad2d", true);
  add_gradient("reflection_pad2d_backward", true);
  add_gradient("replication_pad2d_backward", false);
  add_gradient("replication_pad3d_backward", false);
}

}  // namespace opkit::npu
