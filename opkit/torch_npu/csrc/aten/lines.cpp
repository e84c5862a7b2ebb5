// Operators along one dim: sort and top-k, running sums and extremes, places of extremes, sums of whole numbers; and
// what compares or folds whole tensors (equal, dot), triangles, and losses of the same kind.
#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>

#include "runtime/fallback.h"
#include "aten/natives.h"
#include "opkit/direct_launch.h"
#include "aten/parts.h"

namespace opkit::npu {
namespace {

using kernels::Fold;
using kernels::LinePlan;

/// Elements of a line that a core sorts in its UB: two keys and two places each.
constexpr int64_t kMostSorted = 7680;

bool is_taken(const at::Tensor& x) { return on_device(x) && kind_of(x.scalar_type()).has_value() && x.numel() > 0; }

/// The plan for the lines of a packed tensor along `dim`.
LinePlan plan_of(const at::Tensor& x, int64_t dim, int64_t kept) {
  LinePlan plan{};
  plan.kind = plan.result_kind = static_cast<uint32_t>(*kind_of(x.scalar_type()));
  plan.outer = plan.inner = 1;
  for (int64_t d = 0; d < dim; ++d) plan.outer *= x.size(d);
  for (int64_t d = dim + 1; d < x.dim(); ++d) plan.inner *= x.size(d);
  plan.length = x.dim() == 0 ? 1 : x.size(dim);
  plan.kept = kept;
  return plan;
}

/// Whether the vector unit takes lines of such elements.
bool fits_floats(const at::Tensor& x) { return x.scalar_type() != at::kLong && x.scalar_type() != at::kInt; }

void launch_lines(const char* kernel, const char* op, const LinePlan& plan, const at::Tensor& x,
                  const at::Tensor& first, const at::Tensor& second, bool has_two, int64_t most_blocks) {
  c10::SmallVector<void*, 3> pointers{x.data_ptr()};
  c10::SmallVector<Range, 3> ranges{{x.data_ptr(), extent_of(x), true}};
  for (const at::Tensor* out : {&first, &second}) {
    if (out == &second && !has_two) continue;
    pointers.push_back(out->defined() ? out->data_ptr() : nullptr);
    if (out->defined()) ranges.push_back({out->data_ptr(), extent_of(*out), false});
  }
  const int64_t lines = plan.outer * plan.inner;
  launch(kernel, op, pointers, ranges, &plan, sizeof(plan),
         static_cast<uint32_t>(std::clamp<int64_t>(std::min(lines, most_blocks), 1, vector_cores())),
         x.device().index());
}

/// The cores that lines are worth which the scalar unit goes along.
int64_t scalar_blocks(const LinePlan& plan) { return plan.outer * plan.inner * plan.length / 512; }

/// The cores that elements of a tensor are worth of which each takes so many of the vector unit's cycles.
int64_t vector_blocks(const at::Tensor& x, double cycles) {
  const auto elements = static_cast<double>(x.numel());
  const opkit_core_work work{elements * cycles, elements * static_cast<double>(x.element_size()), 0};
  return opkit_fair_cores(&work);
}

/// Extremes of lines: on as many cores as they are worth, several to a line where there are fewer lines.
void launch_extremes(const char* op, LinePlan plan, const at::Tensor& x, const at::Tensor& values,
                     const at::Tensor& places) {
  constexpr int64_t kLeastPart = 2048, kLeastWidth = 64, kMostWidth = 1024;
  const int64_t lines = plan.outer * plan.inner;
  constexpr double kCycles = 1.0 / 8;  // of a reduction, for an element
  const bool is_wide = !fits_floats(x) || plan.action == LinePlan::kRunning;
  int64_t blocks = is_wide ? std::min<int64_t>(scalar_blocks(plan), vector_cores()) : vector_blocks(x, kCycles);
  if (plan.inner > 1 && !is_wide) {
    const int64_t fair = (lines + blocks - 1) / blocks;
    plan.width = std::clamp((fair + kLeastWidth - 1) / kLeastWidth * kLeastWidth, kLeastWidth, kMostWidth);
    blocks = std::min(blocks, plan.outer * ((plan.inner + plan.width - 1) / plan.width));
  } else if (plan.inner == 1 && !is_wide && 2 * lines <= blocks && plan.length >= 2 * kLeastPart) {
    plan.parts = std::min(blocks / lines, plan.length / kLeastPart);
    blocks = lines * plan.parts;
  } else {
    blocks = std::min(blocks, lines);
  }
  blocks = std::max<int64_t>(blocks, 1);
  const at::Tensor space = plan.parts > 1 ? empty({blocks * 4}, at::kLong) : at::Tensor();
  c10::SmallVector<void*, 4> pointers{x.data_ptr()};
  c10::SmallVector<Range, 4> ranges{{x.data_ptr(), extent_of(x), true}};
  for (const at::Tensor* out : {&values, &places, &space}) {
    pointers.push_back(out->defined() ? out->data_ptr() : nullptr);
    if (out->defined()) ranges.push_back({out->data_ptr(), extent_of(*out), false});
  }
  launch("extreme_lines", op, pointers, ranges, &plan, sizeof(plan), static_cast<uint32_t>(blocks), x.device().index());
}

/// A result as the kernel writes it: the tensor itself where it is packed, else one that is moved there afterwards.
class Result {
 public:
  explicit Result(const at::Tensor& wanted)
      : wanted_(wanted), made_(wanted.is_contiguous() ? wanted : empty(wanted.sizes(), wanted.scalar_type())) {}
  const at::Tensor& tensor() const { return made_; }
  const char* finish() const { return made_.is_same(wanted_) ? nullptr : copy_or_reason(made_, wanted_); }

 private:
  at::Tensor wanted_;
  at::Tensor made_;
};

const char* sort_lines(const char* op, const at::Tensor& given, int64_t dim, bool is_descending, int64_t kept,
                       const at::Tensor& values, const at::Tensor& places) {
  const at::Tensor x = packed(given);
  if (!is_taken(x) || values.scalar_type() != x.scalar_type() || places.scalar_type() != at::kLong) return kLayout;
  LinePlan plan = plan_of(x, dim, kept);
  if (plan.length > kMostSorted) return "a line that is longer than the core's memory takes";
  Sizes sizes(x.sizes().begin(), x.sizes().end());
  if (x.dim() > 0) sizes[dim] = kept;
  if (values.sizes() != at::IntArrayRef(sizes) || places.sizes() != at::IntArrayRef(sizes)) {
    return "an out tensor of another shape";
  }
  if (kept == 0) return nullptr;
  if (plan.inner > 1 && fits_floats(x)) {
    // Lines that lie side by side are the vector unit's.
    const at::Tensor turned = x.transpose(dim, -1);
    return sort_lines(op, turned, x.dim() - 1, is_descending, kept, values.transpose(dim, -1),
                      places.transpose(dim, -1));
  }
  plan.is_descending = is_descending;
  const Result first(values), second(places);
  constexpr double kCycles = 2;  // of runs of 32 and their merges, for an element
  const bool is_wide = !fits_floats(x) || plan.inner > 1;
  launch_lines("sort_lines", op, plan, x, first.tensor(), second.tensor(), true,
               is_wide ? scalar_blocks(plan) : vector_blocks(x, kCycles));
  const char* reason = first.finish();
  return reason != nullptr ? reason : second.finish();
}

/// sort.values_stable(self, stable, dim, descending, values, indices)
const char* sort(const OperatorHandle&, Stack* stack) {
  const at::Tensor x = tensor_at(*stack, 6, 0), values = tensor_at(*stack, 6, 4), places = tensor_at(*stack, 6, 5);
  if (!on_device(x) || x.dim() == 0) return kLayout;
  const c10::DeviceGuard guard(x.device());
  const int64_t dim = at::maybe_wrap_dim(value_at(*stack, 6, 2).toInt(), x.dim());
  const char* reason = sort_lines("aten::sort", x, dim, value_at(*stack, 6, 3).toBool(), x.size(dim), values, places);
  return reason != nullptr ? reason : give(stack, 6, values, places);
}

/// topk.values(self, k, dim, largest, sorted, values, indices)
const char* topk(const OperatorHandle&, Stack* stack) {
  const at::Tensor x = tensor_at(*stack, 7, 0), values = tensor_at(*stack, 7, 5), places = tensor_at(*stack, 7, 6);
  if (!on_device(x) || x.dim() == 0) return kLayout;
  const c10::DeviceGuard guard(x.device());
  const int64_t dim = at::maybe_wrap_dim(value_at(*stack, 7, 2).toInt(), x.dim());
  const int64_t kept = value_at(*stack, 7, 1).toInt();
  if (kept > x.size(dim)) return kLayout;
  const char* reason = sort_lines("aten::topk", x, dim, value_at(*stack, 7, 3).toBool(), kept, values, places);
  return reason != nullptr ? reason : give(stack, 7, values, places);
}

/// cumsum.out and cumprod.out: (self, dim, dtype, out)
const char* scan(const char* op, uint32_t action, Stack* stack) {
  const at::Tensor x = packed(tensor_at(*stack, 4, 0)), out = tensor_at(*stack, 4, 3);
  if (!is_taken(x) || !kind_of(out.scalar_type()) || out.sizes() != x.sizes()) return kLayout;
  const bool is_float = at::isFloatingType(out.scalar_type());
  if (!is_float && at::isFloatingType(x.scalar_type())) return "floats into whole numbers";
  if (out.scalar_type() == at::kBool || out.scalar_type() == at::kChar) return "a sum of that type";
  const c10::DeviceGuard guard(x.device());
  LinePlan plan = plan_of(x, x.dim() == 0 ? 0 : at::maybe_wrap_dim(value_at(*stack, 4, 1).toInt(), x.dim()), 0);
  plan.kept = plan.length;
  plan.action = action;
  plan.result_kind = static_cast<uint32_t>(*kind_of(out.scalar_type()));
  const Result result(out);
  launch_lines("scan_lines", op, plan, x, result.tensor(), {}, false, scalar_blocks(plan));
  const char* reason = result.finish();
  return reason != nullptr ? reason : give(stack, 4, out);
}

/// _cummax_helper and _cummin_helper: (self, values, indices, dim)
const char* running_extreme(const char* op, bool is_most, Stack* stack) {
  const at::Tensor x = packed(tensor_at(*stack, 4, 0)), values = tensor_at(*stack, 4, 1);
  const at::Tensor places = tensor_at(*stack, 4, 2);
  if (!is_taken(x) || values.sizes() != x.sizes() || places.sizes() != x.sizes() ||
      values.scalar_type() != x.scalar_type() || places.scalar_type() != at::kLong) {
    return kLayout;
  }
  const c10::DeviceGuard guard(x.device());
  LinePlan plan = plan_of(x, x.dim() == 0 ? 0 : at::maybe_wrap_dim(value_at(*stack, 4, 3).toInt(), x.dim()), 0);
  plan.kept = plan.length;
  plan.action = LinePlan::kRunning;
  plan.is_descending = is_most;
  const Result first(values), second(places);
  launch_extremes(op, plan, x, first.tensor(), second.tensor());
  if (const char* reason = first.finish()) return reason;
  if (const char* reason = second.finish()) return reason;
  torch::jit::drop(*stack, 4);
  return nullptr;
}

/// x with the dims of `mask` side by side behind the others: lines of what is folded.
at::Tensor folded_behind(const at::Tensor& x, uint64_t mask, int64_t& length) {
  Sizes sizes, strides;
  length = 1;
  for (const bool is_folded : {false, true}) {
    for (int64_t d = 0; d < x.dim(); ++d) {
      if (((mask >> d & 1) != 0) != is_folded) continue;
      sizes.push_back(x.size(d));
      strides.push_back(x.stride(d));
      if (is_folded) length *= x.size(d);
    }
  }
  const at::Tensor seen = packed(view_of(x, sizes, strides));
  return as_shape(seen, {x.numel() / std::max<int64_t>(length, 1), length});
}

const char* extreme(const char* op, const at::Tensor& x, uint64_t mask, bool is_most, const at::Tensor& values,
                    const at::Tensor& places) {
  if (!is_taken(x)) return kLayout;
  const c10::DeviceGuard guard(x.device());
  int64_t length = 1;
  // A single dim is folded where it is; several are brought side by side first.
  const bool is_single = x.dim() > 0 && mask != 0 && (mask & (mask - 1)) == 0;
  const at::Tensor seen = is_single ? packed(x) : folded_behind(x, mask, length);
  const int64_t dim = is_single ? c10::llvm::countTrailingZeros(mask) : 1;
  const int64_t results = seen.numel() / seen.size(dim);
  for (const at::Tensor* out : {&values, &places}) {
    if (!out->defined()) continue;
    if (out->numel() != results || !out->is_contiguous()) return "an out tensor of another shape";
    if (out->scalar_type() != (out == &values ? x.scalar_type() : at::kLong)) return kLayout;
  }
  LinePlan plan = plan_of(seen, dim, 1);
  plan.is_descending = is_most;
  launch_extremes(op, plan, seen, values, places);
  return nullptr;
}

/// argmax.out and argmin.out: (self, dim, keepdim, out)
const char* place_of_extreme(const char* op, bool is_most, Stack* stack) {
  const at::Tensor x = tensor_at(*stack, 4, 0), out = tensor_at(*stack, 4, 3);
  const char* reason = extreme(op, x, dims_of(value_at(*stack, 4, 1), x.dim()), is_most, {}, out);
  return reason != nullptr ? reason : give(stack, 4, out);
}

/// max.dim_max and min.dim_min: (self, dim, keepdim, values, indices)
const char* extreme_of_dim(const char* op, bool is_most, Stack* stack) {
  const at::Tensor x = tensor_at(*stack, 5, 0), values = tensor_at(*stack, 5, 3), places = tensor_at(*stack, 5, 4);
  const char* reason = extreme(op, x, dims_of(value_at(*stack, 5, 1), x.dim()), is_most, values, places);
  return reason != nullptr ? reason : give(stack, 5, values, places);
}

/// amax.out and amin.out of whole numbers: (self, dims, keepdim, out)
const char* extreme_of_dims(const char* op, bool is_most, Stack* stack) {
  const at::Tensor x = tensor_at(*stack, 4, 0), out = tensor_at(*stack, 4, 3);
  const char* reason = extreme(op, x, dims_of(value_at(*stack, 4, 1), x.dim()), is_most, out, {});
  return reason != nullptr ? reason : give(stack, 4, out);
}

/// max(self) and min(self)
const char* extreme_of_all(const char* op, bool is_most, Stack* stack) {
  const at::Tensor x = tensor_at(*stack, 1, 0);
  if (!is_taken(x)) return kLayout;
  const c10::DeviceGuard guard(x.device());
  at::Tensor out = empty({}, x.scalar_type());
  const char* reason = extreme(op, x, dims_of(IValue(), x.dim()), is_most, out, {});
  return reason != nullptr ? reason : give(stack, 1, out);
}

}  // namespace

const char* fold_whole(const char* op, uint32_t action, const at::Tensor& x, uint64_t mask, const at::Tensor& out) {
  if (!is_taken(x) || !kind_of(out.scalar_type()) || at::isFloatingType(x.scalar_type()) ||
      at::isFloatingType(out.scalar_type()) || out.scalar_type() == at::kBool || out.scalar_type() == at::kChar) {
    return "a reduction of whole numbers into another type";
  }
  const c10::DeviceGuard guard(x.device());
  int64_t length = 1;
  const at::Tensor lines = folded_behind(x, mask, length);
  if (out.numel() != lines.size(0) || !out.is_contiguous()) return "an out tensor of another shape";
  LinePlan plan = plan_of(lines, 1, 1);
  plan.action = action;
  plan.result_kind = static_cast<uint32_t>(*kind_of(out.scalar_type()));
  launch_lines("fold_lines", op, plan, lines, out, {}, false, scalar_blocks(plan));
  return nullptr;
}

namespace {

const char* sum_whole(const OperatorHandle&, Stack* stack) {
  const at::Tensor x = tensor_at(*stack, 5, 0), out = tensor_at(*stack, 5, 4);
  const char* reason = fold_whole("aten::sum", LinePlan::kSum, x, dims_of(value_at(*stack, 5, 1), x.dim()), out);
  return reason != nullptr ? reason : give(stack, 5, out);
}

/// prod(self, dtype) and prod.int_out(self, dim, keepdim, dtype, out)
const char* product(bool is_whole_tensor, Stack* stack) {
  const size_t arguments = is_whole_tensor ? 2 : 5;
  const at::Tensor x = tensor_at(*stack, arguments, 0);
  if (!is_taken(x) || x.dim() > 6) return kLayout;
  const c10::DeviceGuard guard(x.device());
  const bool is_float = is_float_kind(x);
  const IValue& type = value_at(*stack, arguments, is_whole_tensor ? 1 : 3);
  at::Tensor out = is_whole_tensor ? empty({}, !type.isNone() ? type.toScalarType()
                                               : is_float     ? x.scalar_type()
                                                              : at::kLong)
                                   : tensor_at(*stack, arguments, 4);
  const uint64_t mask = dims_of(is_whole_tensor ? IValue() : value_at(*stack, arguments, 1), x.dim());
  const char* reason = is_float != at::isFloatingType(out.scalar_type()) ? "a product of another type"
                       : is_float ? reduce("aten::prod", "fold(x) + 0", x, out, mask, Fold::Prod)
                                  : fold_whole("aten::prod", LinePlan::kProduct, x, mask, out);
  return reason != nullptr ? reason : give(stack, arguments, out);
}

/// tril.out and triu.out: (self, diagonal, out)
const char* triangle(const char* op, bool is_lower, Stack* stack) {
  const at::Tensor x = tensor_at(*stack, 3, 0), out = tensor_at(*stack, 3, 2);
  if (!out.is_contiguous() && !out.is_same(x) && on_device(out) && x.dim() >= 2 && out.sizes() == x.sizes() &&
      at::has_internal_overlap(out) != at::MemOverlap::Yes) {
    // The CPU's function writes beside an `out=` whose elements lie in another order.
    const int64_t diagonal = value_at(*stack, 3, 1).toInt();
    out.copy_(is_lower ? x.tril(diagonal) : x.triu(diagonal));
    return give_composed(stack, 3, out);
  }
  if (!is_taken(x) || x.dim() < 2 || x.scalar_type() != out.scalar_type() || out.sizes() != x.sizes() ||
      out.stride(-1) != 1 || may_overlap(x, out) != (x.data_ptr() == out.data_ptr())) {
    return kLayout;
  }
  if (x.scalar_type() == at::kInt || x.scalar_type() == at::kLong) return "whole numbers that floats do not hold";
  const c10::DeviceGuard guard(x.device());
  const int64_t rows = x.size(-2);
  const at::Tensor row = empty({rows}, at::kFloat);
  if (const char* reason = run_formula(op, "lane + 0", {rows}, {}, {{"y", row}}, {})) return reason;
  // The diagonal's column in each row stands beside the row.
  const char* formula = is_lower ? "select(lane <= r + k, x, 0)" : "select(lane >= r + k, x, 0)";
  const char* reason =
      run_formula(op, formula, x.sizes(),
                  {{"x", x.data_ptr() == out.data_ptr() ? x : packed(x)}, {"r", view_of(row, {rows, 1}, {1, 0})}},
                  {{"y", out}}, {{"k", static_cast<double>(value_at(*stack, 3, 1).toInt())}});
  return reason != nullptr ? reason : give(stack, 3, out);
}

/// equal(self, other) -> bool
const char* equal(const OperatorHandle&, Stack* stack) {
  const at::Tensor a = tensor_at(*stack, 2, 0), b = tensor_at(*stack, 2, 1);
  if (!is_taken(a) || !is_taken(b) || a.device() != b.device() || a.sizes() != b.sizes() || a.dim() > 6 ||
      a.scalar_type() != b.scalar_type() || a.scalar_type() == at::kLong || a.scalar_type() == at::kInt) {
    return kLayout;
  }
  const c10::DeviceGuard guard(a.device());
  const at::Tensor found = empty({}, at::kFloat);
  const char* reason = reduce("aten::equal", "fold(x != y) + 0", packed(a), found, dims_of(IValue(), a.dim()),
                              Fold::Max, {}, Named{"y", packed(b)}, true);
  if (reason != nullptr) return reason;
  const bool are_equal = *static_cast<const float*>(found.data_ptr()) == 0;
  return give(stack, 2, are_equal);
}

/// dot(self, tensor) and vdot, which is the same for real numbers
const char* dot(const char* op, Stack* stack) {
  const at::Tensor a = tensor_at(*stack, 2, 0), b = tensor_at(*stack, 2, 1);
  if (!is_taken(a) || !is_taken(b) || a.device() != b.device() || !is_float_kind(a) || a.sizes() != b.sizes() ||
      a.scalar_type() != b.scalar_type()) {
    return kLayout;
  }
  const c10::DeviceGuard guard(a.device());
  at::Tensor out = empty({}, a.scalar_type());
  const char* reason =
      reduce(op, "fold(x * y) + 0", packed(a), out, dims_of(IValue(), a.dim()), Fold::Sum, {}, Named{"y", packed(b)});
  return reason != nullptr ? reason : give(stack, 2, out);
}

/// addmv.out(self, mat, vec, beta, alpha, out)
const char* add_matrix_vector(const OperatorHandle&, Stack* stack) {
  const at::Tensor self = tensor_at(*stack, 6, 0), a = tensor_at(*stack, 6, 1), x = tensor_at(*stack, 6, 2);
  const at::Tensor out = tensor_at(*stack, 6, 5);
  if (!on_device(a) || !on_device(x) || !on_device(self) || !out.is_contiguous()) return kLayout;
  const c10::DeviceGuard guard(out.device());
  const int64_t m = a.size(0), k = a.size(1);
  const at::Tensor seen =
      self.dim() == 0 ? view_of(self, {1, 1, 1}, {1, 1, 1}) : view_of(packed(self), {1, self.numel(), 1}, {1, 1, 1});
  const char* reason =
      add_product("aten::addmv", seen, view_of(a, {1, m, k}, {0, a.stride(0), a.stride(1)}),
                  view_of(packed(x), {1, k, 1}, {k, 1, 1}), value_at(*stack, 6, 3).toScalar().toDouble(),
                  value_at(*stack, 6, 4).toScalar().toDouble(), view_of(out, {1, m, 1}, {m, 1, 1}));
  return reason != nullptr ? reason : give(stack, 6, out);
}

/// nansum(self, dim, keepdim, dtype)
const char* sum_without_nan(const OperatorHandle&, Stack* stack) {
  const at::Tensor x = tensor_at(*stack, 4, 0);
  if (!is_taken(x) || !is_float_kind(x) || x.dim() > 6 || !value_at(*stack, 4, 3).isNone()) return kLayout;
  const c10::DeviceGuard guard(x.device());
  const uint64_t mask = dims_of(value_at(*stack, 4, 1), x.dim());
  at::Tensor out = empty(reduced_sizes(x, mask, value_at(*stack, 4, 2).toBool()), x.scalar_type());
  const char* reason = reduce("aten::nansum", "fold(select(x != x, 0, x)) + 0", x, out, mask, Fold::Sum);
  return reason != nullptr ? reason : give(stack, 4, out);
}

/// count_nonzero.dim_IntList(self, dim)
const char* count_nonzero(const OperatorHandle&, Stack* stack) {
  const at::Tensor x = tensor_at(*stack, 2, 0);
  if (!is_taken(x) || x.dim() > 6 || x.numel() > 1 << 24) return kLayout;
  const c10::DeviceGuard guard(x.device());
  const uint64_t mask = dims_of(value_at(*stack, 2, 1), x.dim());
  at::Tensor out = empty(reduced_sizes(x, mask, false), at::kLong);
  const char* reason = reduce("aten::count_nonzero", "fold(x != 0) + 0", x, out, mask, Fold::Sum, {}, {}, true);
  return reason != nullptr ? reason : give(stack, 2, out);
}

}  // namespace

void add_lines() {
  add_native("sort.values_stable", "sort_lines", sort);
  add_native("topk.values", "sort_lines", topk);
  for (const bool is_most : {false, true}) {
    const auto name = [&](const char* most, const char* least) { return is_most ? most : least; };
    add_native(name("_cummax_helper", "_cummin_helper"), "extreme_lines", [=](const OperatorHandle&, Stack* stack) {
      return running_extreme(is_most ? "aten::cummax" : "aten::cummin", is_most, stack);
    });
    add_native(name("argmax.out", "argmin.out"), "extreme_lines", [=](const OperatorHandle&, Stack* stack) {
      return place_of_extreme(is_most ? "aten::argmax" : "aten::argmin", is_most, stack);
    });
    add_native(name("max.dim_max", "min.dim_min"), "extreme_lines", [=](const OperatorHandle&, Stack* stack) {
      return extreme_of_dim(is_most ? "aten::max" : "aten::min", is_most, stack);
    });
    add_kernel({name("aten::amax.out", "aten::amin.out"), "extreme_lines", -1, "", std::nullopt,
                [=](const OperatorHandle&, Stack* stack) {
                  return extreme_of_dims(is_most ? "aten::amax" : "aten::amin", is_most, stack);
                }});
    add_native(name("max", "min"), "extreme_lines", [=](const OperatorHandle&, Stack* stack) {
      return extreme_of_all(is_most ? "aten::max" : "aten::min", is_most, stack);
    });
    add_native(name("cumprod.out", "cumsum.out"), "scan_lines", [=](const OperatorHandle&, Stack* stack) {
      return scan(is_most ? "aten::cumprod" : "aten::cumsum", is_most ? LinePlan::kProduct : LinePlan::kSum, stack);
    });
    add_native(name("prod", "prod.int_out"), "fold_lines",
               [=](const OperatorHandle&, Stack* stack) { return product(is_most, stack); });
    add_native(name("tril.out", "triu.out"), "vector_program", [=](const OperatorHandle&, Stack* stack) {
      return triangle(is_most ? "aten::tril" : "aten::triu", is_most, stack);
    });
    add_native(name("dot", "vdot"), "vector_program",
               [=](const OperatorHandle&, Stack* stack) { return dot(is_most ? "aten::dot" : "aten::vdot", stack); });
  }
  add_kernel({"aten::sum.IntList_out", "fold_lines", -1, "", std::nullopt, sum_whole});
  add_native("equal", "vector_program", equal);
  add_native("addmv.out", "matmul_batched", add_matrix_vector);
  add_native("nansum", "vector_program", sum_without_nan);
  add_native("count_nonzero.dim_IntList", "vector_program", count_nonzero);
}

}  // namespace opkit::npu
