// Operators about the order of elements, made of comparisons, sums and sorted lines.
#include <ATen/ops/arange.h>
#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/floor.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/le.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/max.h>
#include <ATen/ops/min.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <cmath>

#include "aten/natives.h"
#include "aten/parts.h"

namespace opkit::npu {
namespace {

/// How many values are compared with how many boundaries, at most.
constexpr int64_t kMostPairs = int64_t{1} << 22;

/// How many boundaries, in the last dim, are less than each value, or no greater where `is_right`. `lines`: as many
/// dims as the values, or one line for all of them.
const char* count_below(const at::Tensor& lines, const at::Tensor& values, bool is_right, at::Tensor& made) {
  if (!on_device(lines) || !on_device(values) || !kind_of(lines.scalar_type()) || !kind_of(values.scalar_type())) {
    return kNoType;
  }
  if (lines.dim() == 0 || values.dim() > 5) return kSizes;
  if (lines.numel() == 0 || values.numel() == 0) {
    made = at::zeros(values.sizes(), values.options().dtype(at::kLong));
    return nullptr;
  }
  if (lines.scalar_type() != values.scalar_type()) return "values and boundaries of two types";
  const bool is_float = is_float_kind(lines);
  const int64_t pairs = values.numel() * lines.size(-1);
  if (pairs > (is_float ? kMostPairs : kWholeLimit)) return "so many values and boundaries";
  const at::Tensor row = lines.dim() == 1 ? lines : lines.unsqueeze(-2);
  const at::Tensor value = values.unsqueeze(-1);
  // Not the reverse comparison: a value that is no number is behind all boundaries.
  const at::Tensor above = is_right ? at::gt(row, value) : at::ge(row, value);
  made = at::sum(at::logical_not(above), at::IntArrayRef{-1});
  return nullptr;
}

/// bucketize.Tensor(self, boundaries, out_int32, right)
const char* bucketize(const OperatorHandle&, Stack* stack) {
  const at::Tensor values = tensor_at(*stack, 4, 0), line = tensor_at(*stack, 4, 1);
  if (!on_device(values) || line.dim() != 1) return kLayout;
  const c10::DeviceGuard guard(values.device());
  at::Tensor made;
  if (const char* reason = count_below(line, values, value_at(*stack, 4, 3).toBool(), made)) return reason;
  return give_composed(stack, 4, value_at(*stack, 4, 2).toBool() ? made.to(at::kInt) : made);
}

/// searchsorted.Tensor(sorted_sequence, self, out_int32, right, side, sorter)
const char* searchsorted(const OperatorHandle&, Stack* stack) {
  const at::Tensor lines = tensor_at(*stack, 6, 0), values = tensor_at(*stack, 6, 1);
  const IValue& side = value_at(*stack, 6, 4);
  const bool is_right = side.isNone() ? value_at(*stack, 6, 3).toBool() : side.toStringRef() == "right";
  if (!side.isNone() && !is_right && side.toStringRef() != "left") return "a side that is neither";
  if (!value_at(*stack, 6, 5).isNone()) return "a sorter";
  if (!side.isNone() && !is_right && value_at(*stack, 6, 3).toBool()) return "two sides";
  if (!on_device(values) || lines.dim() == 0 || (lines.dim() != 1 && lines.dim() != values.dim())) return kLayout;
  for (int64_t d = 0; lines.dim() != 1 && d + 1 < lines.dim(); ++d) {
    if (lines.size(d) != values.size(d)) return kSizes;
  }
  const c10::DeviceGuard guard(values.device());
  at::Tensor made;
  if (const char* reason = count_below(lines, values, is_right, made)) return reason;
  return give_composed(stack, 6, value_at(*stack, 6, 2).toBool() ? made.to(at::kInt) : made);
}

/// histc(self, bins, min, max)
const char* histc(const OperatorHandle&, Stack* stack) {
  const at::Tensor given = tensor_at(*stack, 4, 0);
  const int64_t bins = value_at(*stack, 4, 1).toInt();
  const at::Scalar low = value_at(*stack, 4, 2).toScalar(), high = value_at(*stack, 4, 3).toScalar();
  if (!on_device(given) || !kind_of(given.scalar_type()) || given.scalar_type() == at::kBool || is_half_kind(given)) {
    return kNoType;
  }
  if (given.numel() == 0 || bins <= 0 || low.isComplex() || high.isComplex()) return kSizes;
  const c10::DeviceGuard guard(given.device());
  const bool is_float = is_float_kind(given);
  if (!is_float && given.numel() > kWholeLimit) return kTooManyWhole;
  double first = low.toDouble(), last = high.toDouble();
  if (first == last) first = at::min(given).item<double>(), last = at::max(given).item<double>();
  if (first == last) first -= 1, last += 1;
  constexpr double kFloatLimit = 1 << 24;
  const bool is_held = std::abs(first) < kFloatLimit && std::abs(last) < kFloatLimit;
  if (!(first < last) || !std::isfinite(first) || !std::isfinite(last) || (!is_float && !is_held)) {
    return "a range that has no bins";
  }
  const at::Tensor x = packed(given).view({-1}).to(at::kFloat);
  const at::Tensor is_inside = at::bitwise_and(at::ge(x, first), at::le(x, last)).to(at::kFloat);
  const at::Tensor places = empty(x.sizes(), at::kFloat);
  // As PyTorch has it, in the order of its operations; the last bin has its end too.
  const char* reason = run_formula("aten::histc", "select(m != 0, min(floor((x - a) * n / (b - a)), n - 1), 0)",
                                   x.sizes(), {{"x", x}, {"m", is_inside}}, {{"y", places}},
                                   {{"a", first}, {"b", last}, {"n", static_cast<double>(bins)}});
  if (reason != nullptr) return reason;
  const at::Tensor counts = at::index_add(at::zeros({bins}, x.options()), 0, places.to(at::kLong), is_inside);
  return give_composed(stack, 4, counts.to(given.scalar_type()));
}

/// bincount(self, weights, minlength)
const char* bincount(const OperatorHandle&, Stack* stack) {
  const at::Tensor x = tensor_at(*stack, 3, 0), weights = optional_at(*stack, 3, 1);
  const int64_t least = value_at(*stack, 3, 2).toInt();
  if (!on_device(x) || at::isFloatingType(x.scalar_type()) || !kind_of(x.scalar_type()) || x.dim() != 1) return kNoType;
  if (x.numel() == 0 || x.numel() > kWholeLimit || x.scalar_type() == at::kBool || least < 0) return kSizes;
  const bool is_weighted = weights.defined();
  if (is_weighted && (!on_device(weights) || weights.scalar_type() != at::kFloat || weights.sizes() != x.sizes())) {
    return "weights that are no floats";
  }
  const c10::DeviceGuard guard(x.device());
  const at::Tensor places = x.to(at::kLong);
  if (at::min(places).item<int64_t>() < 0) return "a number below 0";
  const int64_t length = std::max(least, at::max(places).item<int64_t>() + 1);
  const at::Tensor each = is_weighted ? packed(weights) : at::ones(x.sizes(), places.options());
  return give_composed(stack, 3, at::index_add(at::zeros({length}, each.options()), 0, places, each));
}

/// The lower of the middle elements of each line, of those that are numbers; where that is not asked for, a line with
/// one that is none has no median.
const char* middle_of(const at::Tensor& x, bool skips_none, at::Tensor& values, at::Tensor& places) {
  if (!on_device(x) || !kind_of(x.scalar_type()) || x.scalar_type() == at::kBool || x.numel() == 0) return kNoType;
  const auto [sorted, order] = at::sort(x, /*stable=*/true, -1, false);
  at::Tensor middle = at::zeros(x.sizes().slice(0, x.dim() - 1), x.options().dtype(at::kLong)).unsqueeze(-1);
  middle.fill_((x.size(-1) - 1) / 2);
  if (is_float_kind(x)) {
    // They are behind all others.
    const at::Tensor count = at::sum(at::isnan(x), at::IntArrayRef{-1}, true);
    const at::Tensor left = at::clamp(at::sub(at::mul(count, -1), -x.size(-1)), 1).sub(1);
    const at::Tensor own = at::floor(left.to(at::kFloat).mul(0.5)).to(at::kLong);
    const at::Tensor has_none = at::gt(count, 0);
    middle = skips_none ? own : at::where(has_none, left.add(count.clamp_max(1)).clamp_max(x.size(-1) - 1), middle);
  }
  values = at::gather(sorted, -1, middle);
  places = at::gather(order, -1, middle);
  return nullptr;
}

/// median(self), nanmedian(self)
const char* median(bool skips_none, const OperatorHandle&, Stack* stack) {
  const at::Tensor x = tensor_at(*stack, 1, 0);
  if (!on_device(x) || x.numel() == 0) return kSizes;
  const c10::DeviceGuard guard(x.device());
  at::Tensor values, places;
  if (const char* reason = middle_of(packed(x).view({-1}), skips_none, values, places)) return reason;
  return give_composed(stack, 1, values.view(at::IntArrayRef{}));
}

/// median.dim_values(self, dim, keepdim, values, indices), nanmedian.dim_values
const char* median_of_lines(bool skips_none, const OperatorHandle&, Stack* stack) {
  constexpr size_t kArguments = 5;
  const at::Tensor given = tensor_at(*stack, kArguments, 0), x = given.dim() == 0 ? given.unsqueeze(0) : given;
  at::Tensor values = tensor_at(*stack, kArguments, 3), places = tensor_at(*stack, kArguments, 4);
  if (!on_device(x) || x.numel() == 0 || values.scalar_type() != x.scalar_type()) return kSizes;
  const int64_t dim = at::maybe_wrap_dim(value_at(*stack, kArguments, 1).toInt(), x.dim());
  const c10::DeviceGuard guard(x.device());
  at::Tensor found, order;
  if (const char* reason = middle_of(packed(x.movedim(dim, -1)), skips_none, found, order)) return reason;
  const bool keeps = value_at(*stack, kArguments, 2).toBool() && given.dim() != 0;
  for (auto [made, out] : {std::pair(&found, &values), std::pair(&order, &places)}) {
    *made = keeps ? made->movedim(-1, dim) : made->squeeze(-1);
    if (out->sizes() != made->sizes()) out->resize_(made->sizes());
    out->copy_(*made);
  }
  return give_composed(stack, kArguments, values, places);
}

}  // namespace

void add_ordering() {
  add_native("bucketize.Tensor", "composed", bucketize);
  add_native("searchsorted.Tensor", "composed", searchsorted);
  add_native("histc", "composed", histc);
  add_native("bincount", "composed", bincount);
  for (const bool skips_none : {false, true}) {
    const std::string name = skips_none ? "nanmedian" : "median";
    add_native(name, "composed", [=](const OperatorHandle& op, Stack* stack) { return median(skips_none, op, stack); });
    add_native(name + ".dim_values", "composed",
               [=](const OperatorHandle& op, Stack* stack) { return median_of_lines(skips_none, op, stack); });
  }
}

}  // namespace opkit::npu
