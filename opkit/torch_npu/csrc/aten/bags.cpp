// Sums, means and maxima of rows of a table, bag by bag, and their gradients.
#include <ATen/ops/any.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/div.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/scatter_add.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>

#include "aten/natives.h"
#include "aten/parts.h"

namespace opkit::npu {
namespace {

constexpr int64_t kSum = 0, kMean = 1, kMax = 2;

/// Which bag each of `count` numbers is in: how many bags begin at it or before.
at::Tensor bags_of(const at::Tensor& offsets, int64_t count) {
  // Empty bags may begin behind the last number.
  const at::Tensor begins = at::index_add(at::zeros({count + 1}, offsets.options()), 0, offsets,
                                          at::ones({offsets.numel()}, offsets.options()));
  return at::sub(at::cumsum(begins.narrow(0, 0, count), 0), 1);
}

/// Rows of padding count for nothing, whatever is in them.
at::Tensor without_padding(const at::Tensor& rows, const at::Tensor& numbers, int64_t padding) {
  return padding < 0 ? rows : at::where(at::ne(numbers, padding).unsqueeze(1), rows, at::Scalar(0));
}

at::Tensor widened(const at::Tensor& x) { return is_half_kind(x) ? x.to(at::kFloat) : x; }

/// A mean's divisor: an empty bag stays 0.
at::Tensor divided(const at::Tensor& sums, const at::Tensor& sizes) {
  return at::div(sums, at::clamp_min(sizes, 1).to(sums.scalar_type()).unsqueeze(1));
}

struct Largest {
  at::Tensor values, numbers;  ///< of each bag and column: what is largest, and its row in the table
};

/// In rising order, the last row that is put to its bag stays; of equal ones that is the first in the bag.
Largest largest_of(const at::Tensor& rows, const at::Tensor& numbers, const at::Tensor& bag, int64_t bags) {
  const auto [values, order] = at::sort(at::flip(rows, 0), true, 0, false);
  const auto ordered = [&](const at::Tensor& line) {
    return at::gather(at::flip(line, 0).unsqueeze(1).expand(rows.sizes()), 0, order);
  };
  const at::Tensor places = ordered(bag);
  const auto put = [&](const at::Tensor& given) {
    return at::scatter(at::zeros({bags, rows.size(1)}, given.options()), 0, places, given);
  };
  return {put(values), put(ordered(numbers))};
}

/// _embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
/// include_last_offset, padding_idx) -> (bags, the bag of each number, the bags' sizes, the rows of maxima)
const char* embedding_bag(const OperatorHandle&, Stack* stack) {
  constexpr size_t kArguments = 9;
  const at::Tensor weight = tensor_at(*stack, kArguments, 0), factors = optional_at(*stack, kArguments, 6);
  at::Tensor numbers = tensor_at(*stack, kArguments, 1), offsets = tensor_at(*stack, kArguments, 2);
  const int64_t mode = value_at(*stack, kArguments, 4).toInt(), padding = value_at(*stack, kArguments, 8).toInt();
  // The CPU reads the first offset without asking whether there is one.
  TORCH_CHECK(numbers.numel() == 0 || offsets.numel() != 0 || offsets.dim() != 1, "embedding_bag: ", numbers.numel(),
              " indices are in no bag: offsets is empty, expected one offset at least, 0");
  if (mode == kMax && padding >= 0) return "the largest of each bag, but for padding";
  if (!on_device(weight) || !on_device(numbers) || !on_device(offsets) || !is_float_kind(weight) ||
      weight.dim() != 2 || weight.numel() == 0 || numbers.dim() != 1 || offsets.dim() != 1 || numbers.numel() == 0 ||
      offsets.numel() == 0 || (factors.defined() && (!on_device(factors) || mode != kSum)) ||
      at::isFloatingType(numbers.scalar_type()) || at::isFloatingType(offsets.scalar_type())) {
    return kLayout;
  }
  if (factors.defined() && (factors.sizes() != numbers.sizes() || factors.scalar_type() != weight.scalar_type())) {
    return kLayout;
  }
  if (numbers.numel() > kWholeLimit) return kTooManyWhole;
  const int64_t bags = offsets.numel() - (value_at(*stack, kArguments, 7).toBool() ? 1 : 0);
  if (bags < 1) return "no bag";
  const c10::DeviceGuard guard(weight.device());
  const at::ScalarType type = c10::promoteTypes(numbers.scalar_type(), offsets.scalar_type());
  numbers = packed(numbers).to(at::kLong);
  offsets = offsets.narrow(0, 0, bags).contiguous().to(at::kLong);
  const at::Tensor ends = at::stack({offsets.select(0, 0), offsets.select(0, bags - 1)}).cpu();
  if (ends.const_data_ptr<int64_t>()[0] != 0 || ends.const_data_ptr<int64_t>()[1] > numbers.numel()) {
    return "bags that begin elsewhere";
  }
  const at::Tensor bag = bags_of(offsets, numbers.numel());
  at::Tensor rows = widened(at::embedding(weight, numbers));
  if (factors.defined()) rows = at::mul(rows, widened(factors).unsqueeze(1));
  rows = without_padding(rows, numbers, padding);
  at::Tensor largest = at::zeros({bags}, numbers.options());
  if (mode == kMax && at::any(at::isnan(rows)).item<bool>()) return "the largest of what has no order";
  at::Tensor out;
  if (mode == kMax) {
    const Largest found = largest_of(rows, numbers, bag, bags);
    out = found.values, largest = found.numbers;
  } else {
    out = at::index_add(at::zeros({bags, weight.size(1)}, rows.options()), 0, bag, rows);
  }
  at::Tensor sizes = at::zeros({bags}, numbers.options());
  if (mode != kSum) {
    const at::Tensor one = padding < 0 ? at::ones({numbers.numel()}, numbers.options())
                                       : at::ne(numbers, padding).to(at::kLong);
    sizes = at::index_add(sizes, 0, bag, one);
  }
  if (mode == kMean) out = divided(out, sizes);
  return give_composed(stack, kArguments, out.to(weight.scalar_type()), bag.to(type), sizes.to(type),
                       largest.to(type));
}

/// _embedding_bag_backward(grad, indices, offsets, offset2bag, bag_size, maximum_indices, num_weights,
/// scale_grad_by_freq, mode, sparse, per_sample_weights, padding_idx)
const char* embedding_bag_backward(const OperatorHandle&, Stack* stack) {
  constexpr size_t kArguments = 12;
  const at::Tensor grad = tensor_at(*stack, kArguments, 0), numbers = tensor_at(*stack, kArguments, 1);
  const at::Tensor bag = tensor_at(*stack, kArguments, 3), sizes = tensor_at(*stack, kArguments, 4);
  const at::Tensor factors = optional_at(*stack, kArguments, 10);
  const int64_t rows = value_at(*stack, kArguments, 6).toInt(), mode = value_at(*stack, kArguments, 8).toInt();
  if (value_at(*stack, kArguments, 7).toBool()) return "gradients scaled by frequency";
  if (value_at(*stack, kArguments, 9).toBool()) return "sparse gradients";
  if (!on_device(grad) || !on_device(numbers) || !on_device(bag) || !is_float_kind(grad) ||
      bag.numel() != numbers.numel() || numbers.numel() == 0 || (factors.defined() && !on_device(factors))) {
    return kLayout;
  }
  const c10::DeviceGuard guard(grad.device());
  at::Tensor each = widened(grad);
  if (mode == kMax) {
    // An empty bag's largest is no row.
    each = at::where(at::gt(sizes, 0).unsqueeze(1), each, at::Scalar(0));
    const at::Tensor places = tensor_at(*stack, kArguments, 5).to(at::kLong);
    const at::Tensor sums = at::scatter_add(at::zeros({rows, each.size(1)}, each.options()), 0, places, each);
    return give_composed(stack, kArguments, sums.to(grad.scalar_type()));
  }
  if (mode == kMean) each = divided(each, sizes);
  each = at::index_select(each, 0, bag);
  if (factors.defined()) each = at::mul(each, widened(factors).unsqueeze(1));
  const int64_t padding = value_at(*stack, kArguments, 11).toInt();
  const at::Tensor made = at::embedding_dense_backward(each, numbers, rows, padding, false);
  return give_composed(stack, kArguments, made.to(grad.scalar_type()));
}

/// _embedding_bag_per_sample_weights_backward(grad, weight, indices, offsets, offset2bag, mode, padding_idx)
const char* factors_backward(const OperatorHandle&, Stack* stack) {
  const at::Tensor grad = tensor_at(*stack, 7, 0), weight = tensor_at(*stack, 7, 1);
  const at::Tensor numbers = tensor_at(*stack, 7, 2), bag = tensor_at(*stack, 7, 4);
  if (value_at(*stack, 7, 5).toInt() != kSum) return "factors of something else than sums";
  if (!on_device(grad) || !on_device(weight) || !on_device(numbers) || !on_device(bag) || !is_float_kind(grad) ||
      bag.numel() != numbers.numel() || numbers.numel() == 0 || weight.scalar_type() != grad.scalar_type()) {
    return kLayout;
  }
  const c10::DeviceGuard guard(grad.device());
  const at::Tensor products =
      at::mul(widened(at::index_select(grad, 0, bag)), widened(at::embedding(weight, numbers)));
  const at::Tensor made = at::sum(without_padding(products, numbers, value_at(*stack, 7, 6).toInt()), 1);
  return give_composed(stack, 7, made.to(grad.scalar_type()));
}

}  // namespace

void add_bags() {
  add_native("_embedding_bag", "composed", embedding_bag);
  add_native("_embedding_bag_forward_only", "composed", embedding_bag);
  add_native("_embedding_bag_backward", "composed", embedding_bag_backward);
  add_native("_embedding_bag_per_sample_weights_backward", "composed", factors_backward);
}

}  // namespace opkit::npu
