// Operators that pick places by tensors of numbers, or by strides that run backwards: gather, index, scatter, flip.
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/_index_put_impl.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/scatter_add.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>

#include "block_width.h"
#include "aten/natives.h"
#include "opkit/direct_launch.h"
#include "aten/parts.h"

namespace opkit::npu {
namespace {

using kernels::ElementsPlan;

/// Whether all numbers are places of a dim: else the CPU says what is wrong with them.
bool are_places(const at::Tensor& numbers, int64_t size, bool takes_negative) {
  const auto check = [&](const auto* values) {
    for (int64_t i = 0; i < numbers.numel(); ++i) {
      if (values[i] >= size || values[i] < (takes_negative ? -size : 0)) return false;
    }
    return true;
  };
  return numbers.scalar_type() == at::kLong ? check(static_cast<const int64_t*>(numbers.data_ptr()))
                                            : check(static_cast<const int32_t*>(numbers.data_ptr()));
}

bool is_number_kind(const at::Tensor& numbers) {
  return on_device(numbers) && (numbers.scalar_type() == at::kLong || numbers.scalar_type() == at::kInt);
}

/// gather and the scatters: `plain` has the numbers' space, or is one value for all of it.
const char* along_dim(const char* op, uint32_t action, const at::Tensor& table, int64_t given_dim,
                      const at::Tensor& given_numbers, const at::Tensor& plain, at::IntArrayRef plain_strides) {
  const at::Tensor numbers = packed(given_numbers);
  if (!is_number_kind(numbers) || !on_device(table) || table.dim() == 0 || numbers.dim() != table.dim()) return kLayout;
  const int64_t dim = at::maybe_wrap_dim(given_dim, table.dim());
  for (int64_t d = 0; d < table.dim(); ++d) {
    if (d != dim && numbers.size(d) > table.size(d)) return "numbers that are larger than the table";
  }
  if (!are_places(numbers, table.size(dim), false)) return "an index outside of the tensor";
  Pick pick{numbers, Sizes(numbers.strides().begin(), numbers.strides().end()), table.size(dim), table.stride(dim)};
  Sizes strides(table.strides().begin(), table.strides().end());
  strides[dim] = 0;
  return move_by_index(op, action, table, 0, numbers.sizes(), strides, plain, plain_strides, pick);
}

/// gather.out(self, dim, index, sparse_grad, out)
const char* gather(const OperatorHandle&, Stack* stack) {
  const at::Tensor self = tensor_at(*stack, 5, 0), out = tensor_at(*stack, 5, 4);
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  at::assert_no_overlap(out, tensor_at(*stack, 5, 2));
  const c10::DeviceGuard guard(out.device());
  if (out.sizes() != tensor_at(*stack, 5, 2).sizes() || out.scalar_type() != self.scalar_type()) return kLayout;
  const char* reason = along_dim("aten::gather", ElementsPlan::kGather, self, value_at(*stack, 5, 1).toInt(),
                                 tensor_at(*stack, 5, 2), out, out.strides());
  return reason != nullptr ? reason : give(stack, 5, out);
}

/// A tensor of one value, to be seen at every place.
at::Tensor value_of(const at::Scalar& value, at::ScalarType type, const char** reason) {
  at::Tensor made = empty({1}, type);
  *reason = fill("aten::fill_", made, value);
  return made;
}

/// Copies self to out where they are two.
const char* begin_with(const at::Tensor& self, const at::Tensor& out) {
  if (!on_device(self) || self.sizes() != out.sizes() || self.scalar_type() != out.scalar_type()) return kLayout;
  if (out.data_ptr() == self.data_ptr()) return nullptr;
  return copy_or_reason(self, out);
}

/// Whether elements of 16 bits are added up: in float32, as on the CPU, so that sums are rounded once.
bool is_wide_sum(uint32_t action, const at::Tensor& self, const at::Tensor& source, const at::Tensor& out) {
  return action == ElementsPlan::kAdd && is_half_kind(out) && self.scalar_type() == out.scalar_type() &&
         source.scalar_type() == out.scalar_type() && self.sizes() == out.sizes() && source.numel() != 0 &&
         on_device(self) && on_device(source) && !may_overlap(source, out);
}

/// scatter.src_out, scatter.value_out, scatter_add.out: (self, dim, index, src or value, out)
const char* scatter(const char* op, uint32_t action, Stack* stack) {
  const at::Tensor self = tensor_at(*stack, 5, 0), numbers = tensor_at(*stack, 5, 2), out = tensor_at(*stack, 5, 4);
  const IValue& given = value_at(*stack, 5, 3);
  const c10::DeviceGuard guard(out.device());
  if (numbers.numel() == 0 || out.numel() == 0) return "an empty tensor";
  const char* reason = nullptr;
  at::Tensor source;
  Sizes strides(numbers.dim(), 0);
  if (given.isTensor()) {
    source = given.toTensor();
    if (is_wide_sum(action, self, source, out)) {
      const int64_t dim = value_at(*stack, 5, 1).toInt();
      out.copy_(at::scatter_add(self.to(at::kFloat), dim, numbers, source.to(at::kFloat)));
      return give_composed(stack, 5, out);
    }
    if (!on_device(source) || source.dim() != numbers.dim() || source.scalar_type() != out.scalar_type())
      return kLayout;
    for (int64_t d = 0; d < numbers.dim(); ++d) {
      if (source.size(d) < numbers.size(d)) return kLayout;
      strides[d] = source.stride(d);
    }
    if (may_overlap(source, out)) return "source and target overlap";
  } else {
    source = value_of(given.toScalar(), out.scalar_type(), &reason);
  }
  if (reason == nullptr && (numbers.dim() != out.dim() || !is_number_kind(numbers))) reason = kLayout;
  if (reason == nullptr) reason = begin_with(self, out);
  if (reason == nullptr) {
    reason = along_dim(op, action, out, value_at(*stack, 5, 1).toInt(), numbers, source, strides);
  }
  return reason != nullptr ? reason : give(stack, 5, out);
}

/// A tensor without the copies of its elements that an expanded dim shows: those have size 1.
at::Tensor told_once(const at::Tensor& tensor) {
  Sizes sizes(tensor.sizes().begin(), tensor.sizes().end());
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    if (tensor.stride(d) == 0) sizes[d] = std::min<int64_t>(sizes[d], 1);
  }
  return view_of(tensor, sizes, tensor.strides());
}

/// The space that an indexing by several tensors spans, and how the table lies in it.
struct Indexed {
  Sizes sizes;
  Sizes table_strides;
  c10::SmallVector<Pick, 4> picks;
};

using Indices = std::vector<std::optional<at::Tensor>>;

Indices indices_of(const IValue& given) {
  if (given.isOptionalTensorList()) return given.toOptionalTensorVector();
  Indices indices;
  for (const at::Tensor& tensor : given.toTensorVector()) indices.emplace_back(tensor);
  return indices;
}

/// Masks as the numbers of their places, one tensor for each of their dims; as they are where they do not fit.
Indices without_masks(const at::Tensor& table, const Indices& given) {
  Indices made;
  for (const auto& index : given) {
    const bool is_mask = index.has_value() && index->defined() && on_device(*index) && index->dim() > 0 &&
                         (index->scalar_type() == at::kBool || index->scalar_type() == at::kByte);
    if (!is_mask) {
      made.push_back(index);
      continue;
    }
    const auto first = static_cast<int64_t>(made.size());
    if (first + index->dim() > table.dim()) return given;
    for (int64_t d = 0; d < index->dim(); ++d) {
      if (index->size(d) != table.size(first + d)) return given;
    }
    const at::Tensor places = at::nonzero(*index);
    for (int64_t d = 0; d < index->dim(); ++d) made.emplace_back(packed(places.select(1, d)));
  }
  return made;
}

const char* index_space(const at::Tensor& table, const IValue& given, Indexed& space) {
  const Indices indices = without_masks(table, indices_of(given));
  if (static_cast<int64_t>(indices.size()) > table.dim()) return kLayout;
  Sizes common;
  int64_t first = -1, last = -1, count = 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i].has_value() || !indices[i]->defined()) continue;
    if (!is_number_kind(*indices[i])) return "an index that is a mask, or of another device";
    const auto both = at::infer_size_dimvector(common, indices[i]->sizes());
    common.assign(both.begin(), both.end());
    if (first < 0) first = static_cast<int64_t>(i);
    last = static_cast<int64_t>(i);
    ++count;
  }
  if (count == 0 || count > kernels::kMaxIndices) return "another number of indices than the kernel takes";
  const bool is_adjacent = last - first + 1 == count;
  // The picked dims stand where the first of them was if they stood together, else in front.
  int64_t at = 0;
  const auto picked_dims = [&] {
    at = static_cast<int64_t>(space.sizes.size());
    for (const int64_t size : common) space.sizes.push_back(size), space.table_strides.push_back(0);
  };
  if (!is_adjacent) picked_dims();
  for (int64_t d = 0; d < table.dim(); ++d) {
    const bool is_picked = d < static_cast<int64_t>(indices.size()) && indices[d].has_value() && indices[d]->defined();
    if (is_picked && is_adjacent && d == first) picked_dims();
    if (is_picked) continue;
    space.sizes.push_back(table.size(d));
    space.table_strides.push_back(table.stride(d));
  }
  at::ScalarType type = at::kInt;
  for (const auto& index : indices) {
    if (index.has_value() && index->defined() && index->scalar_type() == at::kLong) type = at::kLong;
  }
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i].has_value() || !indices[i]->defined()) continue;
    at::Tensor numbers = packed(told_once(*indices[i]));
    if (numbers.scalar_type() != type) {
      const at::Tensor wide = empty(numbers.sizes(), type);
      if (const char* reason = copy_or_reason(numbers, wide)) return reason;
      numbers = wide;
    }
    const auto d = static_cast<int64_t>(i);
    if (!are_places(numbers, table.size(d), true)) return "an index outside of the tensor";
    Pick pick{numbers, Sizes(space.sizes.size(), 0), table.size(d), table.stride(d)};
    const int64_t shift = static_cast<int64_t>(common.size()) - numbers.dim();
    for (int64_t k = 0; k < numbers.dim(); ++k) {
      if (numbers.size(k) != 1) pick.strides[at + shift + k] = numbers.stride(k);
    }
    space.picks.push_back(std::move(pick));
  }
  return nullptr;
}

/// index.Tensor_out(self, indices, out)
const char* index(const OperatorHandle&, Stack* stack) {
  const at::Tensor self = tensor_at(*stack, 3, 0), out = tensor_at(*stack, 3, 2);
  const c10::DeviceGuard guard(out.device());
  if (!on_device(self) || self.scalar_type() != out.scalar_type()) return kLayout;
  Indexed space;
  if (const char* reason = index_space(self, value_at(*stack, 3, 1), space)) return reason;
  if (out.sizes() != at::IntArrayRef(space.sizes)) return "an out tensor of another shape";
  const char* reason = move_by_index("aten::index", ElementsPlan::kGather, self, 0, space.sizes, space.table_strides,
                                     out, out.strides(), space.picks);
  return reason != nullptr ? reason : give(stack, 3, out);
}

/// index.Tensor(self, indices): by itself, for what PyTorch does before index.Tensor_out copies expanded indices.
const char* index_made(const OperatorHandle&, Stack* stack) {
  const at::Tensor self = tensor_at(*stack, 2, 0);
  if (!on_device(self)) return kLayout;
  const c10::DeviceGuard guard(self.device());
  Indexed space;
  if (const char* reason = index_space(self, value_at(*stack, 2, 1), space)) return reason;
  const at::Tensor out = empty(space.sizes, self.scalar_type());
  if (out.numel() == 0 && kind_of(self.scalar_type())) return give(stack, 2, out);
  const char* reason = move_by_index("aten::index", ElementsPlan::kGather, self, 0, space.sizes, space.table_strides,
                                     out, out.strides(), space.picks);
  return reason != nullptr ? reason : give(stack, 2, out);
}

/// The mask, where it is all that picks places; undefined else.
at::Tensor only_mask(const IValue& indices) {
  const Indices given = indices_of(indices);
  const bool is_one = given.size() == 1 && given[0].has_value() && given[0]->defined();
  return is_one && given[0]->scalar_type() == at::kBool && on_device(*given[0]) ? *given[0] : at::Tensor();
}

/// One value at all places of a mask, whose dims are the first of self's.
const char* put_by_mask(const at::Tensor& self, const at::Tensor& mask, const at::Tensor& value) {
  const at::ScalarType type = self.scalar_type();
  if (!kind_of(type) || type == at::kLong || type == at::kInt) return "whole numbers that floats do not hold";
  if (!self.is_contiguous() || self.numel() == 0 || mask.sizes() != self.sizes().slice(0, mask.dim())) return kLayout;
  // What is read elsewhere than it is written may be written first.
  const bool is_same = mask.data_ptr() == self.data_ptr() && mask.sizes() == self.sizes() && mask.is_contiguous();
  if (may_overlap(self, value) || (may_overlap(self, mask) && !is_same)) return "source and target overlap";
  const at::Tensor flags = packed(mask);
  Sizes sizes(flags.sizes().begin(), flags.sizes().end()), strides(flags.strides().begin(), flags.strides().end());
  sizes.resize(self.dim(), 1);
  strides.resize(self.dim(), 1);
  return run_formula("aten::index_put_", "select(m, v, x)", self.sizes(),
                     {{"m", view_of(flags, sizes, strides)}, {"v", view_of(value, {1}, {1})}, {"x", self}},
                     {{"y", self}}, {});
}

/// _index_put_impl_(self, indices, values, accumulate, unsafe)
const char* index_put(const OperatorHandle&, Stack* stack) {
  const at::Tensor self = tensor_at(*stack, 5, 0);
  at::Tensor values = tensor_at(*stack, 5, 2);
  const c10::DeviceGuard guard(self.device());
  if (values.device().is_cpu() && values.dim() == 0 && values.scalar_type() == self.scalar_type() &&
      kind_of(values.scalar_type())) {
    values = values.to(self.device());
  }
  const at::Tensor mask = only_mask(value_at(*stack, 5, 1));
  if (mask.defined() && mask.dim() <= self.dim() && on_device(values) && values.numel() == 1 &&
      values.scalar_type() == self.scalar_type() && !value_at(*stack, 5, 3).toBool()) {
    const char* reason = put_by_mask(self, mask, values);
    return reason != nullptr ? reason : give(stack, 5, self);
  }
  if (!on_device(values) || self.scalar_type() != values.scalar_type()) return kLayout;
  const uint32_t action = value_at(*stack, 5, 3).toBool() ? ElementsPlan::kAdd : ElementsPlan::kPut;
  if (is_wide_sum(action, self, values, self)) {
    c10::List<std::optional<at::Tensor>> places;
    for (const auto& index : indices_of(value_at(*stack, 5, 1))) places.push_back(index);
    self.copy_(
        at::_index_put_impl(self.to(at::kFloat), places, values.to(at::kFloat), true, value_at(*stack, 5, 4).toBool()));
    return give_composed(stack, 5, self);
  }
  if (may_overlap(self, values)) return "source and target overlap";
  Indexed space;
  if (const char* reason = index_space(self, value_at(*stack, 5, 1), space)) return reason;
  const int64_t shift = static_cast<int64_t>(space.sizes.size()) - values.dim();
  if (shift < 0) return kLayout;
  if (product_of(space.sizes) == 0 && at::is_expandable_to(values.sizes(), space.sizes)) return give(stack, 5, self);
  Sizes strides(space.sizes.size(), 0);
  for (int64_t d = 0; d < values.dim(); ++d) {
    if (values.size(d) == 1) continue;
    if (values.size(d) != space.sizes[d + shift]) return kLayout;
    strides[d + shift] = values.stride(d);
  }
  const char* reason = move_by_index("aten::index_put_", action, self, 0, space.sizes, space.table_strides, values,
                                     strides, space.picks);
  return reason != nullptr ? reason : give(stack, 5, self);
}

/// A number as a line of one.
at::Tensor as_line(const at::Tensor& tensor) { return tensor.dim() == 0 ? view_of(tensor, {1}, {1}) : tensor; }

/// Whole slices of a table by numbers along one dim; `plain` has the table's dims, that one as long as the numbers.
const char* slices(const char* op, uint32_t action, const at::Tensor& table, int64_t given_dim,
                   const at::Tensor& given_numbers, const at::Tensor& plain, at::IntArrayRef plain_strides) {
  const at::Tensor numbers = packed(given_numbers);
  if (!on_device(table) || table.dim() == 0 || !is_number_kind(numbers) || numbers.dim() > 1) return kLayout;
  const int64_t dim = at::maybe_wrap_dim(given_dim, table.dim());
  if (!are_places(numbers, table.size(dim), action == ElementsPlan::kPut)) return "an index outside of the tensor";
  Sizes sizes(table.sizes().begin(), table.sizes().end()), strides(table.strides().begin(), table.strides().end());
  sizes[dim] = numbers.numel();
  strides[dim] = 0;
  Pick pick{numbers, Sizes(table.dim(), 0), table.size(dim), table.stride(dim)};
  pick.strides[dim] = 1;
  return move_by_index(op, action, table, 0, sizes, strides, plain, plain_strides, pick);
}

/// index_select(self, dim, index)
const char* index_select(const OperatorHandle&, Stack* stack) {
  const at::Tensor self = tensor_at(*stack, 3, 0), numbers = tensor_at(*stack, 3, 2);
  if (!on_device(self) || self.dim() == 0) return kLayout;
  const c10::DeviceGuard guard(self.device());
  Sizes sizes(self.sizes().begin(), self.sizes().end());
  sizes[at::maybe_wrap_dim(value_at(*stack, 3, 1).toInt(), self.dim())] = numbers.numel();
  at::Tensor out = empty(sizes, self.scalar_type());
  const char* reason = slices("aten::index_select", ElementsPlan::kGather, self, value_at(*stack, 3, 1).toInt(),
                              numbers, out, out.strides());
  return reason != nullptr ? reason : give(stack, 3, out);
}

/// index_add.out(self, dim, index, source, alpha, out) and index_copy.out(self, dim, index, source, out)
const char* index_add(const char* op, uint32_t action, size_t arguments, Stack* stack) {
  const at::Tensor given = tensor_at(*stack, arguments, arguments - 1), numbers = tensor_at(*stack, arguments, 2);
  const at::Tensor self = as_line(tensor_at(*stack, arguments, 0)), source = as_line(tensor_at(*stack, arguments, 3));
  const at::Tensor out = as_line(given);
  const c10::DeviceGuard guard(out.device());
  if (arguments == 6) {
    const at::Scalar alpha = value_at(*stack, arguments, 4).toScalar();
    if (alpha.isComplex() || alpha.toDouble() != 1) return "a factor other than 1";
    if (is_wide_sum(action, self, source, out)) {
      const int64_t dim = value_at(*stack, arguments, 1).toInt();
      out.copy_(at::index_add(self.to(at::kFloat), dim, numbers, source.to(at::kFloat)));
      return give_composed(stack, arguments, given);
    }
  }
  if (!on_device(source) || source.dim() != self.dim() || source.scalar_type() != out.scalar_type() ||
      source.numel() == 0 || may_overlap(source, out)) {
    return kLayout;
  }
  const int64_t dim = at::maybe_wrap_dim(value_at(*stack, arguments, 1).toInt(), self.dim());
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (source.size(d) != (d == dim ? numbers.numel() : self.size(d))) return kLayout;
  }
  if (!is_number_kind(numbers) || !are_places(packed(numbers), self.size(dim), false))
    return "an index outside of the tensor";
  if (const char* reason = begin_with(self, out)) return reason;
  const char* reason = slices(op, action, out, dim, numbers, source, source.strides());
  return reason != nullptr ? reason : give(stack, arguments, given);
}

/// Of operators whose numbers PyTorch takes as int64 only: the CPU refuses the call.
constexpr const char* kNotLong = "numbers of another type than int64";

/// index_fill_.int_Scalar(self, dim, index, value)
const char* index_fill(const OperatorHandle&, Stack* stack) {
  const at::Tensor given = tensor_at(*stack, 4, 0);
  if (!on_device(given) || given.numel() == 0) return kLayout;
  if (tensor_at(*stack, 4, 2).scalar_type() != at::kLong) return kNotLong;
  const at::Tensor self = as_line(given);
  const c10::DeviceGuard guard(self.device());
  const char* reason = nullptr;
  const at::Tensor value = value_of(value_at(*stack, 4, 3).toScalar(), self.scalar_type(), &reason);
  if (reason == nullptr) {
    reason = slices("aten::index_fill_", ElementsPlan::kPut, self, value_at(*stack, 4, 1).toInt(),
                    tensor_at(*stack, 4, 2), value, Sizes(self.dim(), 0));
  }
  return reason != nullptr ? reason : give(stack, 4, given);
}

/// take(self, index): of the elements in their order.
const char* take(const OperatorHandle&, Stack* stack) {
  const at::Tensor self = packed(tensor_at(*stack, 2, 0)), numbers = packed(tensor_at(*stack, 2, 1));
  if (numbers.scalar_type() != at::kLong) return kNotLong;
  if (!on_device(self) || !are_places(numbers, self.numel(), true)) return kLayout;
  const c10::DeviceGuard guard(self.device());
  at::Tensor out = empty(numbers.sizes(), self.scalar_type());
  Pick pick{numbers, Sizes(numbers.strides().begin(), numbers.strides().end()), self.numel(), 1};
  const char* reason = move_by_index("aten::take", ElementsPlan::kGather, self, 0, numbers.sizes(),
                                     Sizes(numbers.dim(), 0), out, out.strides(), pick);
  return reason != nullptr ? reason : give(stack, 2, out);
}

/// flip(self, dims): strides that run backwards.
const char* flip(const OperatorHandle&, Stack* stack) {
  const at::Tensor self = tensor_at(*stack, 2, 0);
  const uint64_t mask = value_at(*stack, 2, 1).toIntVector().empty() ? 0 : dims_of(value_at(*stack, 2, 1), self.dim());
  const c10::DeviceGuard guard(self.device());
  at::Tensor out = empty(self.sizes(), self.scalar_type());
  Sizes strides(self.strides().begin(), self.strides().end());
  int64_t offset = 0;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if ((mask >> d & 1) == 0 || self.size(d) == 0) continue;
    offset += strides[d] * (self.size(d) - 1);
    strides[d] = -strides[d];
  }
  const char* reason =
      move_by_index("aten::flip", ElementsPlan::kGather, self, offset, self.sizes(), strides, out, out.strides(), {});
  return reason != nullptr ? reason : give(stack, 2, out);
}

/// roll(self, shifts, dims): two pieces along each dim.
const char* roll(const OperatorHandle&, Stack* stack) {
  at::Tensor x = packed(tensor_at(*stack, 3, 0));
  auto shifts = value_at(*stack, 3, 1).toIntVector(), dims = value_at(*stack, 3, 2).toIntVector();
  const c10::DeviceGuard guard(x.device());
  const c10::SmallVector<int64_t, 8> shape(x.sizes().begin(), x.sizes().end());
  if (x.numel() == 0 || x.dim() == 0) return "an empty tensor";
  if (dims.empty() && shifts.size() == 1) x = as_shape(x, {x.numel()}), dims = {0};
  if (shifts.empty() || dims.size() != shifts.size()) return kLayout;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t d = at::maybe_wrap_dim(dims[i], x.dim()), size = x.size(d);
    const int64_t shift = (shifts[i] % size + size) % size;
    const at::Tensor made = empty(x.sizes(), x.scalar_type());
    Sizes part(x.sizes().begin(), x.sizes().end());
    for (const bool is_front : {true, false}) {
      part[d] = is_front ? shift : size - shift;
      if (part[d] == 0) continue;
      const int64_t from = is_front ? size - shift : 0, to = is_front ? 0 : shift;
      if (const char* reason = copy_or_reason(view_of(x, part, x.strides(), from * x.stride(d)),
                                              view_of(made, part, made.strides(), to * made.stride(d)))) {
        return reason;
      }
    }
    x = made;
  }
  at::Tensor out = empty(shape, x.scalar_type());
  if (const char* reason = copy_or_reason(as_shape(x, shape), out)) return reason;
  return give(stack, 3, out);
}

}  // namespace

const char* move_by_index(const char* op, uint32_t action, const at::Tensor& table, int64_t table_offset,
                          at::IntArrayRef sizes, at::IntArrayRef table_strides, const at::Tensor& plain,
                          at::IntArrayRef plain_strides, c10::ArrayRef<Pick> picks) {
  if (table.element_size() > 8 || (action == ElementsPlan::kAdd && !kind_of(table.scalar_type()))) return kNoType;
  for (const int64_t size : sizes) {
    if (size == 0) return nullptr;
  }
  ElementsPlan plan{};
  plan.element_bytes = static_cast<uint32_t>(table.element_size());
  plan.action = action;
  plan.kind = static_cast<uint32_t>(kind_of(table.scalar_type()).value_or(kernels::Kind::F32));
  plan.index_count = static_cast<uint32_t>(picks.size());
  plan.table_offset = table_offset;
  for (int64_t& size : plan.sizes) size = 1;
  uint32_t dims = 0;
  for (size_t k = sizes.size(); k-- > 0;) {
    if (sizes[k] == 1) continue;
    bool can_merge = dims > 0 && table_strides[k] == plan.table_strides[dims - 1] * plan.sizes[dims - 1] &&
                     plain_strides[k] == plan.plain_strides[dims - 1] * plan.sizes[dims - 1];
    for (size_t i = 0; i < picks.size() && can_merge; ++i) {
      can_merge = picks[i].strides[k] == plan.indices[i].strides[dims - 1] * plan.sizes[dims - 1];
    }
    if (can_merge) {
      plan.sizes[dims - 1] *= sizes[k];
      continue;
    }
    if (dims == kernels::kCopyDims) return "more dims than the kernel takes";
    plan.sizes[dims] = sizes[k];
    plan.table_strides[dims] = table_strides[k];
    plan.plain_strides[dims] = plain_strides[k];
    for (size_t i = 0; i < picks.size(); ++i) plan.indices[i].strides[dims] = picks[i].strides[k];
    ++dims;
  }
  plan.has_rows = plan.sizes[0] > 1 && plan.table_strides[0] == 1 && plan.plain_strides[0] == 1 &&
                  (action != ElementsPlan::kAdd || table.scalar_type() == at::kFloat);
  void* pointers[2 + kernels::kMaxIndices] = {table.data_ptr(), plain.data_ptr()};
  const bool reads_table = action != ElementsPlan::kPut;
  c10::SmallVector<Range, 6> ranges{{table.data_ptr(), extent_of(table), true},
                                    {plain.data_ptr(), extent_of(plain), action != ElementsPlan::kGather}};
  (void)reads_table;
  for (size_t i = 0; i < picks.size(); ++i) {
    plan.has_rows &= plan.indices[i].strides[0] == 0;
    plan.indices[i].size = picks[i].size;
    plan.indices[i].table_stride = picks[i].table_stride;
    plan.index_bytes = static_cast<uint32_t>(picks[i].numbers.element_size());
    pointers[2 + i] = picks[i].numbers.data_ptr();
    ranges.push_back({pointers[2 + i], extent_of(picks[i].numbers), true});
  }
  int64_t rows = 1;
  for (uint32_t d = 1; d < kernels::kCopyDims; ++d) rows *= plan.sizes[d];
  // Two numbers may name one place: what is put there goes in order, on one core.
  const int64_t most = action == ElementsPlan::kGather ? vector_cores() : 1;
  int64_t units = 0;
  // Cycles of an element that is picked by Gather, with its number, and of one that the scalar unit puts.
  // Masks are two instructions for each place and 64 elements.
  const double cycles = action == ElementsPlan::kGather ? 1
                        : kernels::is_by_masks(plan)    ? 1 + static_cast<double>(plan.indices[0].size) / 16
                                                        : 24;
  const auto elements = static_cast<double>(rows * plan.sizes[0]);
  const opkit_core_work work{elements * cycles, elements * static_cast<double>(plan.element_bytes), 0};
  const int64_t worth = opkit_fair_cores(&work);
  plan.width = kernels::block_width(plan, worth, units);
  // One that the scalar unit goes to takes some hundred cycles.
  constexpr int64_t kLeastWork = 64;
  const bool is_shared = action == ElementsPlan::kGather && !plan.has_rows;
  const int64_t parts = std::min(is_shared ? rows * plan.sizes[0] : rows, rows * plan.sizes[0] / kLeastWork);
  const auto blocks =
      static_cast<uint32_t>(plan.width > 0 ? std::min(units, worth) : std::clamp<int64_t>(parts, 1, most));
  launch("move_by_index", op, pointers, ranges, &plan, sizeof(plan), blocks, table.device().index());
  return nullptr;
}

void add_indexing() {
  constexpr const char* kKernel = "move_by_index";
  add_native("gather.out", kKernel, gather);
  const auto add_scatter = [](const char* name, const char* op, uint32_t action) {
    add_native(name, kKernel, [=](const OperatorHandle&, Stack* stack) { return scatter(op, action, stack); });
  };
  add_scatter("scatter.src_out", "aten::scatter", ElementsPlan::kPut);
  add_scatter("scatter.value_out", "aten::scatter", ElementsPlan::kPut);
  add_scatter("scatter_add.out", "aten::scatter_add", ElementsPlan::kAdd);
  add_native("index.Tensor", kKernel, index_made);
  add_native("index.Tensor_out", kKernel, index);
  add_native("_index_put_impl_", kKernel, index_put);
  add_native("index_select", kKernel, index_select);
  add_native("index_add.out", kKernel, [](const OperatorHandle&, Stack* stack) {
    return index_add("aten::index_add", ElementsPlan::kAdd, 6, stack);
  });
  add_native("index_copy.out", kKernel, [](const OperatorHandle&, Stack* stack) {
    return index_add("aten::index_copy", ElementsPlan::kPut, 5, stack);
  });
  add_native("index_fill_.int_Scalar", kKernel, index_fill);
  add_native("take", kKernel, take);
  add_native("flip", kKernel, flip);
  add_native("roll", "copy_strided", roll);
}

}  // namespace opkit::npu
