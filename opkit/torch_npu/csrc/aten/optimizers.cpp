// Fused optimizers, a launch for all parameters that have come equally far, and the gradient scaler's two operators.
//
// Formulas are those of PyTorch's documentation of torch.optim. What depends on the step alone is computed in double
// on the host, which sees the device's memory.
#include <ATen/ops/_local_scalar_dense_native.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "runtime/fallback.h"
#include "aten/natives.h"
#include "aten/parts.h"

namespace opkit::npu {
namespace {

using Tensors = std::vector<at::Tensor>;
using Numbers = c10::SmallVector<std::pair<const char*, double>, 10>;

double number_in(const at::Tensor& tensor) {
  return at::native::_local_scalar_dense_cpu(on_device(tensor) ? as_cpu(tensor) : tensor).toDouble();
}

/// A fused optimizer's arguments by their names, which overloads share.
class FusedCall {
 public:
  FusedCall(const OperatorHandle& op, const Stack& stack) : op_(op), stack_(stack) {}

  const IValue& value(const char* name) const {
    const auto position = op_.schema().argumentIndexWithName(name);
    TORCH_INTERNAL_ASSERT(position.has_value(), name);
    return value_at(stack_, op_.schema().arguments().size(), static_cast<size_t>(*position));
  }
  Tensors tensors(const char* name) const { return value(name).toTensorVector(); }
  bool flag(const char* name) const { return value(name).toBool(); }
  /// A number, or a tensor that holds one.
  double number(const char* name) const {
    const IValue& given = value(name);
    return given.isTensor() ? number_in(given.toTensor()) : given.toDouble();
  }
  bool is_skipped() const {
    const IValue& found = value("found_inf");
    return !found.isNone() && number_in(found.toTensor()) != 0;
  }
  bool is_scaled() const { return !value("grad_scale").isNone(); }
  double scale() const { return is_scaled() ? number_in(value("grad_scale").toTensor()) : 1.0; }
  void end(Stack* stack) const { torch::jit::drop(*stack, op_.schema().arguments().size()); }

 private:
  const OperatorHandle& op_;
  const Stack& stack_;
};

/// Whether parameters and what belongs to each lie alike, so that one line of elements serves for all: nothing may be
/// refused once the first is stepped.
const char* check_alike(const Tensors& parameters, c10::ArrayRef<const Tensors*> others) {
  for (const Tensors* list : others) {
    if (list->size() != parameters.size()) return kLayout;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const at::Tensor &a = parameters[i], &b = (*list)[i];
      if (!on_device(a) || !on_device(b) || a.device() != b.device()) return "a tensor of another device";
      if (!is_float_kind(a) || !is_float_kind(b)) return kNoType;
      if (a.scalar_type() != b.scalar_type()) return "tensors of several types";
      if (a.sizes() != b.sizes() || a.strides() != b.strides() || !a.is_non_overlapping_and_dense()) return kLayout;
    }
  }
  return nullptr;
}

at::Tensor line_of(const at::Tensor& tensor) { return view_of(tensor, {tensor.numel()}, {1}); }

void step(const char* op, const std::string& formula, int64_t size, c10::ArrayRef<Named> inputs,
          c10::ArrayRef<Named> outputs, const Numbers& numbers) {
  const char* reason = run_formula(op, formula.c_str(), {size}, inputs, outputs, numbers);
  TORCH_INTERNAL_ASSERT(reason == nullptr, op, ": ", reason);
}

/// Steps of parameters, launched together as long as they have the same numbers, type and device.
class Steps {
 public:
  using Lists = c10::SmallVector<std::pair<const char*, const Tensors*>, 5>;

  Steps(const char* op, std::string formula, Lists inputs, Lists outputs)
      : op_(op), formula_(std::move(formula)), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {}

  void add(size_t i, const Numbers& numbers) {
    const at::Tensor& own = tensor(0, i);
    if (!taken_.empty()) {
      const at::Tensor& last = tensor(0, taken_.back());
      const bool is_alike = std::equal(numbers.begin(), numbers.end(), numbers_.begin(), numbers_.end());
      if (!is_alike || last.device() != own.device() || last.scalar_type() != own.scalar_type()) launch();
    }
    numbers_ = numbers;
    taken_.push_back(i);
  }

  void launch() {
    if (taken_.empty()) return;
    const c10::DeviceGuard guard(tensor(0, taken_[0]).device());
    const auto chosen = [&](const Lists& lists) {
      c10::SmallVector<NamedList, 5> parts;
      for (const auto& [name, list] : lists) {
        Tensors part;
        for (const size_t i : taken_) part.push_back((*list)[i]);
        parts.push_back({name, std::move(part)});
      }
      return parts;
    };
    const char* reason = run_list_formula(op_, formula_.c_str(), chosen(inputs_), chosen(outputs_), numbers_);
    TORCH_INTERNAL_ASSERT(reason == nullptr, op_, ": ", reason);
    taken_.clear();
  }

 private:
  const at::Tensor& tensor(size_t list, size_t i) const { return (*inputs_[list].second)[i]; }

  const char* op_;
  std::string formula_;
  Lists inputs_;
  Lists outputs_;
  Numbers numbers_;
  std::vector<size_t> taken_;
};

/// The gradient `d` as a step takes it: without the scale, in its direction, and with the weights' decay.
std::string gradient_of(bool is_scaled, bool is_maximized, bool decays) {
  std::string formula = is_scaled ? "go = g / scale; d = go; " : "d = g; ";
  if (is_maximized) formula += "d = -d; ";
  if (decays) formula += "d = d + p * decay; ";
  return formula;
}

/// _fused_adam_ and _fused_adamw_ (decoupled).
const char* adam(const char* op, bool is_decoupled, const OperatorHandle& handle, Stack* stack) {
  const FusedCall call(handle, *stack);
  const Tensors p = call.tensors("self"), g = call.tensors("grads"), m = call.tensors("exp_avgs");
  const Tensors v = call.tensors("exp_avg_sqs"), largest = call.tensors("max_exp_avg_sqs");
  const Tensors steps = call.tensors("state_steps");
  const bool is_amsgrad = call.flag("amsgrad");
  c10::SmallVector<const Tensors*, 4> lists{&g, &m, &v};
  if (is_amsgrad) lists.push_back(&largest);
  if (const char* reason = check_alike(p, lists)) return reason;
  if (steps.size() != p.size()) return kLayout;
  if (call.is_skipped()) {
    call.end(stack);
    return nullptr;
  }
  const double lr = call.number("lr"), beta1 = call.number("beta1"), beta2 = call.number("beta2");
  const double decay = call.number("weight_decay");
  const bool is_scaled = call.is_scaled();
  std::string formula = gradient_of(is_scaled, call.flag("maximize"), decay != 0 && !is_decoupled);
  formula += decay != 0 && is_decoupled ? "w = p * shrink; " : "w = p; ";
  formula += "mo = m + (d - m) * share1; vo = v * beta2 + d * d * share2; ";
  formula += is_amsgrad ? "xo = max(x, vo); s = sqrt(xo); " : "s = sqrt(vo); ";
  formula += "po = w - mo / (s * scale2 + eps) * rate";
  Steps::Lists inputs{{"p", &p}, {"g", &g}, {"m", &m}, {"v", &v}};
  Steps::Lists outputs{{"po", &p}, {"mo", &m}, {"vo", &v}};
  if (is_amsgrad) {
    inputs.push_back({"x", &largest});
    outputs.push_back({"xo", &largest});
  }
  if (is_scaled) outputs.push_back({"go", &g});
  Steps launches(op, std::move(formula), std::move(inputs), std::move(outputs));
  for (size_t i = 0; i < p.size(); ++i) {
    const double count = number_in(steps[i]);
    launches.add(i, {{"scale", call.scale()},
                     {"decay", decay},
                     {"shrink", 1 - lr * decay},
                     {"share1", 1 - beta1},
                     {"beta2", beta2},
                     {"share2", 1 - beta2},
                     {"scale2", 1 / std::sqrt(1 - std::pow(beta2, count))},
                     {"eps", call.number("eps")},
                     {"rate", lr / (1 - std::pow(beta1, count))}});
  }
  launches.launch();
  call.end(stack);
  return nullptr;
}

/// _fused_sgd_
const char* descend(const OperatorHandle& handle, Stack* stack) {
  const FusedCall call(handle, *stack);
  const Tensors p = call.tensors("self"), g = call.tensors("grads"), b = call.tensors("momentum_buffer_list");
  const double momentum = call.number("momentum"), decay = call.number("weight_decay");
  c10::SmallVector<const Tensors*, 2> lists{&g};
  if (momentum != 0) lists.push_back(&b);
  if (const char* reason = check_alike(p, lists)) return reason;
  if (call.is_skipped()) {
    call.end(stack);
    return nullptr;
  }
  const bool is_scaled = call.is_scaled();
  std::string formula = gradient_of(is_scaled, call.flag("maximize"), decay != 0);
  if (momentum != 0) {
    // The first step's buffer is the gradient, whatever memory it was made of.
    formula += call.flag("is_first_step") ? "bo = d + 0; " : "bo = b * momentum + d * undamped; ";
    formula += call.flag("nesterov") ? "d = d + bo * momentum; " : "d = bo; ";
  }
  formula += "po = p - d * lr";
  const Numbers numbers{{"scale", call.scale()},
                        {"decay", decay},
                        {"momentum", momentum},
                        {"undamped", 1 - call.number("dampening")},
                        {"lr", call.number("lr")}};
  Steps::Lists inputs{{"p", &p}, {"g", &g}};
  Steps::Lists outputs{{"po", &p}};
  if (momentum != 0) {
    inputs.push_back({"b", &b});
    outputs.push_back({"bo", &b});
  }
  if (is_scaled) outputs.push_back({"go", &g});
  Steps launches("aten::_fused_sgd_", std::move(formula), std::move(inputs), std::move(outputs));
  for (size_t i = 0; i < p.size(); ++i) launches.add(i, numbers);
  launches.launch();
  call.end(stack);
  return nullptr;
}

/// _fused_adagrad_
const char* adagrad(const OperatorHandle& handle, Stack* stack) {
  const FusedCall call(handle, *stack);
  const Tensors p = call.tensors("self"), g = call.tensors("grads"), s = call.tensors("state_sums");
  const Tensors steps = call.tensors("state_steps");
  const Tensors* lists[] = {&g, &s};
  if (const char* reason = check_alike(p, lists)) return reason;
  if (steps.size() != p.size()) return kLayout;
  if (call.is_skipped()) {
    call.end(stack);
    return nullptr;
  }
  const double decay = call.number("weight_decay");
  const bool is_scaled = call.is_scaled();
  const std::string formula = gradient_of(is_scaled, call.flag("maximize"), decay != 0) +
                              "so = s + d * d; po = p - d / (sqrt(so) + eps) * rate";
  Steps::Lists outputs{{"po", &p}, {"so", &s}};
  if (is_scaled) outputs.push_back({"go", &g});
  Steps launches("aten::_fused_adagrad_", formula, {{"p", &p}, {"g", &g}, {"s", &s}}, std::move(outputs));
  for (size_t i = 0; i < p.size(); ++i) {
    const double rate = call.number("lr") / (1 + (number_in(steps[i]) - 1) * call.number("lr_decay"));
    launches.add(i, {{"scale", call.scale()}, {"decay", decay}, {"eps", call.number("eps")}, {"rate", rate}});
  }
  launches.launch();
  call.end(stack);
  return nullptr;
}

/// _amp_foreach_non_finite_check_and_unscale_(self[], found_inf, inv_scale)
const char* unscale(const OperatorHandle&, Stack* stack) {
  const char* op = "aten::_amp_foreach_non_finite_check_and_unscale_";
  const Tensors grads = value_at(*stack, 3, 0).toTensorVector();
  const at::Tensor found = tensor_at(*stack, 3, 1), inverse = tensor_at(*stack, 3, 2);
  for (const at::Tensor* one : {&found, &inverse}) {
    if (!on_device(*one) || one->scalar_type() != at::kFloat || one->numel() != 1) return kLayout;
  }
  for (const at::Tensor& grad : grads) {
    if (!on_device(grad) || grad.device() != found.device()) return "a tensor of another device";
    if (!is_float_kind(grad)) return kNoType;
    if (!grad.is_non_overlapping_and_dense()) return kLayout;
  }
  const c10::DeviceGuard guard(found.device());
  // A flag for each gradient, and what was found before.
  const auto count = static_cast<int64_t>(grads.size());
  const at::Tensor flags = empty({count + 1}, at::kFloat);
  step(op, "f", 1, {{"f", line_of(found)}}, {{"y", view_of(flags, {1}, {1}, count)}}, {});
  for (int64_t i = 0; i < count; ++i) {
    const at::Tensor &grad = grads[i], flag = view_of(flags, {1}, {1}, i);
    if (grad.numel() == 0) {
      step(op, "zero", 1, {}, {{"y", flag}}, {{"zero", 0.0}});
      continue;
    }
    const at::Tensor line = line_of(grad);
    // Only infinity and NaN differ from themselves by NaN.
    const char* reason = reduce(op, "h = x - x; fold(h != h) + 0", line, flag, 1, kernels::Fold::Max);
    TORCH_INTERNAL_ASSERT(reason == nullptr, op, ": ", reason);
    step(op, "g * inverse", grad.numel(), {{"g", line}, {"inverse", line_of(inverse)}}, {{"y", line}}, {});
  }
  const char* reason = reduce(op, "fold(x) + 0", flags, line_of(found), 1, kernels::Fold::Max);
  TORCH_INTERNAL_ASSERT(reason == nullptr, op, ": ", reason);
  torch::jit::drop(*stack, 3);
  return nullptr;
}

/// _amp_update_scale_(self, growth_tracker, found_inf, growth_factor, backoff_factor, growth_interval)
const char* update_scale(const OperatorHandle&, Stack* stack) {
  const at::Tensor self = tensor_at(*stack, 6, 0), tracker = tensor_at(*stack, 6, 1), found = tensor_at(*stack, 6, 2);
  for (const at::Tensor* one : {&self, &tracker, &found}) {
    if (!on_device(*one) || one->numel() != 1 || one->device() != self.device()) return kLayout;
  }
  const int64_t interval = value_at(*stack, 6, 5).toInt();
  if (self.scalar_type() != at::kFloat || found.scalar_type() != at::kFloat || tracker.scalar_type() != at::kInt) {
    return kLayout;
  }
  if (interval > 1 << 23) return "whole numbers that floats do not hold";
  const c10::DeviceGuard guard(self.device());
  // What grows beyond float stays as it was.
  step("aten::_amp_update_scale_",
       "n = t + 1; is_due = n == interval; grown = s * growth; h = grown - grown;"
       "up = select(is_due, select(h == h, grown, s), s); is_bad = f != 0;"
       "so = select(is_bad, s * backoff, up); to = select(max(is_bad, is_due), 0, n)",
       1, {{"s", line_of(self)}, {"t", line_of(tracker)}, {"f", line_of(found)}},
       {{"so", line_of(self)}, {"to", line_of(tracker)}},
       {{"growth", value_at(*stack, 6, 3).toDouble()},
        {"backoff", value_at(*stack, 6, 4).toDouble()},
        {"interval", static_cast<double>(interval)}});
  return give(stack, 6, self);
}

}  // namespace

void add_optimizers() {
  for (const char* overload : {"", ".tensor_lr"}) {
    for (const bool is_decoupled : {false, true}) {
      const char* op = is_decoupled ? "_fused_adamw_" : "_fused_adam_";
      add_native(std::string(op) + overload, "vector_list",
                 [=](const OperatorHandle& handle, Stack* stack) { return adam(op, is_decoupled, handle, stack); });
    }
    add_native(std::string("_fused_sgd_") + overload, "vector_list", descend);
    add_native(std::string("_fused_adagrad_") + overload, "vector_list", adagrad);
  }
  add_native("_amp_foreach_non_finite_check_and_unscale_", "vector_program", unscale);
  add_native("_amp_update_scale_", "vector_program", update_scale);
}

}  // namespace opkit::npu
