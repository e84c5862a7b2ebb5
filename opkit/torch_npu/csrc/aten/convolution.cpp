// Convolution and pooling over windows of one or two dims. A window's elements are moved side by side by the copy
// kernel, so a convolution is a product of matrices and a pooling a fold over windows.
#include <ATen/WrapDimUtils.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <cmath>

#include "aten/natives.h"
#include "aten/parts.h"

namespace opkit::npu {
namespace {

using kernels::ElementsPlan;
using kernels::Fold;

constexpr const char* kOp = "aten::convolution";

struct Pair {
  int64_t h, w;
};

/// One or two numbers of a call; a single one is the width's, or both's where `is_for_both`.
Pair pair_of(const std::vector<int64_t>& values, int64_t missing, bool is_for_both = false) {
  if (values.empty()) return {missing, missing};
  if (values.size() == 1) return {is_for_both ? values[0] : missing, values[0]};
  return {values[0], values[1]};
}

/// How windows lie over an image of (N, C, H, W).
struct Windows {
  Pair kernel, stride, pad, dilation, count;  ///< `count`: windows along each dim
};

int64_t count_of(int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation) {
  return (size + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
}

/// x in a frame of `value`: the part of (N, C, h, w) that windows touch. x lies `gap` apart in it.
const char* framed(const at::Tensor& x, Pair size, Pair begin, Pair gap, const at::Scalar& value, at::Tensor& out) {
  out = empty({x.size(0), x.size(1), size.h, size.w}, x.scalar_type());
  if (const char* reason = fill("aten::constant_pad_nd", out, value)) return reason;
  // What lies beyond the last window is left out.
  const int64_t h = std::min(x.size(2), (size.h - begin.h + gap.h - 1) / gap.h);
  const int64_t w = std::min(x.size(3), (size.w - begin.w + gap.w - 1) / gap.w);
  if (h <= 0 || w <= 0) return nullptr;
  return copy_or_reason(
      view_of(x, {x.size(0), x.size(1), h, w}, x.strides()),
      view_of(out, {x.size(0), x.size(1), h, w}, {out.stride(0), out.stride(1), out.stride(2) * gap.h, gap.w},
              begin.h * out.stride(2) + begin.w));
}

/// The image that windows are read from: x itself where none reaches over its edge.
const char* image_of(const at::Tensor& x, const Windows& at, const at::Scalar& value, at::Tensor& image) {
  const Pair size{(at.count.h - 1) * at.stride.h + at.dilation.h * (at.kernel.h - 1) + 1,
                  (at.count.w - 1) * at.stride.w + at.dilation.w * (at.kernel.w - 1) + 1};
  if (at.pad.h == 0 && at.pad.w == 0 && size.h <= x.size(2) && size.w <= x.size(3)) {
    image = x;
    return nullptr;
  }
  return framed(x, size, at.pad, {1, 1}, value, image);
}

/// Windows as columns: (N, C, kernel, windows), or (C, kernel, N, windows) where `is_by_channel`.
const char* columns_of(const at::Tensor& x, const Windows& at, bool is_by_channel, at::Tensor& columns) {
  const int64_t n = x.size(0), c = x.size(1);
  const auto& [kernel, stride, pad, dilation, count] = at;
  at::Tensor image;
  if (const char* reason = image_of(x, at, 0, image)) return reason;
  const int64_t sn = image.stride(0), sc = image.stride(1), sh = image.stride(2), sw = image.stride(3);
  if (!is_by_channel && kernel.h == 1 && kernel.w == 1 && stride.h == 1 && stride.w == 1 && image.is_contiguous()) {
    columns = as_shape(image, {n, c, count.h * count.w});
    return nullptr;
  }
  const Sizes sizes = is_by_channel ? Sizes{c, kernel.h, kernel.w, n, count.h, count.w}
                                    : Sizes{n, c, kernel.h, kernel.w, count.h, count.w};
  const Sizes strides = is_by_channel ? Sizes{sc, dilation.h * sh, dilation.w * sw, sn, stride.h * sh, stride.w * sw}
                                      : Sizes{sn, sc, dilation.h * sh, dilation.w * sw, stride.h * sh, stride.w * sw};
  const at::Tensor made = empty(sizes, x.scalar_type());
  if (const char* reason = copy_or_reason(view_of(image, sizes, strides), made)) return reason;
  const int64_t taps = kernel.h * kernel.w, places = count.h * count.w;
  columns = is_by_channel ? as_shape(made, {c * taps, n * places}) : as_shape(made, {n, c * taps, places});
  return nullptr;
}

/// out (N, O, windows) = weight (O, C / groups, kernel) over the windows of x, in the type of `out`.
const char* correlate(const at::Tensor& x, const at::Tensor& weight, const Windows& at, int64_t groups,
                      const at::Tensor& out) {
  at::Tensor columns;
  if (const char* reason = columns_of(x, at, false, columns)) return reason;
  const int64_t n = x.size(0), rows = weight.size(0) / groups, taps = product_of(weight.sizes(), 1);
  const int64_t places = columns.size(2);
  if (groups == 1) return multiply(kOp, as_shape(weight, {1, rows, taps}), columns, as_shape(out, {n, rows, places}));
  for (int64_t i = 0; i < n; ++i) {
    const at::Tensor own = view_of(columns, {groups, taps, places}, {taps * places, places, 1}, i * columns.stride(0));
    const at::Tensor to = view_of(out, {groups, rows, places}, {rows * places, places, 1}, i * groups * rows * places);
    if (const char* reason = multiply(kOp, as_shape(weight, {groups, rows, taps}), own, to)) return reason;
  }
  return nullptr;
}

/// A convolution as its operator names it, seen with two dims.
struct Call {
  at::Tensor x, weight;
  Pair stride, pad, dilation, output_pad;
  bool is_transposed = false;
  int64_t groups = 1;
  bool has_one_dim = false;
};

at::Tensor with_height(const at::Tensor& t) { return as_shape(packed(t), {t.size(0), t.size(1), 1, t.size(2)}); }

const char* read_call(const Stack& stack, size_t arguments, size_t x_at, size_t stride_at, Call& call) {
  const at::Tensor x = tensor_at(stack, arguments, x_at), weight = tensor_at(stack, arguments, x_at + 1);
  if (!on_device(x) || !on_device(weight) || !is_float_kind(x) || x.scalar_type() != weight.scalar_type())
    return kNoType;
  if (x.device() != weight.device()) return "tensors of several devices";
  if (x.dim() != weight.dim() || (x.dim() != 3 && x.dim() != 4)) return "windows of another number of dims";
  if (x.numel() == 0 || weight.numel() == 0) return "an empty tensor";
  call.has_one_dim = x.dim() == 3;
  call.x = call.has_one_dim ? with_height(x) : packed(x);
  call.weight = call.has_one_dim ? with_height(weight) : packed(weight);
  const auto pair_at = [&](size_t i, int64_t missing) {
    return pair_of(value_at(stack, arguments, stride_at + i).toIntVector(), missing, !call.has_one_dim);
  };
  call.stride = pair_at(0, 1);
  call.pad = pair_at(1, 0);
  call.dilation = pair_at(2, 1);
  call.is_transposed = value_at(stack, arguments, stride_at + 3).toBool();
  call.output_pad = pair_at(4, 0);
  call.groups = value_at(stack, arguments, stride_at + 5).toInt();
  return nullptr;
}

Windows windows_of(const Call& call, int64_t h, int64_t w) {
  const Pair kernel{call.weight.size(2), call.weight.size(3)};
  return {kernel,
          call.stride,
          call.pad,
          call.dilation,
          {count_of(h, kernel.h, call.stride.h, call.pad.h, call.dilation.h),
           count_of(w, kernel.w, call.stride.w, call.pad.w, call.dilation.w)}};
}

/// The weight (O, C / groups, h, w) turned by half and with its channels changed: (C, O / groups, h, w).
const char* turned(const at::Tensor& weight, int64_t groups, at::Tensor& out) {
  const int64_t o = weight.size(0) / groups, c = weight.size(1), h = weight.size(2), w = weight.size(3);
  out = empty({groups * c, o, h, w}, weight.scalar_type());
  const int64_t so = weight.stride(0), sc = weight.stride(1), sh = weight.stride(2);
  return move_by_index(kOp, ElementsPlan::kGather, weight, (h - 1) * sh + (w - 1), {groups, c, o, h, w},
                       {o * so, sc, so, -sh, -1}, out, {c * o * h * w, o * h * w, h * w, w, 1}, {});
}

/// What a convolution with `weight` would have been applied to: g spread over `out` (N, C, h, w).
const char* spread(const at::Tensor& g, const at::Tensor& weight, const Call& call, const at::Tensor& out) {
  const Pair kernel{weight.size(2), weight.size(3)};
  const Pair begin{call.dilation.h * (kernel.h - 1) - call.pad.h, call.dilation.w * (kernel.w - 1) - call.pad.w};
  if (begin.h < 0 || begin.w < 0) return "padding that is wider than the kernel";
  at::Tensor flipped, image;
  if (const char* reason = turned(weight, call.groups, flipped)) return reason;
  const Pair count{out.size(2), out.size(3)};
  const Pair size{count.h + call.dilation.h * (kernel.h - 1), count.w + call.dilation.w * (kernel.w - 1)};
  if (size.h == g.size(2) && size.w == g.size(3) && begin.h == 0 && begin.w == 0) {
    image = g;
  } else if (const char* reason = framed(g, size, begin, call.stride, 0, image)) {
    return reason;
  }
  const Windows at{kernel, {1, 1}, {0, 0}, call.dilation, count};
  return correlate(image, flipped, at, call.groups, out);
}

/// The gradient of a weight (O, C / groups, h, w) that was applied to x and gave g.
const char* weight_gradient(const at::Tensor& x, const at::Tensor& g, const Windows& at, int64_t groups,
                            const at::Tensor& out) {
  at::Tensor columns;
  if (const char* reason = columns_of(x, at, true, columns)) return reason;
  const int64_t n = g.size(0), o = g.size(1), places = g.size(2) * g.size(3);
  const at::Tensor rows = empty({o, n, places}, g.scalar_type());
  if (const char* reason = copy_or_reason(view_of(g, {o, n, places}, {g.stride(1), g.stride(0), 1}), rows)) {
    return reason;
  }
  const int64_t taps = columns.size(0) / groups, length = n * places;
  return multiply(kOp, as_shape(rows, {groups, o / groups, length}),
                  view_of(columns, {groups, length, taps}, {taps * length, 1, length}),
                  as_shape(out, {groups, o / groups, taps}));
}

/// max_pool2d_with_indices and avg_pool2d: (N, C, H, W) or (C, H, W), and how their windows lie.
struct Pool {
  at::Tensor x;
  Windows at;
  int64_t planes = 0;
};

const char* read_pool(const at::Tensor& given, const IValue& kernel, const IValue& stride, const IValue& pad,
                      Pair dilation, Pair count, Pool& pool) {
  if (!on_device(given) || !is_float_kind(given) || given.numel() == 0 || given.dim() < 3) return kLayout;
  const at::Tensor x = packed(given);
  pool.planes = product_of(x.sizes()) / (x.size(-1) * x.size(-2));
  pool.x = as_shape(x, {1, pool.planes, x.size(-2), x.size(-1)});
  const Pair size = pair_of(kernel.toIntVector(), 1, true);
  const auto steps = stride.toIntVector();
  pool.at = {size, steps.empty() ? size : pair_of(steps, 1, true), pair_of(pad.toIntVector(), 0, true), dilation,
             count};
  return pool.planes * x.size(-1) * x.size(-2) > 1 << 24 ? "more places than floats tell apart" : nullptr;
}

/// The elements that tap (i, j) of every window reads, side by side.
const char* tap_of(const at::Tensor& image, const Windows& at, int64_t i, int64_t j, at::Tensor& tap) {
  const Sizes sizes{image.size(1), at.count.h, at.count.w};
  const at::Tensor seen = view_of(image, sizes, {image.stride(1), at.stride.h * image.stride(2), at.stride.w},
                                  i * at.dilation.h * image.stride(2) + j * at.dilation.w);
  if (at.stride.w == 1) {
    tap = seen;
    return nullptr;
  }
  tap = empty(sizes, image.scalar_type());
  return copy_or_reason(seen, tap);
}

/// max_pool2d_with_indices.out(self, kernel_size, stride, padding, dilation, ceil_mode, out, indices)
const char* max_pool(const OperatorHandle&, Stack* stack) {
  constexpr size_t kArguments = 8;
  const char* op = "aten::max_pool2d_with_indices";
  const at::Tensor out = tensor_at(*stack, kArguments, 6), places = tensor_at(*stack, kArguments, 7);
  if (!out.is_contiguous() || !places.is_contiguous() || out.numel() == 0) return kLayout;
  const c10::DeviceGuard guard(out.device());
  Pool pool;
  if (const char* reason =
          read_pool(tensor_at(*stack, kArguments, 0), value_at(*stack, kArguments, 1), value_at(*stack, kArguments, 2),
                    value_at(*stack, kArguments, 3), pair_of(value_at(*stack, kArguments, 4).toIntVector(), 1, true),
                    {out.size(-2), out.size(-1)}, pool)) {
    return reason;
  }
  const auto& at = pool.at;
  at::Tensor image;
  if (const char* reason = image_of(pool.x, at, -INFINITY, image)) return reason;
  const Sizes sizes{pool.planes, at.count.h, at.count.w};
  const at::Tensor best = as_shape(out, sizes);
  const at::Tensor place = empty(sizes, at::kFloat), row = empty({at.count.h, 1}, at::kFloat);
  if (const char* reason = run_formula(op, "lane + 0", {at.count.h}, {}, {{"y", as_shape(row, {at.count.h})}}, {})) {
    return reason;
  }
  const auto width = static_cast<double>(pool.x.size(3));
  for (int64_t i = 0; i < at.kernel.h; ++i) {
    for (int64_t j = 0; j < at.kernel.w; ++j) {
      at::Tensor tap;
      if (const char* reason = tap_of(image, at, i, j, tap)) return reason;
      const double first =
          static_cast<double>(i * at.dilation.h - at.pad.h) * width + static_cast<double>(j * at.dilation.w - at.pad.w);
      const std::pair<const char*, double> numbers[] = {{"down", static_cast<double>(at.stride.h) * width},
                                                        {"right", static_cast<double>(at.stride.w)},
                                                        {"first", first}};
      const bool is_first = i == 0 && j == 0;
      // The first tap that lies in the image begins: what frames it is below all, and its place would be none.
      const char* reason = is_first
                               ? run_formula(op, "best = x; place = r * down + lane * right + first", sizes,
                                             {{"x", tap}, {"r", row}}, {{"best", best}, {"place", place}}, numbers)
                               : run_formula(op,
                                             "here = r * down + lane * right + first; is_more = or(x > b, x != x); "
                                             "best = select(is_more, x, b); "
                                             "place = select(is_more, here, p)",
                                             sizes, {{"x", tap}, {"r", row}, {"b", best}, {"p", place}},
                                             {{"best", best}, {"place", place}}, numbers);
      if (reason != nullptr) return reason;
    }
  }
  if (const char* reason = copy_or_reason(place, as_shape(places, sizes))) return reason;
  return give(stack, kArguments, out, places);
}

/// max_pool2d_with_indices_backward.grad_input(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode,
/// indices, grad_input)
const char* max_pool_backward(const OperatorHandle&, Stack* stack) {
  constexpr size_t kArguments = 9;
  const char* op = "aten::max_pool2d_with_indices_backward";
  const at::Tensor g = packed(tensor_at(*stack, kArguments, 0)), places = packed(tensor_at(*stack, kArguments, 7));
  const at::Tensor out = tensor_at(*stack, kArguments, 8);
  if (!on_device(g) || !on_device(places) || !is_float_kind(g) || g.numel() == 0 || !out.is_contiguous() ||
      places.sizes() != g.sizes()) {
    return kLayout;
  }
  const c10::DeviceGuard guard(g.device());
  const int64_t area = out.size(-1) * out.size(-2), planes = out.numel() / area, windows = g.numel() / planes;
  const auto* values = static_cast<const int64_t*>(places.data_ptr());
  if (!std::all_of(values, values + places.numel(), [&](int64_t value) { return value >= 0 && value < area; })) {
    return "an index outside of the tensor";
  }
  const at::Tensor sum = out.scalar_type() == at::kFloat ? out : empty(out.sizes(), at::kFloat);
  at::Tensor wide = g;
  if (g.scalar_type() != at::kFloat) {
    wide = empty(g.sizes(), at::kFloat);
    if (const char* reason = copy_or_reason(g, wide)) return reason;
  }
  if (const char* reason = fill(op, sum, 0)) return reason;
  const Pick pick{places, {windows, 1}, area, 1};
  if (const char* reason =
          move_by_index(op, ElementsPlan::kAdd, sum, 0, {planes, windows}, {area, 0}, wide, {windows, 1}, pick)) {
    return reason;
  }
  const char* reason = sum.is_same(out) ? nullptr : copy_or_reason(sum, out);
  return reason != nullptr ? reason : give(stack, kArguments, out);
}

/// Means of windows: every window has as many elements as its kernel, or `divisor` says what they are divided by.
const char* mean_of_windows(const char* op, const Pool& pool, double divisor, const at::Tensor& out) {
  const auto& at = pool.at;
  at::Tensor image;
  if (const char* reason = image_of(pool.x, at, 0, image)) return reason;
  const Sizes sizes{pool.planes, at.count.h, at.count.w};
  const at::Tensor sum = empty(sizes, at::kFloat);
  for (int64_t tap_at = 0; tap_at < at.kernel.h * at.kernel.w; ++tap_at) {
    at::Tensor tap;
    if (const char* reason = tap_of(image, at, tap_at / at.kernel.w, tap_at % at.kernel.w, tap)) return reason;
    const char* reason = tap_at == 0 ? run_formula(op, "x + 0", sizes, {{"x", tap}}, {{"y", sum}}, {})
                                     : run_formula(op, "s + x", sizes, {{"s", sum}, {"x", tap}}, {{"y", sum}}, {});
    if (reason != nullptr) return reason;
  }
  return run_formula(op, "s * scale", sizes, {{"s", sum}}, {{"y", as_shape(out, sizes)}}, {{"scale", 1 / divisor}});
}

/// The gradient of mean_of_windows where windows do not overlap: each element of a window has the same share.
const char* share_of_windows(const char* op, const at::Tensor& g, const Pool& pool, double divisor,
                             const at::Tensor& out) {
  const auto& at = pool.at;
  if (at.stride.h < at.kernel.h || at.stride.w < at.kernel.w || at.pad.h != 0 || at.pad.w != 0 ||
      (at.count.h - 1) * at.stride.h + at.kernel.h > out.size(-2) ||
      (at.count.w - 1) * at.stride.w + at.kernel.w > out.size(-1)) {
    return "windows that overlap, or reach over the edge";
  }
  const Sizes sizes{pool.planes, at.count.h, at.count.w};
  const at::Tensor share = empty(sizes, out.scalar_type());
  if (const char* reason = run_formula(op, "g * scale", sizes, {{"g", as_shape(packed(g), sizes)}}, {{"y", share}},
                                       {{"scale", 1 / divisor}})) {
    return reason;
  }
  if (const char* reason = fill(op, out, 0)) return reason;
  const int64_t width = out.size(-1), area = out.size(-2) * width;
  for (int64_t i = 0; i < at.kernel.h; ++i) {
    for (int64_t j = 0; j < at.kernel.w; ++j) {
      if (const char* reason =
              copy_or_reason(share, view_of(out, sizes, {area, at.stride.h * width, at.stride.w}, i * width + j))) {
        return reason;
      }
    }
  }
  return nullptr;
}

bool counts_all(const Pool& pool, const IValue& counts_padding) {
  const auto& at = pool.at;
  // A window that reaches beyond the padding has fewer elements.
  const bool reaches_over = (at.count.h - 1) * at.stride.h + at.kernel.h > pool.x.size(2) + 2 * at.pad.h ||
                            (at.count.w - 1) * at.stride.w + at.kernel.w > pool.x.size(3) + 2 * at.pad.w;
  return !reaches_over && ((at.pad.h == 0 && at.pad.w == 0) || counts_padding.toBool());
}

/// avg_pool2d.out(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, out), and its
/// backward with grad_output before them
const char* mean_pool(bool is_backward, Stack* stack) {
  const size_t shift = is_backward ? 1 : 0, arguments = 8 + shift;
  const char* op = is_backward ? "aten::avg_pool2d_backward" : "aten::avg_pool2d";
  const at::Tensor out = tensor_at(*stack, arguments, arguments - 1), g = tensor_at(*stack, arguments, 0);
  if (!out.is_contiguous() || out.numel() == 0) return kLayout;
  const c10::DeviceGuard guard(out.device());
  const at::Tensor& windows = is_backward ? g : out;
  Pool pool;
  if (const char* reason = read_pool(tensor_at(*stack, arguments, shift), value_at(*stack, arguments, shift + 1),
                                     value_at(*stack, arguments, shift + 2), value_at(*stack, arguments, shift + 3),
                                     {1, 1}, {windows.size(-2), windows.size(-1)}, pool)) {
    return reason;
  }
  const IValue& divisor = value_at(*stack, arguments, shift + 6);
  if (divisor.isNone() && !counts_all(pool, value_at(*stack, arguments, shift + 5))) return "windows of several sizes";
  const auto by = static_cast<double>(divisor.isNone() ? pool.at.kernel.h * pool.at.kernel.w : divisor.toInt());
  const char* reason = is_backward ? share_of_windows(op, g, pool, by, out) : mean_of_windows(op, pool, by, out);
  return reason != nullptr ? reason : give(stack, arguments, out);
}

/// _adaptive_avg_pool2d(self, output_size) and _adaptive_avg_pool2d_backward(grad_output, self), where windows are
/// equal
const char* adaptive_mean_pool(bool is_backward, Stack* stack) {
  const char* op = is_backward ? "aten::_adaptive_avg_pool2d_backward" : "aten::_adaptive_avg_pool2d";
  const at::Tensor x = tensor_at(*stack, 2, is_backward ? 1 : 0);
  if (!on_device(x) || x.dim() < 3) return kLayout;
  Pair count{};
  if (is_backward) {
    count = {tensor_at(*stack, 2, 0).size(-2), tensor_at(*stack, 2, 0).size(-1)};
  } else {
    count = pair_of(value_at(*stack, 2, 1).toIntVector(), 1, true);
  }
  if (count.h <= 0 || count.w <= 0 || x.size(-2) % count.h != 0 || x.size(-1) % count.w != 0) {
    return "windows of several sizes";
  }
  const c10::DeviceGuard guard(x.device());
  const std::vector<int64_t> size{x.size(-2) / count.h, x.size(-1) / count.w};
  Pool pool;
  if (const char* reason = read_pool(x, size, size, std::vector<int64_t>{0}, {1, 1}, count, pool)) return reason;
  Sizes sizes(x.sizes().begin(), x.sizes().end());
  if (!is_backward) sizes[x.dim() - 2] = count.h, sizes[x.dim() - 1] = count.w;
  at::Tensor out = empty(sizes, x.scalar_type());
  const auto by = static_cast<double>(size[0] * size[1]);
  const char* reason =
      is_backward ? share_of_windows(op, tensor_at(*stack, 2, 0), pool, by, out) : mean_of_windows(op, pool, by, out);
  return reason != nullptr ? reason : give(stack, 2, out);
}

}  // namespace

/// convolution_overrideable(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
const char* convolve(torch::jit::Stack* stack) {
  if (!has_kernels()) return "the device's kernels are still being compiled";
  constexpr size_t kArguments = 9;
  Call call;
  if (const char* reason = read_call(*stack, kArguments, 0, 3, call)) return reason;
  const at::Tensor bias = optional_at(*stack, kArguments, 2);
  if (bias.defined() && (!on_device(bias) || !is_float_kind(bias))) return kNoType;
  const c10::DeviceGuard guard(call.x.device());
  const int64_t n = call.x.size(0), h = call.x.size(2), w = call.x.size(3);
  Windows at = windows_of(call, h, w);
  const int64_t channels = call.is_transposed ? call.weight.size(1) * call.groups : call.weight.size(0);
  if (call.is_transposed) {
    const auto full = [](int64_t size, int64_t stride, int64_t pad, int64_t dilation, int64_t kernel, int64_t more) {
      return (size - 1) * stride - 2 * pad + dilation * (kernel - 1) + more + 1;
    };
    at.count = {full(h, call.stride.h, call.pad.h, call.dilation.h, at.kernel.h, call.output_pad.h),
                full(w, call.stride.w, call.pad.w, call.dilation.w, at.kernel.w, call.output_pad.w)};
  }
  if (at.count.h <= 0 || at.count.w <= 0) return "windows that are larger than the image";
  Sizes sizes{n, channels, at.count.h, at.count.w};
  at::Tensor out = empty(sizes, call.x.scalar_type());
  // With a bias the product stays in float until it is added.
  const at::Tensor made = bias.defined() ? empty(sizes, at::kFloat) : out;
  const char* reason = call.is_transposed ? spread(call.x, call.weight, call, made)
                                          : correlate(call.x, call.weight, at, call.groups, made);
  if (reason == nullptr && bias.defined()) {
    const int64_t places = at.count.h * at.count.w;
    reason = run_formula(
        kOp, "x + b", {n, channels, places},
        {{"x", as_shape(made, {n, channels, places})}, {"b", view_of(packed(bias), {1, channels, 1}, {0, 1, 0})}},
        {{"y", as_shape(out, {n, channels, places})}}, {});
  }
  if (reason != nullptr) return reason;
  if (call.has_one_dim) out = as_shape(out, {n, channels, at.count.w});
  return give(stack, kArguments, out);
}

/// convolution_backward_overrideable(grad_output, input, weight, stride, padding, dilation, transposed, output_padding,
/// groups, output_mask)
const char* convolve_backward(torch::jit::Stack* stack) {
  if (!has_kernels()) return "the device's kernels are still being compiled";
  constexpr size_t kArguments = 10;
  Call call;
  if (const char* reason = read_call(*stack, kArguments, 1, 3, call)) return reason;
  const at::Tensor given = tensor_at(*stack, kArguments, 0);
  if (!on_device(given) || given.scalar_type() != call.x.scalar_type()) return kNoType;
  const at::Tensor g = call.has_one_dim ? with_height(given) : packed(given);
  const auto mask = value_at(*stack, kArguments, 9).toBoolList();
  const c10::DeviceGuard guard(g.device());
  at::Tensor dx, dw, db;
  const auto shaped = [&](const at::Tensor& like) {
    const at::Tensor& original = tensor_at(*stack, kArguments, &like == &call.x ? 1 : 2);
    return empty(original.sizes(), original.scalar_type());
  };
  const auto seen = [&](const at::Tensor& made, const at::Tensor& like) { return as_shape(made, like.sizes()); };
  // The weight was applied to x, or, where it is transposed, x was spread with it: then the two change places.
  const at::Tensor& image = call.is_transposed ? g : call.x;
  const at::Tensor& result = call.is_transposed ? call.x : g;
  Windows at = windows_of(call, image.size(2), image.size(3));
  at.count = {result.size(2), result.size(3)};
  if (mask[0]) {
    dx = shaped(call.x);
    const at::Tensor to = seen(dx, call.x);
    if (const char* reason =
            call.is_transposed ? correlate(g, call.weight, at, call.groups, to) : spread(g, call.weight, call, to)) {
      return reason;
    }
  }
  if (mask[1]) {
    dw = shaped(call.weight);
    if (const char* reason = weight_gradient(image, result, at, call.groups, seen(dw, call.weight))) return reason;
  }
  if (mask[2]) {
    const int64_t channels = g.size(1);
    db = empty({channels}, g.scalar_type());
    if (const char* reason = reduce(kOp, "fold(x) + 0", g, as_shape(db, {1, channels, 1, 1}), 0b1101, Fold::Sum)) {
      return reason;
    }
  }
  return give(stack, kArguments, dx, dw, db);
}

void add_convolution() {
  add_native("max_pool2d_with_indices.out", "vector_program", max_pool);
  add_native("max_pool2d_with_indices_backward.grad_input", "move_by_index", max_pool_backward);
  for (const bool is_backward : {false, true}) {
    add_native(is_backward ? "avg_pool2d_backward.grad_input" : "avg_pool2d.out", "vector_program",
               [=](const OperatorHandle&, Stack* stack) { return mean_pool(is_backward, stack); });
    add_native(is_backward ? "_adaptive_avg_pool2d_backward" : "_adaptive_avg_pool2d", "vector_program",
               [=](const OperatorHandle&, Stack* stack) { return adaptive_mean_pool(is_backward, stack); });
  }
}

}  // namespace opkit::npu
