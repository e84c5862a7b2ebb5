// Ranges of numbers, and elements held between bounds.

#include <c10/core/DeviceGuard.h>

#include <cmath>

#include "aten/natives.h"
#include "aten/parts.h"
#include "runtime/program.h"

namespace opkit::npu {

namespace {

/// arange.start_out(start, end, step, out)
const char* range(const OperatorHandle&, Stack* stack) {
  const at::Tensor out = tensor_at(*stack, 4, 3);
  const at::Scalar start = value_at(*stack, 4, 0).toScalar(), end = value_at(*stack, 4, 1).toScalar();
  const at::Scalar step = value_at(*stack, 4, 2).toScalar();
  if (!on_device(out) || !kind_of(out.scalar_type()) || out.scalar_type() == at::kBool) return kNoType;
  const double count = std::ceil((end.toDouble() - start.toDouble()) / step.toDouble());
  const bool is_whole = !at::isFloatingType(out.scalar_type());
  if (!(count >= 1) || count > (1 << 24)) return "another number of numbers";
  if (static_cast<double>(out.numel()) != count) out.resize_({static_cast<int64_t>(count)});
  if (!out.is_contiguous()) return "an out tensor that is not contiguous";
  if (is_whole && !(start.isIntegral(false) && step.isIntegral(false))) return "a fraction among whole numbers";
  if (count > (is_whole ? 1 << 16 : 1 << 24)) return "more numbers than floats tell apart";
  const c10::DeviceGuard guard(out.device());
  MapCall call;
  call.name = "aten::arange";
  call.shape.push_back(out.numel());
  call.is_whole = is_whole;
  for (const at::Scalar& number : {start, step}) {
    call.numbers.push_back({number.toDouble(), is_whole ? number.toLong() : 0});
  }
  Argument argument;
  argument.data = static_cast<char*>(out.data_ptr());
  argument.kind = *kind_of(out.scalar_type());
  argument.extent_bytes = extent_of(out);
  argument.strides.push_back(1);
  call.outputs.push_back(std::move(argument));
  const char* reason =
      run_program(program_of("lane * step + start", {}, {"start", "step"}, {"out"}), call, out.device().index());
  return reason != nullptr ? reason : give(stack, 4, out);
}

/// clamp.out of whole numbers that floats do not hold all of: on the scalar unit.
const char* clamp_whole(const at::Tensor& x, const IValue& low, const IValue& high, const at::Tensor& out) {
  if (x.numel() > kWholeLimit) return kTooManyWhole;
  std::string formula = "y = x + 0";
  c10::SmallVector<std::pair<const char*, double>, 2> numbers;
  for (const bool is_least : {true, false}) {
    const IValue& bound = is_least ? low : high;
    if (bound.isNone()) continue;
    const double value = bound.toScalar().toDouble();
    if (!(std::abs(value) < 9007199254740992.0)) return "a bound that floats do not hold";
    numbers.emplace_back(is_least ? "least" : "most", value);
    formula += is_least ? "; y = max(y, least)" : "; y = min(y, most)";
  }
  return run_formula("aten::clamp", formula.c_str(), x.sizes(), {{"x", packed(x)}}, {{"y", out}}, numbers,
                     kernels::Fold::None, 0, true);
}

/// clamp.out(self, min, max, out): either bound may be missing.
const char* clamp(const OperatorHandle&, Stack* stack) {
  const at::Tensor x = tensor_at(*stack, 4, 0), out = tensor_at(*stack, 4, 3);
  const at::ScalarType type = x.scalar_type();
  const bool is_small = type == at::kChar || type == at::kByte || type == at::kShort;
  const bool is_whole = type == at::kInt || type == at::kLong;
  if (!on_device(x) || !(is_float_kind(x) || is_small || is_whole) || type != out.scalar_type() || x.numel() == 0 ||
      out.sizes() != x.sizes() || !out.is_contiguous()) {
    return kLayout;
  }
  const IValue &low = value_at(*stack, 4, 1), &high = value_at(*stack, 4, 2);
  if (is_whole) {
    const c10::DeviceGuard guard(x.device());
    const char* reason = clamp_whole(x, low, high, out);
    return reason != nullptr ? reason : give(stack, 4, out);
  }
  const double least = low.isNone() ? -INFINITY : low.toScalar().toDouble();
  const double most = high.isNone() ? INFINITY : high.toScalar().toDouble();
  if (std::isnan(least) || std::isnan(most)) return "a bound that is no number";
  for (const double bound : {least, most}) {
    if (is_small && std::isfinite(bound) && (bound < (type == at::kByte ? 0 : -128) || bound > 127)) {
      return "a whole number beyond its type";
    }
  }
  const c10::DeviceGuard guard(x.device());
  const char* reason = run_formula("aten::clamp", "select(x != x, x, min(max(x, least), most))", x.sizes(),
                                   {{"x", packed(x)}}, {{"y", out}}, {{"least", least}, {"most", most}});
  return reason != nullptr ? reason : give(stack, 4, out);
}

/// clamp.Tensor_out(self, min, max, out): bounds that are tensors; either may be missing.
const char* clamp_by_tensors(const OperatorHandle&, Stack* stack) {
  const at::Tensor x = tensor_at(*stack, 4, 0), out = tensor_at(*stack, 4, 3);
  if (!on_device(x) || !is_float_kind(x) || !is_float_kind(out) || out.numel() == 0 || !out.is_contiguous()) {
    return kLayout;
  }
  const c10::DeviceGuard guard(x.device());
  c10::SmallVector<Named, 3> inputs{{"x", packed(x)}};
  std::string formula = "y = select(x != x, x, x)";
  for (const bool is_least : {true, false}) {
    const at::Tensor bound = optional_at(*stack, 4, is_least ? 1 : 2);
    if (!bound.defined()) continue;
    if (!on_device(bound) || !is_float_kind(bound)) return "a bound of another type";
    inputs.push_back({is_least ? "low" : "high", packed(bound)});
    formula += is_least ? "; y = select(y != y, y, select(low != low, low, max(y, low)))"
                        : "; y = select(y != y, y, select(high != high, high, min(y, high)))";
  }
  const char* reason = run_formula("aten::clamp", formula.c_str(), out.sizes(), inputs, {{"y", out}}, {});
  return reason != nullptr ? reason : give(stack, 4, out);
}

/// linspace.out(start, end, steps, out): from both ends to the middle, so that both are met.
const char* spaced(const OperatorHandle&, Stack* stack) {
  const at::Tensor out = tensor_at(*stack, 4, 3);
  if (!on_device(out) || !is_float_kind(out)) return kNoType;
  for (const size_t i : {0, 1}) {
    if (!value_at(*stack, 4, i).isDouble() && !value_at(*stack, 4, i).isInt()) return "a number that is none";
  }
  const double start = value_at(*stack, 4, 0).toScalar().toDouble(), end = value_at(*stack, 4, 1).toScalar().toDouble();
  const int64_t count = value_at(*stack, 4, 2).toInt();
  if (count < 2 || count > 1 << 24) return "another number of numbers";
  if (out.numel() != count) out.resize_({count});
  if (!out.is_contiguous()) return "an out tensor that is not contiguous";
  const c10::DeviceGuard guard(out.device());
  const auto last = static_cast<double>(count - 1);
  const char* reason = run_formula(
      "aten::linspace", "select(lane < half, start + lane * step, end - (last - lane) * step)", {count}, {},
      {{"y", as_shape(out, {count})}},
      {{"half", static_cast<double>(count / 2)}, {"start", start}, {"step", (end - start) / last}, {"end", end},
       {"last", last}});
  return reason != nullptr ? reason : give(stack, 4, out);
}

}  // namespace

void add_bounds() {
  add_native("arange.start_out", "vector_program", range);
  add_native("linspace.out", "vector_program", spaced);
  add_native("clamp.out", "vector_program", clamp);
  add_native("clamp.Tensor_out", "vector_program", clamp_by_tensors);
}

}  // namespace opkit::npu
