// Values of a picture or a volume between its elements, at places that a tensor names: grid_sample.
#include <ATen/TensorOperators.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/DeviceGuard.h>

#include <cmath>

#include "aten/natives.h"
#include "aten/parts.h"

namespace opkit::npu {
namespace {

enum class Mode : int64_t { Linear, Nearest, Cubic };
enum class Padding : int64_t { Zeros, Border, Reflection };

constexpr int64_t kMostElements = 1 << 24;  ///< places are counted in floats

/// One neighbour along one dim, of every sampled place; tensors of (batch, places).
struct AxisTap {
  at::Tensor place;   ///< a whole number, in a float
  at::Tensor weight;  ///< undefined: 1
  at::Tensor slope;   ///< of the weight by the coordinate; undefined where it has none
};

/// One dim of what is sampled.
struct Axis {
  int64_t size;
  at::Tensor slope;  ///< of the coordinate by what the grid says
  std::vector<AxisTap> taps;
};

struct Sampling {
  Mode mode;
  Padding padding;
  bool aligns;

  /// Coordinates folded back and forth between the ends, and which of them run against the grid.
  at::Tensor reflected(const at::Tensor& at, int64_t size, at::Tensor* slope) const {
    const double low = aligns ? 0.0 : -0.5, span = aligns ? static_cast<double>(size - 1) : static_cast<double>(size);
    if (span == 0) {
      if (slope != nullptr) slope->zero_();
      return at * 0;
    }
    const at::Tensor from = at - low, beyond = from.abs();
    const at::Tensor rest = beyond.fmod(span), is_odd = beyond.div(span).floor().remainder(2).eq(1);
    if (slope != nullptr) *slope = *slope * at::where(from.lt(0).logical_xor(is_odd), -1.0, 1.0);
    return at::where(is_odd, rest.neg().add(span), rest) + low;
  }

  /// Coordinates as the padding has them; `slope` goes to 0 where the border holds them.
  at::Tensor padded(at::Tensor at, int64_t size, at::Tensor* slope) const {
    if (padding == Padding::Zeros) return at;
    if (padding == Padding::Reflection) at = reflected(at, size, slope);
    const double last = static_cast<double>(size - 1);
    if (slope != nullptr) *slope = *slope * at.gt(0).logical_and(at.lt(last));
    return at.clamp(0, last);
  }

  Axis axis(const at::Tensor& grid, int64_t size) const {
    const double factor = 0.5 * static_cast<double>(aligns ? size - 1 : size);
    at::Tensor at = aligns ? (grid + 1) * factor : (grid + 1) * factor - 0.5;
    Axis found{size, at::zeros_like(at).fill_(factor), {}};
    if (mode != Mode::Cubic) at = padded(at, size, &found.slope);
    if (mode == Mode::Nearest) {
      found.taps.push_back({at.round(), {}, {}});
      return found;
    }
    const at::Tensor begin = at.floor(), share = at - begin;
    if (mode == Mode::Linear) {
      found.taps.push_back({begin, begin + 1 - at, at::zeros_like(at).fill_(-1)});
      found.taps.push_back({begin + 1, share, at::zeros_like(at).fill_(1)});
      return found;
    }
    for (int64_t i = -1; i < 3; ++i) {
      // Cubic convolution with a = -0.75, by the distance from the neighbour.
      const double a = -0.75, side = i < 1 ? 1 : -1;
      const at::Tensor d = i < 1 ? share - i : share.neg() + i;
      const bool is_next = i == 0 || i == 1;
      const at::Tensor weight =
          is_next ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
      const at::Tensor slope = is_next ? (3 * (a + 2) * d - 2 * (a + 3)) * d : (3 * a * d - 10 * a) * d + 8 * a;
      found.taps.push_back({padded(begin + i, size, nullptr).round(), weight, slope * side});
    }
    return found;
  }
};

at::Tensor times(const at::Tensor& a, const at::Tensor& b) { return !a.defined() ? b : b.defined() ? a * b : a; }

/// One neighbour along all dims.
struct Neighbour {
  at::Tensor places;  ///< of its element, (batch, 1, places)
  at::Tensor is_inside;
  at::Tensor weight;                       ///< 0 outside
  c10::SmallVector<at::Tensor, 3> slopes;  ///< of the weight by each coordinate
};

Neighbour neighbour(c10::ArrayRef<Axis> axes, c10::ArrayRef<size_t> chosen) {
  at::Tensor places, is_inside;
  for (size_t d = 0; d < axes.size(); ++d) {
    const at::Tensor& place = axes[d].taps[chosen[d]].place;
    const double last = static_cast<double>(axes[d].size - 1);
    const at::Tensor inside = place.ge(0).logical_and(place.le(last));
    is_inside = d == 0 ? inside : is_inside.logical_and(inside);
    // What is no number is outside, too.
    const at::Tensor held = at::where(inside, place, 0.0);
    places = d == 0 ? held : places * static_cast<double>(axes[d].size) + held;
  }
  Neighbour found;
  found.places = places.to(at::kLong).unsqueeze(1);
  found.is_inside = is_inside.unsqueeze(1);
  // A product: what has a weight that is no number is none, as on the CPU.
  const at::Tensor within = is_inside.to(at::kFloat);
  at::Tensor weight;
  for (size_t d = 0; d < axes.size(); ++d) {
    weight = times(weight, axes[d].taps[chosen[d]].weight);
    at::Tensor slope = axes[d].taps[chosen[d]].slope;
    if (!slope.defined()) continue;
    for (size_t other = 0; other < axes.size(); ++other) {
      if (other != d) slope = times(slope, axes[other].taps[chosen[other]].weight);
    }
    found.slopes.push_back((slope * within).unsqueeze(1));
  }
  found.weight = times(weight, within).unsqueeze(1);
  return found;
}

/// Every choice of one neighbour for each dim.
template <typename Work>
void for_neighbours(c10::ArrayRef<Axis> axes, const Work& work) {
  c10::SmallVector<size_t, 3> chosen(axes.size(), 0);
  for (size_t d = 0; d < axes.size();) {
    work(neighbour(axes, chosen));
    for (d = 0; d < axes.size() && ++chosen[d] == axes[d].taps.size(); ++d) chosen[d] = 0;
  }
}

/// The sampled dims of a call, outermost first; none where PyTorch refuses it, or the chip has no such type.
std::vector<Axis> axes_of(const at::Tensor& x, const at::Tensor& grid, const Sampling& sampling, const char** reason) {
  const int64_t dims = x.dim() - 2;
  *reason = kSizes;
  if (grid.dim() != x.dim() || grid.size(-1) != dims || grid.size(0) != x.size(0) || dims < 2) return {};
  if (x.numel() == 0 || grid.numel() == 0 || x.numel() >= kMostElements) return {};
  *reason = kNoType;
  if (!on_device(x) || !on_device(grid) || !is_float_kind(x) || x.scalar_type() != grid.scalar_type()) return {};
  *reason = "cubic sampling of a volume";
  if (sampling.mode == Mode::Cubic && dims != 2) return {};
  *reason = nullptr;
  const at::Tensor wide = grid.to(at::kFloat).reshape({grid.size(0), -1, dims});
  std::vector<Axis> axes;
  for (int64_t d = 0; d < dims; ++d) {
    axes.push_back(sampling.axis(wide.select(2, dims - 1 - d).contiguous(), x.size(d + 2)));
  }
  return axes;
}

Sampling sampling_at(const Stack& stack, size_t count, size_t i) {
  return {static_cast<Mode>(value_at(stack, count, i).toInt()),
          static_cast<Padding>(value_at(stack, count, i + 1).toInt()), value_at(stack, count, i + 2).toBool()};
}

/// grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners); the same of 3d
const char* sample(const OperatorHandle&, Stack* stack) {
  const at::Tensor x = tensor_at(*stack, 5, 0), grid = tensor_at(*stack, 5, 1);
  const c10::DeviceGuard guard(grid.device());
  const char* reason = nullptr;
  const std::vector<Axis> axes = axes_of(x, grid, sampling_at(*stack, 5, 2), &reason);
  if (reason != nullptr) return reason;
  const at::Tensor table = x.to(at::kFloat).flatten(2);
  const int64_t places = grid.numel() / grid.size(0) / grid.size(-1);
  at::Tensor made = at::zeros({x.size(0), x.size(1), places}, table.options());
  for_neighbours(axes, [&](const Neighbour& each) {
    const at::Tensor taken = at::gather(table, 2, each.places.expand(made.sizes()));
    made = made.addcmul(taken, each.weight);
  });
  std::vector<int64_t> sizes = grid.sizes().slice(0, grid.dim() - 1).vec();
  sizes.insert(sizes.begin() + 1, x.size(1));
  return give_composed(stack, 5, made.to(x.scalar_type()).reshape(sizes));
}

/// grid_sampler_2d_backward(grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask)
const char* sample_backward(const OperatorHandle&, Stack* stack) {
  const at::Tensor g = tensor_at(*stack, 7, 0), x = tensor_at(*stack, 7, 1), grid = tensor_at(*stack, 7, 2);
  const c10::DeviceGuard guard(grid.device());
  const char* reason = nullptr;
  const std::vector<Axis> axes = axes_of(x, grid, sampling_at(*stack, 7, 3), &reason);
  if (reason != nullptr) return reason;
  const auto mask = value_at(*stack, 7, 6).toBoolList();
  const at::Tensor table = x.to(at::kFloat).flatten(2), given = g.to(at::kFloat).flatten(2);
  at::Tensor dx = at::zeros(table.sizes(), table.options());
  std::vector<at::Tensor> slopes(axes.size());
  for_neighbours(axes, [&](const Neighbour& each) {
    const at::Tensor places = each.places.expand(given.sizes());
    if (mask[0]) dx.scatter_add_(2, places, at::where(each.is_inside, given * each.weight, 0.0));
    if (!mask[1] || each.slopes.empty()) return;
    const at::Tensor moved = (given * at::gather(table, 2, places)).sum(1, true);
    for (size_t d = 0; d < axes.size(); ++d) {
      const at::Tensor part = moved * each.slopes[d];
      slopes[d] = slopes[d].defined() ? slopes[d] + part : part;
    }
  });
  std::vector<at::Tensor> columns;
  for (size_t d = axes.size(); d-- > 0;) {
    columns.push_back(slopes[d].defined() ? slopes[d].squeeze(1) * axes[d].slope : at::zeros_like(axes[d].slope));
  }
  const at::Tensor dgrid = at::stack(columns, -1).reshape(grid.sizes()).to(grid.scalar_type());
  return give_composed(stack, 7, mask[0] ? dx.to(x.scalar_type()).reshape(x.sizes()) : at::Tensor(), dgrid);
}

}  // namespace

void add_sampling() {
  for (const char* op : {"grid_sampler_2d", "grid_sampler_3d"}) {
    add_native(op, "composed", sample);
    add_native(std::string(op) + "_backward", "composed", sample_backward);
  }
}

}  // namespace opkit::npu
