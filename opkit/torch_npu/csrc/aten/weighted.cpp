// Elements that are weighted sums of others along each dim by itself: interpolation, and means of windows of any size.
#include <ATen/EmptyTensor.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "aten/natives.h"
#include "aten/parts.h"

namespace opkit::npu {
namespace {

struct Tap {
  int64_t place = 0;
  float weight = 0;
};
/// What each element of a line is made of; the empty sum is 0.
using Taps = std::vector<std::vector<Tap>>;
/// By the dim, counted from the first of those that change.
using TapsOf = std::function<Taps(int64_t)>;

/// Each tap of a line is a launch or two.
constexpr size_t kMostTaps = 128;
constexpr const char* kTooManyTaps = "sums of so many elements";

size_t longest(const Taps& taps) {
  size_t most = 0;
  for (const auto& element : taps) most = std::max(most, element.size());
  return most;
}

/// The t-th tap of every element: places and weights on the device; where there is none, the weight is 0.
std::pair<at::Tensor, at::Tensor> row_of(const Taps& taps, size_t t, const at::Tensor& like) {
  const auto length = static_cast<int64_t>(taps.size());
  const at::Tensor places = at::detail::empty_cpu({length}, at::kLong);
  const at::Tensor weights = at::detail::empty_cpu({length}, at::kFloat);
  for (int64_t i = 0; i < length; ++i) {
    const bool is_there = t < taps[i].size();
    places.mutable_data_ptr<int64_t>()[i] = is_there ? taps[i][t].place : 0;
    weights.mutable_data_ptr<float>()[i] = is_there ? taps[i][t].weight : 0;
  }
  return {places.to(like.device()), weights.to(like.device())};
}

/// A tensor of one dim along the dim `d` of another, the same over the others.
at::Tensor along(const at::Tensor& line, const at::Tensor& x, int64_t d) {
  Sizes strides(x.dim(), 0);
  Sizes sizes(x.dim(), 1);
  strides[d] = 1;
  sizes[d] = line.size(0);
  return view_of(line, sizes, strides);
}

/// Sums along the dim `d`. What has the weight 0 is no summand: it may be infinite.
const char* sum_taps(const char* op, const Taps& taps, int64_t d, at::Tensor& x) {
  const size_t most = longest(taps);
  if (most > kMostTaps) return kTooManyTaps;
  Sizes sizes(x.sizes().begin(), x.sizes().end());
  sizes[d] = static_cast<int64_t>(taps.size());
  at::Tensor sum = at::zeros(sizes, x.options());
  for (size_t t = 0; t < most; ++t) {
    const auto [places, weights] = row_of(taps, t, x);
    const at::Tensor taken = at::index_select(x, d, places);
    const char* reason = run_formula(op, "select(w == 0, s, s + w * x)", sizes,
                                     {{"w", along(weights, taken, d)}, {"s", sum}, {"x", taken}}, {{"y", sum}}, {});
    if (reason != nullptr) return reason;
  }
  x = sum;
  return nullptr;
}

/// The gradient of sum_taps: each element's goes to its taps. `size`: of the dim before.
const char* share_taps(const char* op, const Taps& taps, int64_t d, int64_t size, at::Tensor& grad) {
  const size_t most = longest(taps);
  if (most > kMostTaps) return kTooManyTaps;
  Sizes sizes(grad.sizes().begin(), grad.sizes().end());
  sizes[d] = size;
  at::Tensor sum = at::zeros(sizes, grad.options());
  for (size_t t = 0; t < most; ++t) {
    const auto [places, weights] = row_of(taps, t, grad);
    const at::Tensor share = empty(grad.sizes(), at::kFloat);
    const char* reason = run_formula(op, "select(w == 0, 0, w * g)", grad.sizes(),
                                     {{"w", along(weights, grad, d)}, {"g", grad}}, {{"y", share}}, {});
    if (reason != nullptr) return reason;
    sum = at::index_add(sum, d, places, share);
  }
  grad = sum;
  return nullptr;
}

/// Both ways over the last `dims` dims, in float, rounded once; `sizes`: of those dims before, for a gradient.
const char* weigh(const char* op, const at::Tensor& given, int64_t dims, const TapsOf& taps,
                  std::optional<std::vector<int64_t>> sizes, at::Tensor& made) {
  if (!on_device(given) || !is_float_kind(given)) return kNoType;
  if (given.dim() < dims || given.dim() > 6) return kSizes;
  if (given.numel() == 0) {
    Sizes own(given.sizes().begin(), given.sizes().end());
    for (int64_t i = 0; i < dims; ++i) {
      own[given.dim() - dims + i] = sizes.has_value() ? (*sizes)[i] : static_cast<int64_t>(taps(i).size());
    }
    made = at::zeros(own, given.options());
    return nullptr;
  }
  made = packed(given.scalar_type() == at::kFloat ? given : given.to(at::kFloat));
  for (int64_t i = dims; i-- > 0;) {
    const int64_t d = given.dim() - dims + i;
    const char* reason =
        sizes.has_value() ? share_taps(op, taps(i), d, (*sizes)[i], made) : sum_taps(op, taps(i), d, made);
    if (reason != nullptr) return reason;
  }
  made = made.to(given.scalar_type());
  return nullptr;
}

// ---- interpolation

enum class Filter { linear, cubic };

struct Scaling {
  Filter filter = Filter::linear;
  bool is_smoothing = false;  ///< weighs all elements that one of a smaller result covers
  bool aligns_corners = false;
};

float scale_of(int64_t size, int64_t length, bool aligns_corners, std::optional<double> factor) {
  if (aligns_corners) return length > 1 ? static_cast<float>(size - 1) / static_cast<float>(length - 1) : 0;
  if (factor.has_value() && *factor > 0) return static_cast<float>(1.0 / *factor);
  return static_cast<float>(size) / static_cast<float>(length);
}

/// The cubic convolution kernel; `a` is its slope at 1.
float cubic(float x, float a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

std::vector<Tap> neighbours(Filter filter, float source, int64_t size) {
  if (filter == Filter::linear) {
    source = std::max(source, 0.0F);
    const int64_t first = std::min(static_cast<int64_t>(source), size - 1);
    const float share = std::min(std::max(source - static_cast<float>(first), 0.0F), 1.0F);
    return {{first, 1 - share}, {std::min(first + 1, size - 1), share}};
  }
  const float begin = std::floor(source), share = source - begin;
  std::vector<Tap> taps;
  for (int64_t k = -1; k <= 2; ++k) {
    const int64_t place = std::min(std::max<int64_t>(static_cast<int64_t>(begin) + k, 0), size - 1);
    taps.push_back({place, cubic(static_cast<float>(k) - share, -0.75F)});
  }
  return taps;
}

std::vector<Tap> covered(Filter filter, float scale, int64_t i, int64_t size) {
  const float reach = filter == Filter::linear ? 1 : 2, wide = std::max(scale, 1.0F);
  const float centre = scale * (static_cast<float>(i) + 0.5F), support = reach * wide;
  const int64_t first = std::max<int64_t>(static_cast<int64_t>(centre - support + 0.5F), 0);
  const int64_t last = std::min(static_cast<int64_t>(centre + support + 0.5F), size);
  std::vector<Tap> taps;
  float sum = 0;
  for (int64_t place = first; place < last; ++place) {
    const float x = (static_cast<float>(place) - centre + 0.5F) / wide;
    const float weight = filter == Filter::linear ? std::max(1 - std::fabs(x), 0.0F) : cubic(x, -0.5F);
    taps.push_back({place, weight});
    sum += weight;
  }
  for (Tap& tap : taps) tap.weight = sum == 0 ? tap.weight : tap.weight / sum;
  return taps;
}

Taps interpolated(const Scaling& scaling, int64_t size, int64_t length, std::optional<double> factor) {
  const float scale = scale_of(size, length, scaling.aligns_corners, factor);
  Taps taps(length);
  for (int64_t i = 0; i < length; ++i) {
    const auto at = static_cast<float>(i);
    const float source = scaling.aligns_corners ? scale * at : scale * (at + 0.5F) - 0.5F;
    taps[i] = scaling.is_smoothing ? covered(scaling.filter, scale, i, size) : neighbours(scaling.filter, source, size);
  }
  return taps;
}

/// upsample_bilinear2d.out(self, output_size, align_corners, scales_h, scales_w, out) and the like; of the gradient,
/// the sizes before stand behind output_size.
const char* upsample(const char* op, Scaling scaling, bool is_backward, int64_t dims, Stack* stack) {
  const size_t first = is_backward ? 3 : 2, count = first + 2 + dims;
  const at::Tensor given = tensor_at(*stack, count, 0), out = tensor_at(*stack, count, count - 1);
  const auto lengths = value_at(*stack, count, 1).toIntVector();
  if (!on_device(out) || out.scalar_type() != given.scalar_type() || given.dim() != dims + 2) return kLayout;
  const auto sizes = is_backward ? value_at(*stack, count, 2).toIntVector() : given.sizes().vec();
  scaling.aligns_corners = value_at(*stack, count, first).toBool();
  const std::vector<int64_t> before(sizes.begin() + 2, sizes.end());
  const TapsOf taps = [&](int64_t i) {
    const IValue& factor = value_at(*stack, count, first + 1 + i);
    return interpolated(scaling, before[i], lengths[i],
                        factor.isNone() ? std::nullopt : std::optional(factor.toDouble()));
  };
  const c10::DeviceGuard guard(out.device());
  at::Tensor made;
  const char* reason = weigh(op, given, dims, taps, is_backward ? std::optional(before) : std::nullopt, made);
  return reason != nullptr ? reason : give_into(stack, count, made, out);
}

// ---- means of windows

Taps adaptive(int64_t size, int64_t length) {
  Taps taps(length);
  for (int64_t i = 0; i < length; ++i) {
    const int64_t begin = i * size / length, end = ((i + 1) * size + length - 1) / length;
    for (int64_t place = begin; place < end; ++place)
      taps[i].push_back({place, 1.0F / static_cast<float>(end - begin)});
  }
  return taps;
}

/// _adaptive_avg_pool2d(self, output_size) and adaptive_avg_pool3d.out(self, output_size, out)
const char* adaptive_mean(const char* op, int64_t dims, size_t count, Stack* stack) {
  const at::Tensor x = tensor_at(*stack, count, 0);
  const auto lengths = value_at(*stack, count, 1).toIntVector();
  if (!on_device(x) || x.dim() < dims + 1 || x.dim() > dims + 2) return kLayout;
  const c10::DeviceGuard guard(x.device());
  at::Tensor made;
  const TapsOf taps = [&](int64_t i) { return adaptive(x.size(x.dim() - dims + i), lengths[i]); };
  if (const char* reason = weigh(op, x, dims, taps, std::nullopt, made)) return reason;
  if (count == 2) return give_composed(stack, count, made);
  const at::Tensor out = tensor_at(*stack, count, 2);
  return out.scalar_type() != x.scalar_type() ? kLayout : give_into(stack, count, made, out);
}

/// _adaptive_avg_pool2d_backward(grad_output, self)
const char* adaptive_mean_backward(const char* op, int64_t dims, Stack* stack) {
  const at::Tensor grad = tensor_at(*stack, 2, 0), x = tensor_at(*stack, 2, 1);
  if (!on_device(grad) || grad.dim() != x.dim() || x.dim() < dims + 1 || grad.scalar_type() != x.scalar_type()) {
    return kLayout;
  }
  const c10::DeviceGuard guard(grad.device());
  const int64_t first = x.dim() - dims;
  const TapsOf taps = [&](int64_t i) { return adaptive(x.size(first + i), grad.size(first + i)); };
  at::Tensor made;
  const std::vector<int64_t> before(x.sizes().begin() + first, x.sizes().end());
  const char* reason = weigh(op, grad, dims, taps, before, made);
  return reason != nullptr ? reason : give_composed(stack, 2, made);
}

int64_t each(const std::vector<int64_t>& values, int64_t i) { return values.size() == 1 ? values[0] : values[i]; }

/// avg_pool3d.out(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, out) and
/// avg_pool2d, and their gradients with grad_output before them.
const char* mean(const char* op, bool is_backward, int64_t dims, Stack* stack) {
  const size_t shift = is_backward ? 1 : 0, count = 8 + shift;
  const at::Tensor given = tensor_at(*stack, count, 0), x = tensor_at(*stack, count, shift);
  const at::Tensor out = tensor_at(*stack, count, count - 1);
  const auto kernel = value_at(*stack, count, shift + 1).toIntVector();
  auto stride = value_at(*stack, count, shift + 2).toIntVector();
  if (stride.empty()) stride = kernel;
  const auto padding = value_at(*stack, count, shift + 3).toIntVector();
  const bool counts_padding = value_at(*stack, count, shift + 5).toBool();
  const IValue& divisor = value_at(*stack, count, shift + 6);
  const at::Tensor& windows = is_backward ? given : out;
  if (!on_device(out) || out.scalar_type() != given.scalar_type() || x.dim() < dims + 1 || windows.dim() != x.dim()) {
    return kLayout;
  }
  const int64_t first = x.dim() - dims;
  const TapsOf taps = [&](int64_t i) {
    const int64_t size = x.size(first + i), pad = each(padding, i);
    Taps made(windows.size(first + i));
    for (int64_t place = 0; place < static_cast<int64_t>(made.size()); ++place) {
      const int64_t from = place * each(stride, i) - pad, to = std::min(from + each(kernel, i), size + pad);
      const int64_t begin = std::max<int64_t>(from, 0), end = std::min(to, size);
      // A divisor of the caller's is one for the whole window.
      const int64_t by = !divisor.isNone() ? (i == 0 ? divisor.toInt() : 1) : counts_padding ? to - from : end - begin;
      for (int64_t k = begin; k < end; ++k) made[place].push_back({k, 1.0F / static_cast<float>(by)});
    }
    return made;
  };
  const c10::DeviceGuard guard(out.device());
  at::Tensor made;
  const std::vector<int64_t> before(x.sizes().begin() + first, x.sizes().end());
  const char* reason = weigh(op, given, dims, taps, is_backward ? std::optional(before) : std::nullopt, made);
  return reason != nullptr ? reason : give_into(stack, count, made, out);
}

void add_behind(const std::string& op, Serve serve) {
  add_kernel({"aten::" + op, "composed", -1, "", std::nullopt, std::move(serve)});
}

}  // namespace

void add_weighted() {
  struct Row {
    const char* op;
    int64_t dims;
    Scaling scaling;
  };
  static const Row rows[] = {{"upsample_linear1d", 1, {}},
                             {"upsample_bilinear2d", 2, {}},
                             {"upsample_trilinear3d", 3, {}},
                             {"upsample_bicubic2d", 2, {Filter::cubic}},
                             {"_upsample_bilinear2d_aa", 2, {Filter::linear, true}},
                             {"_upsample_bicubic2d_aa", 2, {Filter::cubic, true}}};
  for (const Row& row : rows) {
    for (const bool is_backward : {false, true}) {
      add_native(std::string(row.op) + (is_backward ? "_backward.grad_input" : ".out"), "composed",
                 [&row, is_backward](const OperatorHandle&, Stack* stack) {
                   return upsample(row.op, row.scaling, is_backward, row.dims, stack);
                 });
    }
  }
  const auto serve_mean = [](bool is_backward, int64_t dims) {
    return [=](const OperatorHandle&, Stack* stack) { return mean("aten::avg_pool", is_backward, dims, stack); };
  };
  add_native("avg_pool3d.out", "composed", serve_mean(false, 3));
  add_native("avg_pool3d_backward.grad_input", "composed", serve_mean(true, 3));
  add_behind("avg_pool2d.out", serve_mean(false, 2));
  add_behind("avg_pool2d_backward.grad_input", serve_mean(true, 2));
  constexpr const char* kAdaptive = "aten::_adaptive_avg_pool";
  const auto serve_adaptive = [=](int64_t dims, size_t count) {
    return [=](const OperatorHandle&, Stack* stack) { return adaptive_mean(kAdaptive, dims, count, stack); };
  };
  const auto serve_adaptive_backward = [=](int64_t dims) {
    return [=](const OperatorHandle&, Stack* stack) { return adaptive_mean_backward(kAdaptive, dims, stack); };
  };
  add_behind("_adaptive_avg_pool2d", serve_adaptive(2, 2));
  add_behind("_adaptive_avg_pool2d_backward", serve_adaptive_backward(2));
  add_native("_adaptive_avg_pool3d", "composed", serve_adaptive(3, 2));
  add_native("adaptive_avg_pool3d.out", "composed", serve_adaptive(3, 3));
  add_native("_adaptive_avg_pool3d_backward", "composed", serve_adaptive_backward(3));
}

}  // namespace opkit::npu
