// Windows beside each other (im2col) and back, and what pooling has taken put where it was.
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>

#include "aten/natives.h"
#include "aten/parts.h"

namespace opkit::npu {
namespace {

struct Patches {
  std::vector<int64_t> kernel, dilation, padding, stride;
  int64_t windows[2] = {0, 0};

  /// Whether there are windows over an image of that size.
  bool fits(const int64_t (&size)[2]) {
    if (kernel.size() != 2 || dilation.size() != 2 || padding.size() != 2 || stride.size() != 2) return false;
    for (int i = 0; i < 2; ++i) {
      if (kernel[i] < 1 || dilation[i] < 1 || padding[i] < 0 || stride[i] < 1) return false;
      const int64_t room = size[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1;
      if (room < 0) return false;
      windows[i] = room / stride[i] + 1;
    }
    return true;
  }

  /// The elements (N, C, windows, windows) of a packed image with its padding that stand at (i, j) of their windows.
  at::Tensor elements(const at::Tensor& image, int64_t i, int64_t j) const {
    const int64_t h = image.size(2), w = image.size(3);
    return view_of(image, {image.size(0), image.size(1), windows[0], windows[1]},
                   {image.size(1) * h * w, h * w, stride[0] * w, stride[1]}, i * dilation[0] * w + j * dilation[1]);
  }
};

Patches patches_at(const Stack& stack, size_t count, size_t first) {
  Patches patches;
  patches.kernel = value_at(stack, count, first).toIntVector();
  patches.dilation = value_at(stack, count, first + 1).toIntVector();
  patches.padding = value_at(stack, count, first + 2).toIntVector();
  patches.stride = value_at(stack, count, first + 3).toIntVector();
  return patches;
}

/// im2col(self, kernel_size, dilation, padding, stride)
const char* im2col(const OperatorHandle&, Stack* stack) {
  const at::Tensor x = tensor_at(*stack, 5, 0);
  Patches patches = patches_at(*stack, 5, 1);
  if (!on_device(x) || !kind_of(x.scalar_type())) return kNoType;
  if ((x.dim() != 3 && x.dim() != 4) || x.size(-3) == 0 || !patches.fits({x.size(-2), x.size(-1)})) return kSizes;
  const c10::DeviceGuard guard(x.device());
  const at::Tensor images = x.dim() == 4 ? x : x.unsqueeze(0);
  const int64_t up = patches.padding[0], left = patches.padding[1];
  if (x.numel() == 0 && images.size(0) != 0) return kSizes;
  const at::Tensor padded =
      packed(up == 0 && left == 0 ? images : at::constant_pad_nd(images, {left, left, up, up}, at::Scalar(0)));
  const int64_t n = images.size(0), c = images.size(1), kh = patches.kernel[0], kw = patches.kernel[1];
  const at::Tensor made = empty({n, c, kh, kw, patches.windows[0], patches.windows[1]}, x.scalar_type());
  for (int64_t i = 0; i < kh && n > 0; ++i) {
    for (int64_t j = 0; j < kw; ++j) made.select(2, i).select(2, j).copy_(patches.elements(padded, i, j));
  }
  const at::Tensor rows = made.view({n, c * kh * kw, patches.windows[0] * patches.windows[1]});
  return give_composed(stack, 5, x.dim() == 4 ? rows : rows.squeeze(0));
}

/// col2im(self, output_size, kernel_size, dilation, padding, stride)
const char* col2im(const OperatorHandle&, Stack* stack) {
  const at::Tensor x = tensor_at(*stack, 6, 0);
  const auto size = value_at(*stack, 6, 1).toIntVector();
  Patches patches = patches_at(*stack, 6, 2);
  if (!on_device(x) || !is_float_kind(x)) return kNoType;
  if (x.numel() == 0 || (x.dim() != 2 && x.dim() != 3) || size.size() != 2 || !patches.fits({size[0], size[1]})) {
    return kSizes;
  }
  const int64_t kh = patches.kernel[0], kw = patches.kernel[1];
  if (x.size(-2) % (kh * kw) != 0 || x.size(-1) != patches.windows[0] * patches.windows[1]) return kSizes;
  const c10::DeviceGuard guard(x.device());
  const int64_t n = x.dim() == 3 ? x.size(0) : 1, c = x.size(-2) / (kh * kw);
  // Sums of half types are rounded once.
  const at::Tensor rows = packed(x).to(at::kFloat).view({n, c, kh, kw, patches.windows[0], patches.windows[1]});
  const int64_t up = patches.padding[0], left = patches.padding[1];
  const at::Tensor image = at::zeros({n, c, size[0] + 2 * up, size[1] + 2 * left}, rows.options());
  for (int64_t i = 0; i < kh; ++i) {
    for (int64_t j = 0; j < kw; ++j) patches.elements(image, i, j).add_(rows.select(2, i).select(2, j));
  }
  at::Tensor made = image.narrow(2, up, size[0]).narrow(3, left, size[1]).to(x.scalar_type()).contiguous();
  return give_composed(stack, 6, x.dim() == 3 ? made : made.squeeze(0));
}

/// max_unpool2d(self, indices, output_size) and max_unpool3d(self, indices, output_size, stride, padding)
const char* unpool(size_t dims, const OperatorHandle& op, Stack* stack) {
  const size_t count = op.schema().arguments().size();
  const at::Tensor x = tensor_at(*stack, count, 0), places = tensor_at(*stack, count, 1);
  const auto size = value_at(*stack, count, 2).toIntVector();
  const auto rank = static_cast<size_t>(x.dim());
  if (!on_device(x) || !on_device(places) || !kind_of(x.scalar_type()) || places.scalar_type() != at::kLong) {
    return kNoType;
  }
  if (x.numel() == 0 || places.sizes() != x.sizes() || size.size() != dims || rank < dims + 1 || rank > dims + 2) {
    return kSizes;
  }
  const c10::DeviceGuard guard(x.device());
  const int64_t outer = product_of(x.sizes().slice(0, rank - dims)), length = product_of(size);
  const at::Tensor lines = at::zeros({outer, length}, x.options());
  std::vector<int64_t> sizes(x.sizes().begin(), x.sizes().end() - dims);
  sizes.insert(sizes.end(), size.begin(), size.end());
  const at::Tensor made = at::scatter(lines, 1, packed(places).view({outer, -1}), packed(x).view({outer, -1}));
  return give_composed(stack, count, made.view(sizes));
}

}  // namespace

void add_folding() {
  add_native("im2col", "composed", im2col);
  add_native("col2im", "composed", col2im);
  for (const size_t dims : {2, 3}) {
    add_native("max_unpool" + std::to_string(dims) + "d", "composed",
               [=](const OperatorHandle& op, Stack* stack) { return unpool(dims, op, stack); });
  }
}

}  // namespace opkit::npu
