#include "runtime/layouts.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>

namespace opkit::npu {

/// `first` and `second` are places of operands; where either has channels last, so do the results. Of `is_like` the
/// results of the first one's sizes lie as it does, whichever way that is.
struct LayoutRow {
  const char* op;
  size_t first;
  size_t second;
  bool is_like;
};

namespace {

constexpr LayoutRow kLayoutRows[] = {
    {"convolution", 0, 1, false},
    {"convolution_backward", 1, 2, false},
    {"native_batch_norm", 0, 0, false},
    {"native_batch_norm_backward", 1, 1, false},
    {"_native_batch_norm_legit", 0, 0, false},
    {"_native_batch_norm_legit.no_stats", 0, 0, false},
    {"_batch_norm_with_update", 0, 0, false},
    {"native_group_norm", 0, 0, false},
    {"native_group_norm_backward", 1, 1, false},
    {"_adaptive_avg_pool2d", 0, 0, false},
    {"_adaptive_avg_pool2d_backward", 1, 1, false},
    {"reflection_pad2d", 0, 0, false},
    {"reflection_pad2d_backward", 1, 1, false},
    {"replication_pad2d_backward", 1, 1, false},
    {"max_unpool2d", 0, 0, false},
    {"flip", 0, 0, true},
    {"roll", 0, 0, true},
    {"log_sigmoid_backward", 0, 0, true},
    {"_prelu_kernel_backward", 1, 1, true},
};

c10::MemoryFormat suggested_format(const c10::IValue& value) {
  if (!value.isTensor() || !value.toTensor().defined()) return c10::MemoryFormat::Contiguous;
  return value.toTensor().suggest_memory_format();
}

}  // namespace

const LayoutRow* layout_row(const std::string& op) {
  const auto* found = std::find_if(std::begin(kLayoutRows), std::end(kLayoutRows),
                                   [&](const LayoutRow& row) { return op == std::string("aten::") + row.op; });
  return found == std::end(kLayoutRows) ? nullptr : found;
}

Layout::Layout(const LayoutRow* row, const c10::OperatorHandle& op, const c10::Stack& stack) {
  if (row == nullptr) return;
  const size_t begin = stack.size() - op.schema().arguments().size();
  if (row->is_like) {
    const at::Tensor& given = stack[begin + row->first].toTensor();
    if (!given.is_contiguous()) like_ = given;
    return;
  }
  format_ = suggested_format(stack[begin + row->first]);
  if (format_ == c10::MemoryFormat::Contiguous) format_ = suggested_format(stack[begin + row->second]);
}

void Layout::give(const c10::OperatorHandle& op, c10::Stack& stack) const {
  if (!like_.defined() && format_ == c10::MemoryFormat::Contiguous) return;
  const int64_t dims = format_ == c10::MemoryFormat::ChannelsLast3d ? 5 : 4;
  for (size_t i = stack.size() - op.schema().returns().size(); i < stack.size(); ++i) {
    if (!stack[i].isTensor() || !stack[i].toTensor().defined()) continue;
    const at::Tensor& result = stack[i].toTensor();
    at::Tensor made;
    if (like_.defined() && result.sizes() == like_.sizes()) {
      made = at::empty_like(like_, result.options());
    } else if (!like_.defined() && result.dim() == dims && !result.is_contiguous(format_)) {
      made = at::empty(result.sizes(), result.options().memory_format(format_));
    }
    if (made.defined()) stack[i] = made.copy_(result);
  }
}

}  // namespace opkit::npu
