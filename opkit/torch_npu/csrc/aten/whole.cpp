// Operators of whole numbers that others of them make up.
#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/add.h>
#include <ATen/ops/any.h>
#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/floor_divide.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/le.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/max.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/take.h>
#include <ATen/ops/tril.h>
#include <ATen/ops/triu.h>
#include <ATen/ops/where.h>
#include <c10/core/DeviceGuard.h>

#include "aten/natives.h"
#include "aten/parts.h"

namespace opkit::npu {
namespace {

bool is_whole_kind(at::ScalarType type) {
  return type == at::kByte || type == at::kChar || type == at::kShort || type == at::kInt || type == at::kLong;
}

/// Two operands of whole numbers as int64 of the result's shape; a reason where they are none.
const char* read_pair(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out, at::Tensor& x, at::Tensor& y) {
  if (!on_device(out) || !is_whole_kind(out.scalar_type()) || at::result_type(a, b) != out.scalar_type())
    return kNoType;
  if (!is_whole_kind(a.scalar_type()) || !is_whole_kind(b.scalar_type())) return kNoType;
  if (out.numel() == 0 || out.numel() > kWholeLimit) return kTooManyWhole;
  if (at::infer_size_dimvector(a.sizes(), b.sizes()) != out.sizes()) return "an out tensor of another shape";
  x = packed(a.to(out.device(), at::kLong).expand(out.sizes()));
  y = packed(b.to(out.device(), at::kLong).expand(out.sizes()));
  return nullptr;
}

/// div.out_mode(self, other, rounding_mode, out), cut off behind the point
const char* divide(const OperatorHandle&, Stack* stack) {
  const at::Tensor out = tensor_at(*stack, 4, 3);
  const IValue& mode = value_at(*stack, 4, 2);
  if (mode.isNone() || mode.toStringRef() != "trunc") return "another mode than this one";
  const c10::DeviceGuard guard(out.device());
  at::Tensor x, y;
  if (const char* reason = read_pair(tensor_at(*stack, 4, 0), tensor_at(*stack, 4, 1), out, x, y)) return reason;
  if (at::any(at::eq(y, 0)).item<bool>()) return "a division by 0";
  const at::Tensor below = at::floor_divide(x, y);
  const at::Tensor is_between = at::bitwise_and(at::ne(at::remainder(x, y), 0), at::ne(at::lt(x, 0), at::lt(y, 0)));
  out.copy_(at::add(below, is_between.to(at::kLong)));
  return give_composed(stack, 4, out);
}

/// 2 to the power of each number from 0 to 62.
at::Tensor power_of_two(const at::Tensor& exponents) {
  const at::Tensor powers = at::detail::empty_cpu({63}, at::kLong);
  for (int64_t i = 0; i < 63; ++i) powers.mutable_data_ptr<int64_t>()[i] = int64_t{1} << i;
  return at::take(powers.to(exponents.device()), exponents);
}

/// bitwise_left_shift.Tensor_out(self, other, out) and bitwise_right_shift.Tensor_out
const char* shift(bool is_left, const OperatorHandle&, Stack* stack) {
  const at::Tensor out = tensor_at(*stack, 3, 2);
  if (!on_device(out)) return kNoType;
  const c10::DeviceGuard guard(out.device());
  at::Tensor x, y;
  if (const char* reason = read_pair(tensor_at(*stack, 3, 0), tensor_at(*stack, 3, 1), out, x, y)) return reason;
  const auto bits = static_cast<int64_t>(8 * out.element_size());
  const at::Tensor is_within = at::bitwise_and(at::ge(y, 0), at::lt(y, bits));
  // By halves: 2 to the 63rd is no int64. Beyond its bits a number is 0, or what its sign leaves.
  const int64_t all = is_left ? 0 : out.scalar_type() == at::kByte ? bits : bits - 1;
  const at::Tensor by = at::where(is_within, y, at::Scalar(all));
  const at::Tensor half = at::floor_divide(by, 2), rest = at::sub(by, half);
  const at::Tensor first = power_of_two(half), second = power_of_two(rest);
  at::Tensor made = is_left ? at::mul(at::mul(x, first), second) : at::floor_divide(at::floor_divide(x, first), second);
  if (is_left) made = at::where(is_within, made, at::Scalar(0));
  out.copy_(made);
  return give_composed(stack, 3, out);
}

/// pow.Tensor_Tensor_out(self, exponent, out), by squares
const char* power(const OperatorHandle&, Stack* stack) {
  const at::Tensor out = tensor_at(*stack, 3, 2);
  if (!on_device(out)) return kNoType;
  const c10::DeviceGuard guard(out.device());
  at::Tensor x, y;
  if (const char* reason = read_pair(tensor_at(*stack, 3, 0), tensor_at(*stack, 3, 1), out, x, y)) return reason;
  const at::Tensor is_odd = at::ne(at::remainder(y, 2), 0), is_below = at::lt(y, 0);
  at::Tensor made = at::ones_like(x), square = x, rest = at::clamp(y, 0);
  for (auto most = at::max(rest).item<int64_t>(); most > 0; most /= 2) {
    made = at::where(at::ne(at::remainder(rest, 2), 0), at::mul(made, square), made);
    square = at::mul(square, square);
    rest = at::floor_divide(rest, 2);
  }
  // 1 over a number is one only for 1 and -1.
  const at::Tensor ones = at::ones_like(x);
  const at::Tensor turned = at::where(at::bitwise_and(at::eq(x, -1), is_odd), at::mul(ones, -1), ones);
  const at::Tensor is_one = at::eq(at::mul(x, x), 1);
  out.copy_(at::where(is_below, at::where(is_one, turned, at::Scalar(0)), made));
  return give_composed(stack, 3, out);
}

/// sum.IntList_out(self, dim, keepdim, dtype, out) into floats, or into the narrowest whole numbers
const char* sum_into(const OperatorHandle&, Stack* stack) {
  constexpr size_t kArguments = 5;
  const at::Tensor x = tensor_at(*stack, kArguments, 0), out = tensor_at(*stack, kArguments, 4);
  if (!on_device(x) || !on_device(out) || !is_whole_kind(x.scalar_type()) || x.numel() == 0) return kNoType;
  const bool is_float = is_float_kind(out);
  if (!is_float && out.scalar_type() != at::kChar) return kNoType;
  const c10::DeviceGuard guard(x.device());
  const IValue& given = value_at(*stack, kArguments, 1);
  const at::OptionalIntArrayRef none;
  const auto dims = given.isNone() ? std::vector<int64_t>{} : given.toIntVector();
  const at::Tensor wide = x.to(is_float ? out.scalar_type() : at::kLong);
  const bool keeps = value_at(*stack, kArguments, 2).toBool();
  return give_into(stack, kArguments, at::sum(wide, given.isNone() ? none : at::OptionalIntArrayRef(dims), keeps), out);
}

/// equal(self, other) -> bool
const char* equal_whole(const OperatorHandle&, Stack* stack) {
  const at::Tensor a = tensor_at(*stack, 2, 0), b = tensor_at(*stack, 2, 1);
  if (!on_device(a) || a.device() != b.device() || a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type() ||
      !is_whole_kind(a.scalar_type()) || a.numel() == 0 || a.numel() > kWholeLimit) {
    return kLayout;
  }
  const c10::DeviceGuard guard(a.device());
  return give_composed(stack, 2, !at::any(at::ne(a, b)).item<bool>());
}

/// tril.out(self, diagonal, out) and triu.out
const char* triangle_whole(bool is_lower, const OperatorHandle&, Stack* stack) {
  const at::Tensor x = tensor_at(*stack, 3, 0), out = tensor_at(*stack, 3, 2);
  if (!on_device(x) || !on_device(out) || x.dim() < 2 || x.scalar_type() != out.scalar_type() ||
      !is_whole_kind(x.scalar_type()) || x.numel() == 0 || x.numel() > kWholeLimit ||
      at::has_internal_overlap(out) != at::MemOverlap::No) {
    return kLayout;  // elements that share memory: the CPU, which has them in some order
  }
  const c10::DeviceGuard guard(x.device());
  const int64_t diagonal = value_at(*stack, 3, 1).toInt();
  const at::Tensor all = at::ones({x.size(-2), x.size(-1)}, x.options().dtype(at::kFloat));
  const at::Tensor mask = at::ne(is_lower ? at::tril(all, diagonal) : at::triu(all, diagonal), 0);
  return give_into(stack, 3, at::where(mask, x, at::Scalar(0)), out);
}

void add_behind_all(const std::string& op, int priority, Serve serve) {
  add_kernel({"aten::" + op, "composed", priority, "", std::nullopt, std::move(serve)});
}

}  // namespace

void add_whole() {
  add_behind_all("div.out_mode", -2, divide);
  add_behind_all("pow.Tensor_Tensor_out", -2, power);
  add_behind_all("sum.IntList_out", -2, sum_into);
  add_behind_all("equal", -2, equal_whole);
  for (const bool is_first : {true, false}) {
    add_behind_all(is_first ? "tril.out" : "triu.out", -2,
                   [=](const OperatorHandle& op, Stack* stack) { return triangle_whole(is_first, op, stack); });
    add_native(is_first ? "bitwise_left_shift.Tensor_out" : "bitwise_right_shift.Tensor_out", "composed",
               [=](const OperatorHandle& op, Stack* stack) { return shift(is_first, op, stack); });
  }
}

}  // namespace opkit::npu
