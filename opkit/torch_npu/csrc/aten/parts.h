/// What the operators that are more than one formula are made of: calls on a stack, views, formulas over broadcast
/// operands, copies, reductions and products.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/util/SmallVector.h>

#include <utility>
#include <vector>

#include "runtime/device.h"
#include "runtime/launch.h"
#include "runtime/registry.h"

namespace opkit::npu {

using c10::IValue;
using c10::OperatorHandle;
using c10::Stack;
/// One number for each dim.
using Sizes = c10::SmallVector<int64_t, 8>;

constexpr const char* kNoType = "the chip has no such data type";
constexpr const char* kLayout = "another layout than the kernel takes";
constexpr const char* kSizes = "sizes that do not fit";
constexpr const char* kParameters = "weights of other sizes or types";

inline const at::Tensor& tensor_at(const Stack& stack, size_t count, size_t i) {
  return stack[stack.size() - count + i].toTensor();
}
inline const IValue& value_at(const Stack& stack, size_t count, size_t i) { return stack[stack.size() - count + i]; }
/// The tensor of an optional argument; undefined where there is none.
inline at::Tensor optional_at(const Stack& stack, size_t count, size_t i) {
  const IValue& value = value_at(stack, count, i);
  return value.isNone() ? at::Tensor() : value.toTensor();
}
/// Puts the results in place of the arguments.
template <typename... Results>
const char* give(Stack* stack, size_t count, Results&&... results) {
  torch::jit::drop(*stack, count);
  (stack->emplace_back(std::forward<Results>(results)), ...);
  return nullptr;
}

/// The same, for a call that other operators have done.
template <typename... Results>
const char* give_composed(Stack* stack, size_t count, Results&&... results) {
  give(stack, count, std::forward<Results>(results)...);
  return kDecomposed;
}

/// The same, with the result in a tensor of the caller's.
inline const char* give_into(Stack* stack, size_t count, const at::Tensor& made, const at::Tensor& out) {
  if (out.sizes() != made.sizes()) out.resize_(made.sizes());
  out.copy_(made);
  return give_composed(stack, count, out);
}

inline bool on_device(const at::Tensor& tensor) { return tensor.defined() && tensor.device().type() == kDevice; }
inline bool is_float_kind(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kHalf ||
         tensor.scalar_type() == at::kBFloat16;
}
inline bool is_half_kind(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16;
}
inline at::Tensor packed(const at::Tensor& tensor) { return tensor.is_contiguous() ? tensor : tensor.contiguous(); }

/// Whether the weights of a normalisation, those that are there, have these sizes and one type that goes with the
/// input's: the same, or float beside half types. What else there is the CPU takes or refuses.
bool are_parameters_of(const at::Tensor& x, at::IntArrayRef sizes, c10::ArrayRef<at::Tensor> parameters);

/// A new tensor on this thread's device.
at::Tensor empty(at::IntArrayRef sizes, at::ScalarType type);
/// A view of a tensor: its memory, other sizes and strides; it begins `offset` elements further.
at::Tensor view_of(const at::Tensor& tensor, at::IntArrayRef sizes, at::IntArrayRef strides, int64_t offset = 0);
/// A packed tensor's memory with other sizes, of as many elements.
at::Tensor as_shape(const at::Tensor& tensor, at::IntArrayRef sizes);
/// Bytes from the first element to the last.
uint64_t extent_of(const at::Tensor& tensor);
bool may_overlap(const at::Tensor& a, const at::Tensor& b);
/// The product of the sizes from `begin` on.
int64_t product_of(at::IntArrayRef sizes, size_t begin = 0);

struct Named {
  const char* name;
  at::Tensor tensor;
};

/// Runs a formula (program.h) over `shape`: inputs are broadcast to it, outputs have it, or 1 where the formula folds
/// or ends a row. `folded`: a bit for each dim of `shape` that is folded; `is_whole`: on the scalar unit, in 64 bits. A
/// reason where the kernel cannot.
const char* run_formula(const char* op, const char* formula, at::IntArrayRef shape, c10::ArrayRef<Named> inputs,
                        c10::ArrayRef<Named> outputs, c10::ArrayRef<std::pair<const char*, double>> numbers,
                        kernels::Fold fold = kernels::Fold::None, uint64_t folded = 0, bool is_whole = false);
/// Tensors of one type, each as one line of elements.
struct NamedList {
  const char* name;
  std::vector<at::Tensor> tensors;
};
/// Runs a formula over the lines of several lists in one launch, first of all lists with first. Where it folds, an
/// output has one element of each line.
const char* run_list_formula(const char* op, const char* formula, c10::ArrayRef<NamedList> inputs,
                             c10::ArrayRef<NamedList> outputs, c10::ArrayRef<std::pair<const char*, double>> numbers,
                             kernels::Fold fold = kernels::Fold::None);
/// Copies with broadcast and conversion.
const char* copy_or_reason(const at::Tensor& source, const at::Tensor& destination);
/// Fills a dense tensor.
const char* fill(const char* op, const at::Tensor& self, const at::Scalar& value);
/// Which dims a reduction goes over, a bit each.
uint64_t dims_of(const IValue& value, int64_t rank);
c10::SmallVector<int64_t, 6> reduced_sizes(const at::Tensor& x, uint64_t mask, bool keeps);
/// Sums or products of whole numbers over the dims of `mask`, on the scalar unit; `out` is packed.
const char* fold_whole(const char* op, uint32_t action, const at::Tensor& x, uint64_t mask, const at::Tensor& out);
/// Folds `formula` over the dims of `mask`; its operand is `x`, others are broadcast.
const char* reduce(const char* op, const char* formula, const at::Tensor& x, const at::Tensor& out, uint64_t mask,
                   kernels::Fold fold, c10::ArrayRef<std::pair<const char*, double>> numbers = {},
                   c10::ArrayRef<Named> more = {}, bool takes_whole = false);
/// out = a b for tensors of 3 dims; the batch of one may be 1.
const char* multiply(const char* op, const at::Tensor& a, const at::Tensor& b, const at::Tensor& out);
/// out = beta * self + alpha * (a b), self broadcast; the product stays in float until the end.
const char* add_product(const char* op, const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, double beta,
                        double alpha, const at::Tensor& out);

/// A tensor of numbers that picks places along one dim of a table.
struct Pick {
  at::Tensor numbers;                    ///< int64 or int32
  c10::SmallVector<int64_t, 8> strides;  ///< over the space that is moved, outermost first
  int64_t size = 0;                      ///< of the table's dim
  int64_t table_stride = 0;              ///< of the table's dim
};
/// Moves the elements of a space between a table and a plain tensor; strides are outermost first.
const char* move_by_index(const char* op, uint32_t action, const at::Tensor& table, int64_t table_offset,
                          at::IntArrayRef sizes, at::IntArrayRef table_strides, const at::Tensor& plain,
                          at::IntArrayRef plain_strides, c10::ArrayRef<Pick> picks);

}  // namespace opkit::npu
