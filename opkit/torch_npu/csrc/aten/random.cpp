// Random numbers by Philox: dropout, and tensors of numbers by chance. The stream is the generator's seed and how many
// tensors it has filled.
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <cmath>

#include "aten/natives.h"
#include "aten/parts.h"

namespace opkit::npu {
namespace {

/// A tensor of uniform numbers in (0, 1].
at::Tensor uniform_numbers(const char* op, at::IntArrayRef sizes, const at::Tensor& like, const IValue& generator) {
  at::Tensor made = empty(sizes, at::kFloat);
  const auto [seed, offset] = next_random_stream(like.device().index(), generator);
  const kernels::RandomPlan plan{made.numel(), seed, offset};
  const Range range{made.data_ptr(), extent_of(made), false};
  const auto blocks = static_cast<uint32_t>(std::clamp<int64_t>((plan.count + 8191) / 8192, 1, vector_cores()));
  launch("random_uniform", op, {made.data_ptr()}, range, &plan, sizeof(plan), blocks, like.device().index());
  return made;
}

bool is_dropped_from(const at::Tensor& x) { return on_device(x) && is_float_kind(x) && x.numel() > 0; }

/// native_dropout(input, p, train) -> (output, mask)
const char* dropout(const OperatorHandle&, Stack* stack) {
  const at::Tensor x = tensor_at(*stack, 3, 0);
  const double p = value_at(*stack, 3, 1).toDouble();
  const IValue& train = value_at(*stack, 3, 2);
  if (!is_dropped_from(x) || !(p >= 0 && p < 1) || !(train.isNone() || train.toBool()))
    return "nothing that is dropped";
  const c10::DeviceGuard guard(x.device());
  const at::Tensor source = packed(x);
  const at::Tensor numbers = uniform_numbers("aten::native_dropout", x.sizes(), x, IValue());
  at::Tensor out = empty(x.sizes(), x.scalar_type()), mask = empty(x.sizes(), at::kBool);
  const char* reason =
      run_formula("aten::native_dropout", "mask = u > p; y = select(mask, x * scale, 0)", x.sizes(),
                  {{"x", source}, {"u", numbers}}, {{"y", out}, {"mask", mask}}, {{"p", p}, {"scale", 1 / (1 - p)}});
  return reason != nullptr ? reason : give(stack, 3, out, mask);
}

/// native_dropout_backward(grad_output, mask, scale)
const char* dropout_backward(const OperatorHandle&, Stack* stack) {
  const at::Tensor g = tensor_at(*stack, 3, 0), mask = tensor_at(*stack, 3, 1);
  if (!is_dropped_from(g) || !on_device(mask) || mask.scalar_type() != at::kBool || mask.sizes() != g.sizes())
    return kLayout;
  const c10::DeviceGuard guard(g.device());
  at::Tensor out = empty(g.sizes(), g.scalar_type());
  const char* reason = run_formula("aten::native_dropout_backward", "select(m, g * scale, 0)", g.sizes(),
                                   {{"g", packed(g)}, {"m", packed(mask)}}, {{"y", out}},
                                   {{"scale", value_at(*stack, 3, 2).toDouble()}});
  return reason != nullptr ? reason : give(stack, 3, out);
}

/// The last number of a type before `end`.
double last_before(at::ScalarType type, double begin, double end) {
  if (!(begin < end)) return end;
  const int digits = type == at::kHalf ? 11 : type == at::kBFloat16 ? 8 : 24;
  const int least = type == at::kHalf ? -24 : -149;
  int exponent = 0;
  // Just below a power of two numbers lie twice as close.
  const bool is_power = std::abs(std::frexp(end, &exponent)) == 0.5 && end > 0;
  return end - std::ldexp(1.0, std::max(exponent - digits - (is_power ? 1 : 0), least));
}

/// uniform_, normal_, exponential_ and bernoulli_: a formula over uniform numbers u and v, and `last`, which comes
/// before b.
void add_filling(const char* name, const char* op, const char* formula, size_t numbers, bool takes_two) {
  add_native(name, "random_uniform", [=](const OperatorHandle&, Stack* stack) -> const char* {
    const size_t arguments = numbers + 2;
    const at::Tensor self = tensor_at(*stack, arguments, 0);
    if (!is_dropped_from(self)) return kLayout;
    const c10::DeviceGuard guard(self.device());
    const IValue& generator = value_at(*stack, arguments, arguments - 1);
    const double a = value_at(*stack, arguments, 1).toDouble();
    const double b = numbers > 1 ? value_at(*stack, arguments, 2).toDouble() : 0;
    c10::SmallVector<Named, 2> inputs{{"u", uniform_numbers(op, self.sizes(), self, generator)}};
    if (takes_two) inputs.push_back({"v", uniform_numbers(op, self.sizes(), self, generator)});
    const at::Tensor out = self.is_contiguous() ? self : empty(self.sizes(), self.scalar_type());
    const char* reason = run_formula(op, formula, self.sizes(), inputs, {{"y", out}}, {{"a", a}, {"b", b}, {"last", last_before(self.scalar_type(), a, b)}});
    if (reason == nullptr && !out.is_same(self)) reason = copy_or_reason(out, self);
    return reason != nullptr ? reason : give(stack, arguments, self);
  });
}

}  // namespace

void add_random() {
  add_native("native_dropout", "random_uniform", dropout);
  add_native("native_dropout_backward", "vector_program", dropout_backward);
  // The range is [a, b) and u is above 0; yet what is near b may be rounded to it, in half types often.
  add_filling("uniform_", "aten::uniform_", "min(b - u * (b - a), last)", 2, false);
  add_filling("normal_", "aten::normal_", "a + b * (sqrt(-2 * ln(u)) * cos(6.283185307179586 * v))", 2, true);
  add_filling("exponential_", "aten::exponential_", "-ln(u) / a", 1, false);
  add_filling("bernoulli_.float", "aten::bernoulli_", "u <= a", 1, false);
}

}  // namespace opkit::npu
