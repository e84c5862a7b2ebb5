// Operators on lists of tensors (torch._foreach_*): one launch for a list where its tensors lie alike.
#include <ATen/ops/_local_scalar_dense_native.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/fallback.h"
#include "aten/natives.h"
#include "aten/parts.h"

namespace opkit::npu {
namespace {

constexpr size_t kMostNames = 4;

/// An operator on lists as the element-wise one that each tensor goes through; `names` are those of its formula for
/// the list operator's arguments, in order.
struct ListRow {
  const char* op;
  const char* elementwise;
  const char* names[kMostNames];
  const char* overloads[4];
};

constexpr ListRow kListRows[] = {
    {"add", "add.out", {"self", "other", "alpha"}, {"Scalar", "List", "ScalarList", "Tensor"}},
    {"sub", "sub.out", {"self", "other", "alpha"}, {"Scalar", "List", "ScalarList"}},
    {"mul", "mul.out", {"self", "other"}, {"Scalar", "List", "ScalarList", "Tensor"}},
    {"div", "div.out", {"self", "other"}, {"Scalar", "List", "ScalarList", "Tensor"}},
    {"maximum", "maximum.out", {"self", "other"}, {"Scalar", "List", "ScalarList"}},
    {"minimum", "minimum.out", {"self", "other"}, {"Scalar", "List", "ScalarList"}},
    {"clamp_min", "clamp_min.Tensor_out", {"self", "min"}, {"Scalar", "List", "ScalarList"}},
    {"clamp_max", "clamp_max.Tensor_out", {"self", "max"}, {"Scalar", "List", "ScalarList"}},
    {"addcmul", "addcmul.out", {"self", "tensor1", "tensor2", "value"}, {"Scalar", "ScalarList", "Tensor"}},
    {"addcdiv", "addcdiv.out", {"self", "tensor1", "tensor2", "value"}, {"Scalar", "ScalarList", "Tensor"}},
    {"lerp", "lerp.Tensor_out", {"self", "end", "weight"}, {"Scalar", "List", "ScalarList"}},
};
constexpr const char* kListFunctions[] = {"abs",  "acos", "asin",       "atan",  "ceil",  "cos",     "cosh",  "erf",
                                          "erfc", "exp",  "expm1",      "floor", "frac",  "log",     "log10", "log1p",
                                          "log2", "neg",  "reciprocal", "round", "rsqrt", "sigmoid", "sign",  "sin",
                                          "sinh", "sqrt", "tan",        "tanh",  "trunc"};

using Tensors = std::vector<at::Tensor>;

/// A number of the host, a tensor that holds one, or a list that has it again and again.
std::optional<double> number_of_list(const IValue& value) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (tensor.numel() != 1 || !at::isFloatingType(tensor.scalar_type())) return std::nullopt;
    if (!on_device(tensor) && !tensor.device().is_cpu()) return std::nullopt;
    return at::native::_local_scalar_dense_cpu(on_device(tensor) ? as_cpu(tensor) : tensor).toDouble();
  }
  if (value.isBool()) return std::nullopt;  // not every operator takes one
  if (value.isScalar()) return value.isComplexDouble() ? std::nullopt : std::optional(value.toScalar().toDouble());
  if (!value.isList()) return std::nullopt;
  const auto list = value.toListRef();
  if (list.empty()) return std::nullopt;
  for (const IValue& each : list) {
    if (each.isBool() || each.isComplexDouble() || each.toScalar().toDouble() != list[0].toScalar().toDouble())
      return std::nullopt;
  }
  return list[0].toScalar().toDouble();
}

/// Whether each tensor of a list that is written shares memory with those of the same place in other lists only: what
/// a launch reads and writes at once, a loop does in order.
bool lie_apart(const Tensors& written, c10::ArrayRef<Tensors> lists) {
  struct Place {
    const char* begin;
    const char* end;
    size_t number;
  };
  const auto place_of = [](const at::Tensor& tensor, size_t number) {
    const auto* begin = static_cast<const char*>(tensor.data_ptr());
    return Place{begin, begin + (tensor.numel() == 0 ? 0 : extent_of(tensor)), number};
  };
  std::vector<Place> places;
  for (size_t i = 0; i < written.size(); ++i) places.push_back(place_of(written[i], i));
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < places.size(); ++i) {
    if (places[i].begin < places[i - 1].end) return false;
  }
  for (const Tensors& list : lists) {
    for (size_t i = 0; i < list.size(); ++i) {
      const Place own = place_of(list[i], i);
      // The last one that begins before this one's end: those before it end before it begins.
      auto found = std::lower_bound(places.begin(), places.end(), own.end,
                                    [](const Place& place, const char* end) { return place.begin < end; });
      if (found == places.begin()) continue;
      --found;
      if (found->end > own.begin && (found->number != i || found->begin != own.begin)) return false;
    }
  }
  return true;
}

/// Whether lists of floats lie alike, so that a line of elements stands for a tensor of each.
bool are_lines(c10::ArrayRef<Tensors> lists) {
  const Tensors& first = lists[0];
  if (first.empty() || !first[0].defined()) return false;
  const bool is_float = is_float_kind(first[0]);
  for (const Tensors& list : lists) {
    if (list.size() != first.size()) return false;
    for (size_t i = 0; i < list.size(); ++i) {
      const at::Tensor &a = first[i], &b = list[i];
      if (!is_float || !on_device(b) || b.device() != first[0].device()) return false;
      if (b.scalar_type() != first[0].scalar_type() || b.is_neg()) return false;
      if (a.sizes() != b.sizes() || a.strides() != b.strides() || !b.is_non_overlapping_and_dense()) return false;
    }
  }
  return true;
}

Tensors empty_like_list(const Tensors& like) {
  Tensors made;
  for (const at::Tensor& tensor : like) {
    made.push_back(at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options()));
  }
  return made;
}

/// PyTorch's own way: an operator for each tensor.
const char* one_by_one(const OperatorHandle& op, Stack* stack) {
  op.callBoxedForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd, *stack);
  return kDecomposed;
}

const char* serve_list(const std::string& name, const char* formula, c10::ArrayRef<const char*> names, bool is_in_place,
                       const OperatorHandle& op, Stack* stack) {
  const size_t count = op.schema().arguments().size();
  std::vector<Tensors> lists;
  c10::SmallVector<const char*, kMostNames> list_names;
  c10::SmallVector<std::pair<const char*, double>, kMostNames> numbers;
  for (size_t i = 0; i < count; ++i) {
    const IValue& value = value_at(*stack, count, i);
    if (value.isTensorList()) {
      lists.push_back(value.toTensorVector());
      list_names.push_back(names[i]);
      continue;
    }
    const auto number = number_of_list(value);
    if (!number) return one_by_one(op, stack);
    numbers.push_back({names[i], *number});
  }
  // `alpha` of add and sub, which not every overload has.
  if (names.back() == std::string_view("alpha") && count < names.size()) numbers.push_back({names.back(), 1.0});
  if (!are_lines(lists) || (is_in_place && !lie_apart(lists[0], lists))) return one_by_one(op, stack);
  const c10::DeviceGuard guard(lists[0][0].device());
  const Tensors out = is_in_place ? lists[0] : empty_like_list(lists[0]);
  c10::SmallVector<NamedList, kMostNames> inputs;
  for (size_t i = 0; i < lists.size(); ++i) inputs.push_back({list_names[i], lists[i]});
  const char* reason = run_list_formula(name.c_str(), formula, inputs, NamedList{"out", out}, numbers);
  if (reason != nullptr) return one_by_one(op, stack);
  return is_in_place ? give(stack, count) : give(stack, count, out);
}

/// _foreach_zero_(self)
const char* zero_list(const OperatorHandle& op, Stack* stack) {
  const Tensors self = value_at(*stack, 1, 0).toTensorVector();
  if (!are_lines(self)) return one_by_one(op, stack);
  const c10::DeviceGuard guard(self[0].device());
  const char* reason = run_list_formula("aten::_foreach_zero_", "zero", {}, NamedList{"out", self}, {{"zero", 0.0}});
  return reason != nullptr ? one_by_one(op, stack) : give(stack, 1);
}

/// _foreach_norm.Scalar(self, ord, dtype)
const char* norm_list(const OperatorHandle& op, Stack* stack) {
  const Tensors self = value_at(*stack, 3, 0).toTensorVector();
  const auto order = number_of_list(value_at(*stack, 3, 1));
  const bool is_sum = order == 1.0 || order == 2.0;
  const bool is_empty = std::any_of(self.begin(), self.end(), [](const at::Tensor& x) { return x.numel() == 0; });
  if (!(is_sum || order == INFINITY) || !value_at(*stack, 3, 2).isNone() || is_empty || !are_lines(self)) {
    return one_by_one(op, stack);
  }
  const c10::DeviceGuard guard(self[0].device());
  Tensors out;
  for (size_t i = 0; i < self.size(); ++i) out.push_back(empty({}, self[0].scalar_type()));
  const char* reason = run_list_formula("aten::_foreach_norm", order == 2.0 ? "sqrt(fold(x * x))" : "fold(abs(x)) + 0",
                                        NamedList{"x", self}, NamedList{"out", out}, {},
                                        is_sum ? kernels::Fold::Sum : kernels::Fold::Max);
  return reason != nullptr ? one_by_one(op, stack) : give(stack, 3, out);
}

void add_list(const char* function, const char* overload, const char* elementwise, std::vector<const char*> names) {
  const char* formula = elementwise_formula(elementwise);
  for (const bool is_in_place : {false, true}) {
    const std::string op = std::string("_foreach_") + function + (is_in_place ? "_" : "");
    add_native(op + overload, "vector_list",
               [name = "aten::" + op, formula, names, is_in_place](const OperatorHandle& handle, Stack* stack) {
                 return serve_list(name, formula, names, is_in_place, handle, stack);
               });
  }
}

}  // namespace

void add_foreach() {
  for (const ListRow& row : kListRows) {
    const auto end = std::find(std::begin(row.names), std::end(row.names), nullptr);
    for (const char* overload : row.overloads) {
      if (overload == nullptr) continue;
      add_list(row.op, (std::string(".") + overload).c_str(), row.elementwise,
               std::vector<const char*>(std::begin(row.names), end));
    }
  }
  for (const char* function : kListFunctions) {
    add_list(function, "", (std::string(function) + ".out").c_str(), {"self"});
  }
  add_native("_foreach_zero_", "vector_list", zero_list);
  add_native("_foreach_norm.Scalar", "vector_list", norm_list);
}

}  // namespace opkit::npu
