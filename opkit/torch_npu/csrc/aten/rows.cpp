// Rows of tables by number, and tensors one behind the other.

#include <c10/core/DeviceGuard.h>

#include <algorithm>

#include "aten/natives.h"
#include "aten/parts.h"

namespace opkit::npu {

namespace {

/// Whether all numbers are rows of the table: an error at the call, as on the CPU, instead of a fault in the kernel.
bool are_rows(const at::Tensor& numbers, int64_t rows, bool takes_negative) {
  const auto check = [&](const auto* values) {
    for (int64_t i = 0; i < numbers.numel(); ++i) {
      if (values[i] >= rows || values[i] < (takes_negative ? -rows : 0)) return false;
    }
    return true;
  };
  return numbers.scalar_type() == at::kLong ? check(static_cast<const int64_t*>(numbers.data_ptr()))
                                            : check(static_cast<const int32_t*>(numbers.data_ptr()));
}

const char* gather(const char* op, const at::Tensor& table, const at::Tensor& numbers, const at::Tensor& out,
                   bool takes_negative) {
  if (!on_device(table) || !on_device(numbers)) return "a tensor of another device";
  if (numbers.scalar_type() != at::kLong && numbers.scalar_type() != at::kInt) return "numbers of another type";
  if (table.dim() == 0 || table.element_size() > 8 || out.numel() == 0) return kLayout;
  const int64_t row_bytes = table.numel() / std::max<int64_t>(1, table.size(0)) * table.element_size();
  if (row_bytes == 0 || row_bytes > INT32_MAX || !are_rows(numbers, table.size(0), takes_negative)) {
    return "a number that is no row";
  }
  kernels::RowsPlan plan{static_cast<uint32_t>(row_bytes), static_cast<uint32_t>(numbers.element_size()),
                         numbers.numel(), table.size(0), -1};
  const Range ranges[] = {{table.data_ptr(), extent_of(table), true},
                          {numbers.data_ptr(), extent_of(numbers), true},
                          {out.data_ptr(), extent_of(out), false}};
  const auto blocks = static_cast<uint32_t>(std::clamp<int64_t>(plan.count / 16, 1, vector_cores()));
  launch("gather_rows", op, {table.data_ptr(), numbers.data_ptr(), out.data_ptr()}, ranges, &plan, sizeof(plan),
         blocks, out.device().index());
  return nullptr;
}

/// embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)
const char* embedding(const OperatorHandle&, Stack* stack) {
  const at::Tensor weight = packed(tensor_at(*stack, 5, 0)), numbers = packed(tensor_at(*stack, 5, 1));
  if (weight.dim() != 2) return kLayout;
  const c10::DeviceGuard guard(weight.device());
  c10::SmallVector<int64_t, 6> sizes(numbers.sizes().begin(), numbers.sizes().end());
  sizes.push_back(weight.size(1));
  at::Tensor out = empty(sizes, weight.scalar_type());
  const char* reason = gather("aten::embedding", weight, numbers, out, false);
  return reason != nullptr ? reason : give(stack, 5, out);
}

/// embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)
const char* embedding_backward(const OperatorHandle&, Stack* stack) {
  const at::Tensor grad = tensor_at(*stack, 5, 0), numbers = packed(tensor_at(*stack, 5, 1));
  const int64_t rows = value_at(*stack, 5, 2).toInt(), skip = value_at(*stack, 5, 3).toInt();
  if (value_at(*stack, 5, 4).toBool()) return "gradients scaled by frequency";
  if (!on_device(grad) || !on_device(numbers) || !is_float_kind(grad) || grad.numel() == 0 || rows == 0) {
    return kLayout;
  }
  if (numbers.scalar_type() != at::kLong && numbers.scalar_type() != at::kInt) return "numbers of another type";
  if (!are_rows(numbers, rows, false)) return "a number that is no row";
  const c10::DeviceGuard guard(grad.device());
  const int64_t columns = grad.size(-1);
  at::Tensor wide = grad.scalar_type() == at::kFloat ? packed(grad) : empty(grad.sizes(), at::kFloat);
  if (grad.scalar_type() != at::kFloat) {
    if (const char* reason = copy_or_reason(grad, wide)) return reason;
  }
  at::Tensor sum = empty({rows, columns}, at::kFloat);
  if (const char* reason = run_formula("aten::zero_", "zero", {rows, columns}, {}, {{"y", sum}}, {{"zero", 0.0}})) {
    return reason;
  }
  kernels::RowsPlan plan{static_cast<uint32_t>(columns * sizeof(float)), static_cast<uint32_t>(numbers.element_size()),
                         numbers.numel(), rows, skip < 0 ? -1 : skip};
  const Range ranges[] = {{wide.data_ptr(), extent_of(wide), true},
                          {numbers.data_ptr(), extent_of(numbers), true},
                          {sum.data_ptr(), extent_of(sum), true}};
  const auto blocks = static_cast<uint32_t>(std::clamp<int64_t>(columns / 64, 1, vector_cores()));
  launch("add_rows", "aten::embedding_dense_backward", {wide.data_ptr(), numbers.data_ptr(), sum.data_ptr()}, ranges,
         &plan, sizeof(plan), blocks, grad.device().index());
  at::Tensor out = sum;
  if (grad.scalar_type() != at::kFloat) {
    out = empty({rows, columns}, grad.scalar_type());
    if (const char* reason = copy_or_reason(sum, out)) return reason;
  }
  return give(stack, 5, out);
}

/// cat.out(tensors, dim, out): one copy for each tensor.
const char* concatenate(const OperatorHandle&, Stack* stack) {
  const auto tensors = value_at(*stack, 3, 0).toTensorVector();
  const at::Tensor out = tensor_at(*stack, 3, 2);
  if (!on_device(out) || out.numel() == 0 || out.dim() == 0) return kLayout;
  const int64_t dim = at::maybe_wrap_dim(value_at(*stack, 3, 1).toInt(), out.dim());
  const c10::DeviceGuard guard(out.device());
  int64_t begin = 0;
  for (const at::Tensor& tensor : tensors) {
    if (!on_device(tensor)) return "a tensor of another device";
    if (may_overlap(tensor, out)) return "source and target overlap";
    if (tensor.scalar_type() != out.scalar_type() && !(is_float_kind(tensor) && is_float_kind(out))) {
      return "tensors of several types";
    }
    if (tensor.dim() == 1 && tensor.numel() == 0) continue;
    if (tensor.dim() != out.dim()) return "tensors of several ranks";
    begin += tensor.size(dim);
  }
  if (begin != out.size(dim)) return "an out tensor of another shape";
  begin = 0;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.numel() == 0) continue;
    const at::Tensor part = view_of(out, tensor.sizes(), out.strides());
    part.unsafeGetTensorImpl()->set_storage_offset(out.storage_offset() + begin * out.stride(dim));
    if (const char* reason = copy_or_reason(tensor, part)) return reason;
    begin += tensor.size(dim);
  }
  return give(stack, 3, out);
}

}  // namespace

void add_rows() {
  add_native("embedding", "gather_rows", embedding);
  add_native("embedding_dense_backward", "add_rows", embedding_backward);
  add_native("cat.out", "copy_strided", concatenate);
}

}  // namespace opkit::npu
