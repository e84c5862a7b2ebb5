// What operators are made of (parts.h), but for reductions and products, which have files of their own.
#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "aten/natives.h"
#include "aten/parts.h"
#include "opkit/direct_launch.h"
#include "runtime/device.h"
#include "runtime/fallback.h"
#include "runtime/launch.h"
#include "runtime/program.h"
#include "runtime/registry.h"

namespace opkit::npu {

at::Tensor empty(at::IntArrayRef sizes, at::ScalarType type) {
  return at::detail::empty_generic(sizes, device_allocator(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), type,
                                   std::nullopt);
}

at::Tensor view_of(const at::Tensor& tensor, at::IntArrayRef sizes, at::IntArrayRef strides, int64_t offset) {
  auto impl = c10::make_intrusive<c10::TensorImpl>(c10::Storage(tensor.storage()),
                                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), tensor.dtype());
  impl->set_storage_offset(tensor.storage_offset() + offset);
  impl->set_sizes_and_strides(sizes, strides);
  return at::Tensor(std::move(impl));
}

uint64_t extent_of(const at::Tensor& tensor) {
  uint64_t last = 0;
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    if (tensor.size(d) == 0) return 0;
    last += static_cast<uint64_t>(tensor.stride(d)) * static_cast<uint64_t>(tensor.size(d) - 1);
  }
  return (last + 1) * tensor.element_size();
}

bool are_parameters_of(const at::Tensor& x, at::IntArrayRef sizes, c10::ArrayRef<at::Tensor> parameters) {
  std::optional<at::ScalarType> type;
  for (const at::Tensor& each : parameters) {
    if (!each.defined()) continue;
    if (!on_device(each) || each.sizes() != sizes) return false;
    if (type.value_or(each.scalar_type()) != each.scalar_type()) return false;
    type = each.scalar_type();
  }
  return !type.has_value() || *type == x.scalar_type() || (is_half_kind(x) && *type == at::kFloat);
}

const char* run_formula(const char* op, const char* formula, at::IntArrayRef shape, c10::ArrayRef<Named> inputs,
                        c10::ArrayRef<Named> outputs, c10::ArrayRef<std::pair<const char*, double>> numbers,
                        kernels::Fold fold, uint64_t folded, bool is_whole) {
  std::vector<std::string> input_names;
  std::vector<std::string> number_names;
  std::vector<std::string> output_names;
  MapCall call;
  call.name = op;
  call.fold = fold;
  call.is_whole = is_whole;
  c10::DeviceIndex device = -1;
  std::vector<std::vector<int64_t>> strides;
  for (const auto* list : {&inputs, &outputs}) {
    for (const Named& named : *list) {
      if (!kind_of(named.tensor.scalar_type())) return kNoType;
      if (list == &inputs && !at::is_expandable_to(named.tensor.sizes(), shape)) return kSizes;
      (list == &inputs ? input_names : output_names).push_back(named.name);
      device = named.tensor.device().index();
      // Broadcast from the right; a dim of size 1 stands still.
      std::vector<int64_t> own(shape.size(), 0);
      const int64_t shift = static_cast<int64_t>(shape.size()) - named.tensor.dim();
      for (int64_t d = 0; d < named.tensor.dim(); ++d) {
        if (named.tensor.size(d) != 1) own[d + shift] = named.tensor.stride(d);
      }
      strides.push_back(std::move(own));
    }
  }
  for (const auto& [name, value] : numbers) {
    number_names.emplace_back(name);
    call.numbers.push_back({value, static_cast<int64_t>(value)});
  }
  for (const int64_t size : shape) {
    if (size == 0) return "an empty tensor";
  }
  const Program& program = program_of(formula, input_names, number_names, output_names);
  // A step over rows would take a merged row for one, and lanes would be counted on.
  const bool keeps_rows = program.has_rows || program.has_lanes;
  // Innermost first, dims of one merged with the next where all strides continue.
  std::vector<std::vector<int64_t>> merged(strides.size());
  for (int64_t d = static_cast<int64_t>(shape.size()) - 1; d >= 0; --d) {
    if (shape[d] == 1 && !(keeps_rows && call.shape.empty())) continue;
    const bool is_folded = (folded >> d & 1) != 0;
    const size_t last = call.shape.size();
    bool can_merge = last > (keeps_rows ? 1 : 0) && ((call.folded >> (last - 1) & 1) != 0) == is_folded;
    for (size_t i = 0; i < strides.size() && can_merge; ++i) {
      can_merge = strides[i][d] == merged[i][last - 1] * call.shape[last - 1];
    }
    if (can_merge) {
      call.shape[last - 1] *= shape[d];
      continue;
    }
    if (is_folded) call.folded |= uint64_t{1} << last;
    call.shape.push_back(shape[d]);
    for (size_t i = 0; i < strides.size(); ++i) merged[i].push_back(strides[i][d]);
  }
  size_t i = 0;
  for (const auto* list : {&inputs, &outputs}) {
    for (const Named& named : *list) {
      Argument argument;
      argument.data = static_cast<char*>(named.tensor.data_ptr());
      argument.kind = *kind_of(named.tensor.scalar_type());
      argument.extent_bytes = extent_of(named.tensor);
      argument.strides.assign(merged[i].begin(), merged[i].end());
      if (list == &inputs) {
        call.inputs.push_back(std::move(argument));
      } else {
        call.outputs.push_back(std::move(argument));
      }
      ++i;
    }
  }
  return run_program(program, call, device);
}

const char* run_list_formula(const char* op, const char* formula, c10::ArrayRef<NamedList> inputs,
                             c10::ArrayRef<NamedList> outputs, c10::ArrayRef<std::pair<const char*, double>> numbers,
                             kernels::Fold fold) {
  std::vector<std::string> names[3];
  ListCall call;
  call.name = op;
  call.fold = fold;
  const c10::ArrayRef<NamedList>& first = inputs.empty() ? outputs : inputs;
  const std::vector<at::Tensor>& lines = first[0].tensors;
  for (const auto* lists : {&inputs, &outputs}) {
    for (const NamedList& list : *lists) {
      names[lists == &inputs ? 0 : 2].emplace_back(list.name);
      const auto kind = kind_of(list.tensors[0].scalar_type());
      if (!kind) return kNoType;
      call.kinds.push_back(*kind);
    }
  }
  for (const auto& [name, value] : numbers) {
    names[1].emplace_back(name);
    call.numbers.push_back({value, static_cast<int64_t>(value)});
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].numel() == 0) continue;
    call.sizes.push_back(lines[i].numel());
    for (const auto* lists : {&inputs, &outputs}) {
      for (const NamedList& list : *lists) call.data.push_back(static_cast<char*>(list.tensors[i].data_ptr()));
    }
  }
  if (call.sizes.empty()) return nullptr;
  return run_list(program_of(formula, names[0], names[1], names[2]), call, lines[0].device().index());
}

// ---- copies

namespace {

/// Moves elements as they are; a reason where the kernel cannot.
const char* move_elements(const at::Tensor& source, const at::Tensor& destination) {
  const size_t item = destination.element_size();
  if (item > 8) return kNoType;
  kernels::CopyPlan plan{};
  plan.element_bytes = static_cast<uint32_t>(item);
  for (uint32_t d = 0; d < kernels::kCopyDims; ++d) plan.sizes[d] = 1;
  // Innermost is where the destination's elements lie closest.
  c10::SmallVector<int64_t, 6> order;
  for (int64_t d = 0; d < destination.dim(); ++d) {
    if (destination.size(d) != 1) order.push_back(d);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return destination.stride(a) > destination.stride(b); });
  uint32_t dims = 0;
  for (size_t k = order.size(); k-- > 0;) {
    const int64_t d = order[k];
    const int64_t size = destination.size(d), from = source.stride(d), to = destination.stride(d);
    if (dims > 0 && from == plan.source_strides[dims - 1] * plan.sizes[dims - 1] &&
        to == plan.destination_strides[dims - 1] * plan.sizes[dims - 1]) {
      plan.sizes[dims - 1] *= size;
      continue;
    }
    if (dims == kernels::kCopyDims) return "more dims than the kernel takes";
    plan.sizes[dims] = size;
    plan.source_strides[dims] = from;
    plan.destination_strides[dims] = to;
    ++dims;
  }
  if (dims == 0) plan.source_strides[0] = plan.destination_strides[0] = 1;
  plan.has_rows = plan.source_strides[0] == 1 && plan.destination_strides[0] == 1;
  if (!plan.has_rows && plan.sizes[0] > 1 && plan.source_strides[0] == 0 && destination.numel() > 65536) {
    return "one element to many places";
  }
  if (plan.destination_strides[0] == 0 && plan.sizes[0] > 1) return "many elements to one place";
  for (uint32_t d = 1; d < dims; ++d) {
    if (plan.destination_strides[d] < (d == 1 && plan.has_rows ? plan.sizes[0] : 1)) return "an overlapping target";
    if (std::max(plan.source_strides[d], plan.destination_strides[d]) * static_cast<int64_t>(item) > UINT32_MAX) {
      return "a stride beyond 4 GiB";
    }
  }
  const Range ranges[] = {{source.data_ptr(), extent_of(source), true},
                          {destination.data_ptr(), extent_of(destination), false}};
  // A burst takes some cycles each way besides its bytes; elements that lie across are bursts of their own, unless they
  // are turned in tiles.
  constexpr double kBurstCycles = 14, kTurnedCycles = 0.5;
  bool is_turned = false;
  for (uint32_t d = 1; d < dims; ++d) is_turned |= plan.source_strides[d] == 1 && plan.sizes[d] > 1;
  is_turned &= !plan.has_rows && (item == 2 || item == 4);
  const auto elements = static_cast<double>(destination.numel());
  const double rows = plan.has_rows ? elements / static_cast<double>(plan.sizes[0]) : elements;
  const opkit_core_work work{is_turned ? elements * kTurnedCycles : rows * kBurstCycles,
                             elements * static_cast<double>(item), elements * static_cast<double>(item)};
  const uint32_t blocks = opkit_fair_cores(&work);
  launch("copy_strided", "aten::copy_", {source.data_ptr(), destination.data_ptr()}, ranges, &plan, sizeof(plan),
         blocks, destination.device().index());
  return nullptr;
}

/// int32 to int64 or back, on the vector unit.
const char* convert_widths(const at::Tensor& source, const at::Tensor& destination) {
  at::Tensor given = source, made = destination;
  if (!source.is_contiguous()) {
    given = empty(source.sizes(), source.scalar_type());
    if (const char* reason = move_elements(source, given)) return reason;
  }
  if (!destination.is_contiguous()) made = empty(destination.sizes(), destination.scalar_type());
  const kernels::WidthPlan plan{given.numel(), destination.scalar_type() == at::kLong, 0};
  const Range ranges[] = {{given.data_ptr(), given.nbytes(), true}, {made.data_ptr(), made.nbytes(), false}};
  const auto elements = static_cast<double>(given.numel());
  const opkit_core_work work{elements / 16, elements * static_cast<double>(given.element_size()),
                             elements * static_cast<double>(made.element_size())};
  const int64_t most = (given.numel() + 63) / 64;
  const auto blocks = static_cast<uint32_t>(std::min<int64_t>(opkit_fair_cores(&work), most));
  launch("convert_widths", "aten::copy_", {given.data_ptr(), made.data_ptr()}, ranges, &plan, sizeof(plan), blocks,
         given.device().index());
  return made.is_same(destination) ? nullptr : move_elements(made, destination);
}

}  // namespace

bool may_overlap(const at::Tensor& a, const at::Tensor& b) {
  const auto* from = static_cast<const char*>(a.data_ptr());
  const auto* to = static_cast<const char*>(b.data_ptr());
  return from < to + extent_of(b) && to < from + extent_of(a);
}

const char* copy_or_reason(const at::Tensor& given, const at::Tensor& destination) {
  if (!has_kernels()) return "the device's kernels are still being compiled";
  if (destination.numel() == 0) return "an empty tensor";
  if (given.is_conj() != destination.is_conj() || given.is_neg() != destination.is_neg()) return "a lazy conjugate";
  // Seen with the sizes of the destination.
  c10::SmallVector<int64_t, 6> strides(destination.dim(), 0);
  const int64_t shift = destination.dim() - given.dim();
  for (int64_t d = 0; d < given.dim(); ++d) {
    if (given.size(d) != 1) strides[d + shift] = given.stride(d);
  }
  const at::Tensor source = view_of(given, destination.sizes(), strides);
  if (may_overlap(source, destination)) {
    // Read whole before it is written.
    if (!kind_of(source.scalar_type())) return kNoType;
    const at::Tensor kept = empty(destination.sizes(), source.scalar_type());
    const char* reason = copy_or_reason(source, kept);
    return reason != nullptr ? reason : copy_or_reason(kept, destination);
  }
  const at::ScalarType from = source.scalar_type();
  const at::ScalarType to = destination.scalar_type();
  if (from == to) return move_elements(source, destination);
  if (!kind_of(from) || !kind_of(to)) return kNoType;
  // Floats do not hold all whole numbers: the scalar unit converts those, one at a time.
  // A narrow one in a wider type is a float on its way there.
  const bool is_narrow =
      (from == at::kByte || from == at::kChar || from == at::kShort) && c10::elementSize(to) > c10::elementSize(from);
  const bool is_whole = !at::isFloatingType(to) && !at::isFloatingType(from) && from != at::kBool && !is_narrow &&
                        (to != at::kBool || from == at::kLong);
  if ((from == at::kInt && to == at::kLong) || (from == at::kLong && to == at::kInt)) {
    return convert_widths(source, destination);
  }
  if (is_whole && destination.numel() > kWholeLimit) return kTooManyWhole;
  // A conversion works on rows: what is not one on either side is moved to one first.
  const auto has_rows = [](const at::Tensor& tensor) {
    for (int64_t d = tensor.dim() - 1; d >= 0; --d) {
      if (tensor.size(d) != 1) return tensor.stride(d) == 1 || tensor.stride(d) == 0;
    }
    return true;
  };
  const bool is_direct = has_rows(source) && has_rows(destination) && destination.is_contiguous();
  const char* formula = to == at::kBool ? "x != 0" : "x";
  const auto convert = [&](const at::Tensor& in, const at::Tensor& out) {
    return run_formula("aten::copy_", formula, destination.sizes(), {{"x", in}}, {{"y", out}}, {}, kernels::Fold::None,
                       0, is_whole);
  };
  if (is_direct) return convert(source, destination);
  at::Tensor packed = source;
  if (!has_rows(source)) {
    packed = empty(source.sizes(), from);
    if (const char* reason = move_elements(source, packed)) return reason;
  }
  at::Tensor made = empty(destination.sizes(), to);
  const char* reason = convert(packed, made);
  return reason != nullptr ? reason : move_elements(made, destination);
}

/// The product of the sizes from `begin` on.
int64_t product_of(at::IntArrayRef sizes, size_t begin) {
  int64_t product = 1;
  for (size_t i = begin; i < sizes.size(); ++i) product *= sizes[i];
  return product;
}

at::Tensor as_shape(const at::Tensor& tensor, at::IntArrayRef sizes) {
  TORCH_CHECK(product_of(sizes) == tensor.numel(), "a tensor of sizes ", tensor.sizes(), " cannot be seen as ", sizes);
  c10::SmallVector<int64_t, 6> strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
  return view_of(tensor, sizes, strides);
}

/// fill_.Scalar(self, value), zero_(self)
const char* fill(const char* op, const at::Tensor& self, const at::Scalar& value) {
  if (!on_device(self) || !kind_of(self.scalar_type())) return kNoType;
  if (self.numel() == 0) return nullptr;
  if (value.isComplex()) return kNoType;
  const c10::DeviceGuard guard(self.device());
  const double real = value.toDouble();
  const at::ScalarType type = self.scalar_type();
  if (!at::isFloatingType(type)) {
    if (std::abs(real) > (1 << 24) || real != std::floor(real)) return "a whole number beyond 2 to the 24";
    if (type == at::kBool && real != 0 && real != 1) return "another value than 0 and 1";
    if ((type == at::kByte || type == at::kChar) && (real < 0 || real > 127)) return "a whole number beyond its type";
  }
  if (!self.is_non_overlapping_and_dense()) {
    const at::Tensor one = empty({1}, type);
    const char* reason = fill(op, one, value);
    return reason != nullptr ? reason : copy_or_reason(one.expand(self.sizes()), self);
  }
  const at::Tensor flat = view_of(self, {self.numel()}, {1});
  return run_formula(op, "value", {self.numel()}, {}, {{"y", flat}}, {{"value", real}});
}

const char* copy_on_device(const at::Tensor& source, const at::Tensor& destination) {
  const c10::DeviceGuard guard(destination.device());
  return destination.numel() == 0 ? nullptr : copy_or_reason(source, destination);
}

}  // namespace opkit::npu
