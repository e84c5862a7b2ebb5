// Losses: by class (nll_loss), and of two tensors (mse, smooth l1, Huber, binary cross entropy), with their gradients.
#include <ATen/core/Reduction.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>

#include "aten/natives.h"
#include "aten/parts.h"

namespace opkit::npu {
namespace {

using kernels::ElementsPlan;
using kernels::Fold;

/// Scores (N, C, places) and classes (N, places), with the weight of each class that was named.
struct Classes {
  at::Tensor scores;
  at::Tensor target;   ///< int64, packed; what is ignored counts as class 0
  at::Tensor weights;  ///< float (N, places): 0 where ignored
  int64_t n = 1, classes = 1, places = 1;
};

const char* read_classes(const char* op, const at::Tensor& scores, const at::Tensor& given_target,
                         const at::Tensor& class_weight, int64_t ignored, Classes& seen) {
  if (!on_device(scores) || !on_device(given_target) || !is_float_kind(scores) || scores.numel() == 0 ||
      given_target.scalar_type() != at::kLong) {
    return kLayout;
  }
  seen.scores = packed(scores);
  const at::Tensor target = packed(given_target);
  seen.classes = scores.size(scores.dim() == 1 ? 0 : 1);
  seen.n = scores.dim() == 1 ? 1 : scores.size(0);
  seen.places = scores.numel() / (seen.n * seen.classes);
  if (target.numel() != seen.n * seen.places) return kLayout;
  const auto* values = static_cast<const int64_t*>(target.data_ptr());
  if (!std::all_of(values, values + target.numel(),
                   [&](int64_t value) { return value == ignored || (value >= 0 && value < seen.classes); })) {
    return "a class that is none";
  }
  if (seen.classes > 1 << 24) return "more classes than floats tell apart";
  const at::Tensor flat = as_shape(target, {target.numel()});
  seen.target = empty({target.numel()}, at::kLong);
  seen.weights = empty({target.numel()}, at::kFloat);
  const std::pair<const char*, double> skip{"ignored", static_cast<double>(ignored)};
  if (const char* reason =
          run_formula(op, "keep = t != ignored; c = select(keep, t, 0); w = keep + 0", {target.numel()}, {{"t", flat}},
                      {{"c", seen.target}, {"w", seen.weights}}, skip)) {
    return reason;
  }
  if (!class_weight.defined()) return nullptr;
  const at::Tensor table = packed(class_weight);
  if (!on_device(table) || table.numel() != seen.classes || table.scalar_type() != scores.scalar_type()) return kLayout;
  const at::Tensor picked = empty({target.numel()}, table.scalar_type());
  const Pick pick{seen.target, {1}, seen.classes, 1};
  if (const char* reason =
          move_by_index(op, ElementsPlan::kGather, table, 0, {target.numel()}, {0}, picked, {1}, pick)) {
    return reason;
  }
  return run_formula(op, "w * p", {target.numel()}, {{"w", seen.weights}, {"p", picked}}, {{"y", seen.weights}}, {});
}

/// The place of each named class among the scores.
const char* move_classes(const char* op, uint32_t action, const Classes& seen, const at::Tensor& table,
                         const at::Tensor& plain) {
  const Pick pick{seen.target, {seen.places, 1}, seen.classes, seen.places};
  return move_by_index(op, action, table, 0, {seen.n, seen.places}, {seen.classes * seen.places, 1}, plain,
                       {seen.places, 1}, pick);
}

/// nll_loss_forward.output(self, target, weight, reduction, ignore_index, output, total_weight), and
/// nll_loss2d_forward, which makes its results itself
const char* nll_loss(bool has_out, Stack* stack) {
  const size_t kArguments = has_out ? 7 : 5;
  const char* op = "aten::nll_loss_forward";
  const at::Tensor x = tensor_at(*stack, kArguments, 0);
  const int64_t reduction = value_at(*stack, kArguments, 3).toInt();
  if (!on_device(x)) return kLayout;
  const c10::DeviceGuard guard(x.device());
  const bool is_each = reduction == at::Reduction::None;
  at::Tensor out = has_out
                       ? tensor_at(*stack, kArguments, 5)
                       : empty(is_each ? tensor_at(*stack, kArguments, 1).sizes() : at::IntArrayRef(), x.scalar_type());
  at::Tensor total = has_out ? tensor_at(*stack, kArguments, 6) : empty({}, x.scalar_type());
  Classes seen;
  if (const char* reason = read_classes(op, x, tensor_at(*stack, kArguments, 1), optional_at(*stack, kArguments, 2),
                                        value_at(*stack, kArguments, 4).toInt(), seen)) {
    return reason;
  }
  const int64_t count = seen.target.numel();
  if (!out.is_contiguous() || !total.is_contiguous() || total.numel() != 1) return kLayout;
  const at::Tensor picked = empty({count}, x.scalar_type());
  if (const char* reason = move_classes(op, ElementsPlan::kGather, seen, seen.scores, picked)) return reason;
  // An ignored score does not count, whatever it is.
  const char* each = "select(w == 0, 0, -x * w)";
  if (reduction == at::Reduction::None) {
    if (out.numel() != count) return kLayout;
    if (const char* reason =
            run_formula(op, each, {count}, {{"x", picked}, {"w", seen.weights}}, {{"y", as_shape(out, {count})}}, {})) {
      return reason;
    }
    if (const char* reason = fill(op, total, 0)) return reason;
    return give(stack, kArguments, out, total);
  }
  const at::Tensor sum = empty({1}, at::kFloat), weight = empty({1}, at::kFloat);
  if (const char* reason =
          reduce(op, "fold(select(w == 0, 0, -x * w)) + 0", picked, sum, 1, Fold::Sum, {}, Named{"w", seen.weights})) {
    return reason;
  }
  if (const char* reason = reduce(op, "fold(x) + 0", seen.weights, weight, 1, Fold::Sum)) return reason;
  const char* formula = reduction == at::Reduction::Mean ? "s / w" : "s + 0 * w";
  if (const char* reason =
          run_formula(op, formula, {1}, {{"s", sum}, {"w", weight}}, {{"y", as_shape(out, {1})}}, {})) {
    return reason;
  }
  if (const char* reason = copy_or_reason(weight, as_shape(total, {1}))) return reason;
  return give(stack, kArguments, out, total);
}

/// nll_loss_backward.grad_input(grad_output, self, target, weight, reduction, ignore_index, total_weight, grad_input),
/// and nll_loss2d_backward without the last
const char* nll_loss_backward(bool has_out, Stack* stack) {
  const size_t kArguments = has_out ? 8 : 7;
  const char* op = "aten::nll_loss_backward";
  const at::Tensor g = packed(tensor_at(*stack, kArguments, 0)), x = tensor_at(*stack, kArguments, 1);
  const at::Tensor total = tensor_at(*stack, kArguments, 6);
  const int64_t reduction = value_at(*stack, kArguments, 4).toInt();
  if (!on_device(x)) return kLayout;
  const c10::DeviceGuard guard(x.device());
  at::Tensor out = has_out ? tensor_at(*stack, kArguments, 7) : empty(x.sizes(), x.scalar_type());
  if (!on_device(g) || !on_device(total) || !out.is_contiguous() || out.sizes() != x.sizes()) return kLayout;
  Classes seen;
  if (const char* reason = read_classes(op, x, tensor_at(*stack, kArguments, 2), optional_at(*stack, kArguments, 3),
                                        value_at(*stack, kArguments, 5).toInt(), seen)) {
    return reason;
  }
  const int64_t count = seen.target.numel();
  if (g.numel() != (reduction == at::Reduction::None ? count : 1)) return kLayout;
  const at::Tensor each = empty({count}, out.scalar_type());
  const char* formula = reduction == at::Reduction::Mean ? "select(w == 0, 0, -g * w / t)" : "-g * w + 0 * t";
  if (const char* reason =
          run_formula(op, formula, {count},
                      {{"g", as_shape(g, {g.numel()})}, {"w", seen.weights}, {"t", as_shape(packed(total), {1})}},
                      {{"y", each}}, {})) {
    return reason;
  }
  if (const char* reason = fill(op, out, 0)) return reason;
  const char* reason = move_classes(op, ElementsPlan::kPut, seen, out, each);
  return reason != nullptr ? reason : give(stack, kArguments, out);
}

/// A loss of two tensors: (self, target, reduction, number, out) with the number where the loss has one.
void add_loss(const char* name, const char* op, const std::string& formula, const char* number, bool has_out) {
  add_native(name, "vector_program", [=](const OperatorHandle&, Stack* stack) -> const char* {
    const size_t arguments = 3 + (number != nullptr ? 1 : 0) + (has_out ? 1 : 0);
    const at::Tensor a = tensor_at(*stack, arguments, 0), b = tensor_at(*stack, arguments, 1);
    const int64_t reduction = value_at(*stack, arguments, 2).toInt();
    if (!on_device(a) || !on_device(b) || !is_float_kind(a) || a.scalar_type() != b.scalar_type() ||
        a.sizes() != b.sizes() || a.numel() == 0 || a.dim() > 6) {
      return kLayout;
    }
    if (std::string_view(name) == "huber_loss" && value_at(*stack, arguments, 3).toDouble() <= 0) {
      return "a delta that is not above 0";
    }
    const c10::DeviceGuard guard(a.device());
    c10::SmallVector<std::pair<const char*, double>, 2> numbers{{"scale", 1.0}};
    if (number != nullptr) numbers.push_back({number, value_at(*stack, arguments, 3).toDouble()});
    const bool is_each = reduction == at::Reduction::None;
    if (reduction == at::Reduction::Mean) numbers[0].second = 1 / static_cast<double>(a.numel());
    at::Tensor out = has_out ? tensor_at(*stack, arguments, arguments - 1)
                             : empty(is_each ? a.sizes() : at::IntArrayRef(), a.scalar_type());
    if (!out.is_contiguous() || out.numel() != (is_each ? a.numel() : 1)) return kLayout;
    const size_t last = formula.rfind(';');
    const std::string head = last == std::string::npos ? "" : formula.substr(0, last + 1);
    const std::string tail = last == std::string::npos ? formula : formula.substr(last + 1);
    const std::string whole = is_each ? head + "(" + tail + ") * scale" : head + "fold(" + tail + ") * scale";
    const char* reason =
        is_each ? run_formula(op, whole.c_str(), a.sizes(), {{"x", packed(a)}, {"t", packed(b)}}, {{"y", out}}, numbers)
                : reduce(op, whole.c_str(), packed(a), out, dims_of(IValue(), a.dim()), Fold::Sum, numbers,
                         Named{"t", packed(b)});
    return reason != nullptr ? reason : give(stack, arguments, out);
  });
}

/// Its gradient: (grad_output, self, target, reduction, number, grad_input), the last where the operator has it
void add_gradient(const char* name, const char* op, const char* formula, const char* number, bool has_out = true) {
  add_native(name, "vector_program", [=](const OperatorHandle&, Stack* stack) -> const char* {
    const size_t arguments = 4 + (number != nullptr ? 1 : 0) + (has_out ? 1 : 0);
    const at::Tensor g = tensor_at(*stack, arguments, 0), a = tensor_at(*stack, arguments, 1);
    const at::Tensor b = tensor_at(*stack, arguments, 2);
    if (!on_device(g) || !on_device(a) || !on_device(b) || !is_float_kind(a) || a.sizes() != b.sizes() ||
        a.numel() == 0) {
      return kLayout;
    }
    const c10::DeviceGuard guard(a.device());
    at::Tensor out = has_out ? tensor_at(*stack, arguments, arguments - 1) : empty(a.sizes(), a.scalar_type());
    if (out.sizes() != a.sizes() || !out.is_contiguous()) return kLayout;
    const bool is_mean = value_at(*stack, arguments, 3).toInt() == at::Reduction::Mean;
    c10::SmallVector<std::pair<const char*, double>, 2> numbers{
        {"scale", is_mean ? 1 / static_cast<double>(a.numel()) : 1.0}};
    if (number != nullptr) numbers.push_back({number, value_at(*stack, arguments, 4).toDouble()});
    const char* reason = run_formula(op, formula, a.sizes(), {{"g", packed(g)}, {"x", packed(a)}, {"t", packed(b)}},
                                     {{"y", out}}, numbers);
    return reason != nullptr ? reason : give(stack, arguments, out);
  });
}

}  // namespace

void add_losses() {
  for (const bool has_out : {true, false}) {
    add_native(has_out ? "nll_loss_forward.output" : "nll_loss2d_forward", "move_by_index",
               [=](const OperatorHandle&, Stack* stack) { return nll_loss(has_out, stack); });
    add_native(has_out ? "nll_loss_backward.grad_input" : "nll_loss2d_backward", "move_by_index",
               [=](const OperatorHandle&, Stack* stack) { return nll_loss_backward(has_out, stack); });
  }
  add_loss("mse_loss.out", "aten::mse_loss", "d = x - t; d * d", nullptr, true);
  add_gradient("mse_loss_backward", "aten::mse_loss_backward", "g * (x - t) * 2 * scale", nullptr, false);
  add_loss("smooth_l1_loss.out", "aten::smooth_l1_loss",
           "d = abs(x - t); select(d < beta, d * d * 0.5 / beta, d - beta * 0.5)", "beta", true);
  add_gradient("smooth_l1_loss_backward.grad_input", "aten::smooth_l1_loss_backward",
               "d = x - t; g * scale * select(abs(d) < beta, d / beta, sign(d))", "beta");
  add_loss("huber_loss", "aten::huber_loss",
           "d = abs(x - t); select(d <= delta, d * d * 0.5, (d - delta * 0.5) * delta)", "delta", false);
  add_gradient("huber_loss_backward.out", "aten::huber_loss_backward",
               "d = x - t; g * scale * select(abs(d) <= delta, d, sign(d) * delta)", "delta");
}

}  // namespace opkit::npu
