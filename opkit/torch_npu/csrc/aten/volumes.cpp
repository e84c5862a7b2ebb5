// Convolution over three dims: the sum over the windows' depth of convolutions over two.
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>

#include "aten/natives.h"
#include "aten/parts.h"

namespace opkit::npu {
namespace {

/// A call with its first of three dims, the depth, apart from the others.
struct Volume {
  at::Tensor x, weight;
  std::vector<int64_t> stride, padding, dilation, flat_stride, flat_padding, flat_dilation;
  int64_t groups = 1, depth = 0;

  /// The planes (N * depth, C, H, W) that the k-th plane of each window meets, of an image with its padding.
  at::Tensor planes(const at::Tensor& padded, int64_t k) const {
    const at::Tensor met = padded.narrow(2, k * dilation[0], (depth - 1) * stride[0] + 1);
    return packed(met.slice(2, 0, std::nullopt, stride[0]).transpose(1, 2)).flatten(0, 1);
  }
  at::Tensor padded() const {
    const int64_t pad = padding[0];
    return pad == 0 ? x : at::Tensor(at::constant_pad_nd(x, {0, 0, 0, 0, pad, pad}, at::Scalar(0)));
  }
};

const char* read_volume(const Stack& stack, size_t count, size_t first, Volume& call) {
  call.x = tensor_at(stack, count, first), call.weight = tensor_at(stack, count, first + 1);
  const at::Tensor &x = call.x, &weight = call.weight;
  if (!on_device(x) || !on_device(weight) || !is_float_kind(x) || x.scalar_type() != weight.scalar_type())
    return kNoType;
  if (x.dim() != 5 || weight.dim() != 5 || x.numel() == 0 || weight.numel() == 0) return kSizes;
  if (value_at(stack, count, 6).toBool()) return "a transposed convolution over three dims";
  call.stride = value_at(stack, count, 3).toIntVector();
  call.padding = value_at(stack, count, 4).toIntVector();
  call.dilation = value_at(stack, count, 5).toIntVector();
  call.groups = value_at(stack, count, 8).toInt();
  if (call.stride.size() != 3 || call.padding.size() != 3 || call.dilation.size() != 3) return kSizes;
  const int64_t room = x.size(2) + 2 * call.padding[0] - call.dilation[0] * (weight.size(2) - 1) - 1;
  if (room < 0) return "windows that are larger than the image";
  call.depth = room / call.stride[0] + 1;
  const auto rest = [](const std::vector<int64_t>& v) { return std::vector<int64_t>(v.begin() + 1, v.end()); };
  call.flat_stride = rest(call.stride), call.flat_padding = rest(call.padding),
  call.flat_dilation = rest(call.dilation);
  return nullptr;
}

at::Tensor plane_of(const at::Tensor& weight, int64_t k) { return packed(weight.select(2, k)).to(at::kFloat); }

}  // namespace

/// convolution_overrideable(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
const char* convolve_volume(Stack* stack) {
  constexpr size_t kArguments = 9;
  Volume call;
  if (const char* reason = read_volume(*stack, kArguments, 0, call)) return reason;
  const at::Tensor bias = optional_at(*stack, kArguments, 2);
  if (bias.defined() && (!on_device(bias) || bias.scalar_type() != call.x.scalar_type())) return kNoType;
  const c10::DeviceGuard guard(call.x.device());
  // Half types are rounded once.
  const at::Tensor padded = call.padded().to(at::kFloat);
  at::Tensor sum;
  for (int64_t k = 0; k < call.weight.size(2); ++k) {
    const std::optional<at::Tensor> added =
        k == 0 && bias.defined() ? std::optional(bias.to(at::kFloat)) : std::optional<at::Tensor>();
    const at::Tensor part = at::convolution(call.planes(padded, k), plane_of(call.weight, k), added, call.flat_stride,
                                            call.flat_padding, call.flat_dilation, false, {0, 0}, call.groups);
    sum = k == 0 ? part : sum.add_(part);
  }
  const at::Tensor made = sum.unflatten(0, {call.x.size(0), call.depth}).transpose(1, 2);
  return give_composed(stack, kArguments, packed(made.to(call.x.scalar_type())));
}

/// convolution_backward_overrideable(grad_output, input, weight, stride, padding, dilation, transposed, output_padding,
/// groups, output_mask)
const char* convolve_volume_backward(Stack* stack) {
  constexpr size_t kArguments = 10;
  const at::Tensor given = tensor_at(*stack, kArguments, 0);
  // Behind grad_output the places of the other arguments are those of the convolution, but for the bias.
  Volume call;
  const at::Tensor x = tensor_at(*stack, kArguments, 1), weight = tensor_at(*stack, kArguments, 2);
  if (const char* reason = read_volume(*stack, kArguments, 1, call)) return reason;
  if (!on_device(given) || given.scalar_type() != x.scalar_type() || given.dim() != 5 || given.numel() == 0)
    return kSizes;
  const auto mask = value_at(*stack, kArguments, 9).toBoolList();
  const c10::DeviceGuard guard(x.device());
  const at::Tensor wide = given.to(at::kFloat), padded = call.padded().to(at::kFloat);
  const at::Tensor grad = packed(wide.transpose(1, 2)).flatten(0, 1);
  at::Tensor dx, dw, db;
  const at::Tensor spread = mask[0] ? at::zeros(padded.sizes(), padded.options()) : at::Tensor();
  const at::Tensor by_weight = mask[1] ? at::zeros(weight.sizes(), wide.options()) : at::Tensor();
  for (int64_t k = 0; k < weight.size(2); ++k) {
    const auto [by_planes, by_plane, none] = at::convolution_backward(
        grad, call.planes(padded, k), plane_of(weight, k), at::OptionalIntArrayRef(), call.flat_stride,
        call.flat_padding, call.flat_dilation, false, {0, 0}, call.groups, {mask[0], mask[1], false});
    if (mask[0]) {
      const at::Tensor met = spread.narrow(2, k * call.dilation[0], (call.depth - 1) * call.stride[0] + 1);
      met.slice(2, 0, std::nullopt, call.stride[0])
          .add_(by_planes.unflatten(0, {x.size(0), call.depth}).transpose(1, 2));
    }
    if (mask[1]) by_weight.select(2, k).copy_(by_plane);
  }
  if (mask[0]) dx = packed(spread.narrow(2, call.padding[0], x.size(2)).to(x.scalar_type()));
  if (mask[1]) dw = by_weight.to(x.scalar_type());
  if (mask[2]) db = at::sum(wide, at::IntArrayRef{0, 2, 3, 4}).to(x.scalar_type());
  return give_composed(stack, kArguments, dx, dw, db);
}

}  // namespace opkit::npu
