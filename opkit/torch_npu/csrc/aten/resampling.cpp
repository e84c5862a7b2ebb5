// Lines whose elements come from other places: paddings that reflect or repeat, and the nearest neighbours.
#include <ATen/EmptyTensor.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "aten/natives.h"
#include "aten/parts.h"

namespace opkit::npu {
namespace {

/// The place in its line that an element of the result comes from, of each; none where PyTorch refuses.
using Line = std::optional<std::vector<int64_t>>;
/// By the dim, counted from the last, and its size before.
using Lines = std::function<Line(int64_t, int64_t)>;

at::Tensor on_device_of(const at::Tensor& like, const std::vector<int64_t>& line) {
  const at::Tensor host = at::detail::empty_cpu({static_cast<int64_t>(line.size())}, at::kLong);
  std::copy(line.begin(), line.end(), host.mutable_data_ptr<int64_t>());
  return host.to(like.device());
}

/// How many neighbours of the result each element gives, where it is the same number for all; else 0.
int64_t copies_of(const std::vector<int64_t>& line, int64_t size) {
  const auto length = static_cast<int64_t>(line.size());
  if (length % size != 0) return 0;
  const int64_t copies = length / size;
  for (int64_t i = 0; i < length; ++i) {
    if (line[i] != i / copies) return 0;
  }
  return copies;
}

const char* take_lines(const at::Tensor& x, int64_t dims, const Lines& lines, at::Tensor& made) {
  made = x;
  for (int64_t i = 0; i < dims; ++i) {
    const int64_t d = x.dim() - 1 - i;
    const Line line = lines(i, x.size(d));
    if (!line.has_value()) return kSizes;
    if (copies_of(*line, x.size(d)) != 1) made = at::index_select(made, d, on_device_of(x, *line));
  }
  return nullptr;
}

/// Each element's gradient is the sum of those that came from it.
const char* add_lines_up(at::Tensor grad, at::IntArrayRef sizes, int64_t dims, const Lines& lines, at::Tensor& made) {
  if (is_half_kind(grad)) grad = grad.to(at::kFloat);
  for (int64_t i = 0; i < dims; ++i) {
    const int64_t d = grad.dim() - 1 - i;
    const Line line = lines(i, sizes[d]);
    if (!line.has_value() || static_cast<int64_t>(line->size()) != grad.size(d)) return kSizes;
    const int64_t copies = copies_of(*line, sizes[d]);
    if (copies == 1) continue;
    if (copies > 1) {
      grad = at::sum(grad.unflatten(d, {sizes[d], copies}), d + 1);
      continue;
    }
    std::vector<int64_t> own = grad.sizes().vec();
    own[d] = sizes[d];
    grad = at::index_add(at::zeros(own, grad.options()), d, on_device_of(grad, *line), grad);
  }
  made = grad;
  return nullptr;
}

// ---- paddings

Line padded(int64_t size, int64_t before, int64_t behind, bool reflects) {
  const int64_t length = size + before + behind;
  if (length < 1 || (reflects && (before >= size || behind >= size))) return std::nullopt;
  std::vector<int64_t> line(length);
  for (int64_t i = 0; i < length; ++i) {
    int64_t from = i - before;
    if (reflects) {
      from = from < 0 ? -from : from;
      from = from >= size ? 2 * (size - 1) - from : from;
    }
    line[i] = std::min(std::max<int64_t>(from, 0), size - 1);
  }
  return line;
}

Lines padded_by(const std::vector<int64_t>& padding, bool reflects) {
  return [=](int64_t i, int64_t size) { return padded(size, padding[2 * i], padding[2 * i + 1], reflects); };
}

/// reflection_pad1d.out(self, padding, out) and the like; the last argument may be missing.
const char* pad(bool reflects, const OperatorHandle& op, Stack* stack) {
  const size_t count = op.schema().arguments().size();
  const at::Tensor x = tensor_at(*stack, count, 0);
  const auto padding = value_at(*stack, count, 1).toIntVector();
  const auto dims = static_cast<int64_t>(padding.size() / 2);
  if (!on_device(x) || !kind_of(x.scalar_type())) return kNoType;
  if (x.numel() == 0 || x.dim() < dims + 1 || x.dim() > dims + 2) return kSizes;
  const c10::DeviceGuard guard(x.device());
  at::Tensor made;
  if (const char* reason = take_lines(x, dims, padded_by(padding, reflects), made)) return reason;
  if (count == 2) return give_composed(stack, count, made.is_same(x) ? made.clone() : made);
  const at::Tensor out = tensor_at(*stack, count, 2);
  return out.scalar_type() != x.scalar_type() ? kLayout : give_into(stack, count, made, out);
}

/// reflection_pad1d_backward.grad_input(grad_output, self, padding, grad_input) and the like
const char* pad_backward(bool reflects, const OperatorHandle& op, Stack* stack) {
  const size_t count = op.schema().arguments().size();
  const at::Tensor grad = tensor_at(*stack, count, 0), x = tensor_at(*stack, count, 1);
  const auto padding = value_at(*stack, count, 2).toIntVector();
  const auto dims = static_cast<int64_t>(padding.size() / 2);
  if (!on_device(x) || !on_device(grad) || !is_float_kind(x)) return kNoType;
  if (x.numel() == 0 || grad.dim() != x.dim() || x.dim() < dims + 1) return kSizes;
  const c10::DeviceGuard guard(x.device());
  at::Tensor made;
  if (const char* reason = add_lines_up(grad, x.sizes(), dims, padded_by(padding, reflects), made)) return reason;
  if (count == 3) {
    made = made.to(x.scalar_type());
    return give_composed(stack, count, made.is_same(grad) ? made.clone() : made);
  }
  return give_into(stack, count, made, tensor_at(*stack, count, 3));
}

// ---- nearest neighbours

/// As the CPU picks them: in float, with whole factors of 1 and 2 by themselves; `is_exact`: by the elements' middles.
Line nearest(int64_t size, int64_t length, std::optional<double> factor, bool is_exact) {
  if (size < 1 || length < 1) return std::nullopt;
  const float scale = factor.has_value() && *factor > 0 ? static_cast<float>(1.0 / *factor)
                                                        : static_cast<float>(size) / static_cast<float>(length);
  std::vector<int64_t> line(length);
  for (int64_t i = 0; i < length; ++i) {
    const float at =
        is_exact ? static_cast<float>((static_cast<double>(i) + 0.5) * scale) : static_cast<float>(i) * scale;
    line[i] = std::min(static_cast<int64_t>(std::floor(at)), size - 1);
    if (!is_exact && length == size) line[i] = i;
    if (!is_exact && length == 2 * size) line[i] = i / 2;
  }
  return line;
}

/// upsample_nearest2d.out(self, output_size, scales_h, scales_w, out) and the like; of the gradient, the sizes before
/// stand behind output_size.
const char* upsample_nearest(bool is_exact, bool is_backward, int64_t dims, Stack* stack) {
  const size_t factors = is_backward ? 3 : 2, count = factors + dims + 1;
  const at::Tensor x = tensor_at(*stack, count, 0), out = tensor_at(*stack, count, count - 1);
  const auto lengths = value_at(*stack, count, 1).toIntVector();
  if (!on_device(x) || !on_device(out) || !kind_of(x.scalar_type())) return kNoType;
  if (x.numel() == 0 || x.dim() != dims + 2 || out.scalar_type() != x.scalar_type()) return kLayout;
  if (is_backward && !is_float_kind(x)) return kNoType;
  const c10::DeviceGuard guard(x.device());
  const Lines lines = [&](int64_t i, int64_t size) {
    const IValue& factor = value_at(*stack, count, factors + dims - 1 - i);
    return nearest(size, lengths[dims - 1 - i], factor.isNone() ? std::nullopt : std::optional(factor.toDouble()),
                   is_exact);
  };
  at::Tensor made;
  const char* reason = is_backward ? add_lines_up(x, value_at(*stack, count, 2).toIntVector(), dims, lines, made)
                                   : take_lines(x, dims, lines, made);
  return reason != nullptr ? reason : give_into(stack, count, made, out);
}

}  // namespace

void add_resampling() {
  const auto add_padding = [](const std::string& op, bool reflects) {
    add_native(op, "composed", [=](const OperatorHandle& of, Stack* stack) { return pad(reflects, of, stack); });
  };
  const auto add_gradient = [](const std::string& op, bool reflects) {
    add_native(op, "composed",
               [=](const OperatorHandle& of, Stack* stack) { return pad_backward(reflects, of, stack); });
  };
  for (const int64_t dims : {1, 2, 3}) {
    const std::string name = std::to_string(dims) + "d";
    for (const bool reflects : {true, false}) {
      const std::string op = (reflects ? "reflection_pad" : "replication_pad") + name;
      add_padding(op + ".out", reflects);
      add_gradient(op + "_backward.grad_input", reflects);
    }
    for (const bool is_exact : {true, false}) {
      const std::string op = (is_exact ? "_upsample_nearest_exact" : "upsample_nearest") + name;
      for (const bool is_backward : {true, false}) {
        add_native(
            op + (is_backward ? "_backward.grad_input" : ".out"), "composed",
            [=](const OperatorHandle&, Stack* stack) { return upsample_nearest(is_exact, is_backward, dims, stack); });
      }
    }
  }
  add_padding("reflection_pad2d", true);
  add_gradient("reflection_pad2d_backward", true);
  add_gradient("replication_pad2d_backward", false);
  add_gradient("replication_pad3d_backward", false);
}

}  // namespace opkit::npu
