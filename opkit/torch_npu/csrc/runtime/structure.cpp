// What every device of PyTorch brings along: empty tensors, views, storages, copies, and the operators that PyTorch
// asks a foreign device for by names of their own.
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/TensorOperators.h>
#include <ATen/TensorUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_local_scalar_dense_native.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/chunk.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <chrono>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "runtime/fallback.h"
#include "runtime/faults.h"
#include "runtime/layouts.h"
#include "aten/natives.h"
#include "opkit/direct_launch.h"

namespace opkit::npu {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

at::Tensor empty_memory_format(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                               std::optional<at::Device> device, std::optional<bool>,
                               std::optional<at::MemoryFormat> memory_format) {
  const c10::DeviceGuard guard(
      c10::Device(kDevice, device.has_value() && device->has_index() ? device->index() : current_device()));
  return at::detail::empty_generic(size, device_allocator(), kKeys, c10::dtype_or_default(dtype), memory_format);
}

/// Zeros without memory, which forward derivatives begin with.
at::Tensor efficient_zeros(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                           std::optional<at::Device> device, std::optional<bool>) {
  const c10::DeviceIndex index = device.has_value() && device->has_index() ? device->index() : current_device();
  at::native::ZeroTensorAllocator allocator(c10::Device(kDevice, index));
  const c10::DispatchKeySet keys = kKeys | c10::DispatchKeySet(c10::DispatchKey::ZeroTensor);
  return at::detail::empty_generic(size, &allocator, keys, c10::dtype_or_default(dtype), std::nullopt);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>) {
  const c10::DeviceGuard guard(
      c10::Device(kDevice, device.has_value() && device->has_index() ? device->index() : current_device()));
  return at::detail::empty_strided_generic(size, stride, device_allocator(), kKeys, c10::dtype_or_default(dtype));
}

const at::Tensor& resize_(const at::Tensor& self, at::IntArrayRef size, std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard(self.device());
  at::native::resize_impl_cpu_(self.unsafeGetTensorImpl(), size, std::nullopt, true);
  if (format.has_value()) {
    TORCH_CHECK(*format != at::MemoryFormat::Preserve, "Unsupported memory format ", *format);
    self.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  }
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef size,
                        at::IntArrayRef stride) {
  at::native::checkSetStorage(self, std::move(source), offset, size, stride);
  self.unsafeGetTensorImpl()->set_storage_offset(offset);
  at::native::resize_impl_cpu_(self.unsafeGetTensorImpl(), size,
                               stride.data() != nullptr ? std::optional<at::IntArrayRef>(stride) : std::nullopt, true);
  return self;
}

at::Tensor& set_whole_storage(at::Tensor& self, at::Storage source) {
  const auto count = static_cast<int64_t>(source.nbytes() / self.dtype().itemsize());
  return set_storage(self, std::move(source), 0, {count}, {});
}

at::Tensor& set_nothing(at::Tensor& self) {
  const c10::DeviceGuard guard(self.device());
  at::Storage fresh(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), 0,
                                                          device_allocator()->allocate(0), device_allocator(), true));
  return set_storage(self, std::move(fresh), 0, {0}, {});
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  throw_kept_fault(self.device().index());
  return at::native::_local_scalar_dense_cpu(as_cpu(self));
}

/// What a copy inside the device is counted as; those from and to the host are none of an operator.
const std::string kCopy = "aten::copy_";

/// What PyTorch leaves to a foreign device to refuse: shapes that do not fit, and memory that is read and written in
/// different places.
void check_copy(const at::Tensor& from, const at::Tensor& to) {
  if (from.sizes() != to.sizes()) {
    const std::vector<int64_t> both = at::infer_size(to.sizes(), from.sizes());
    TORCH_CHECK(to.sizes() == at::IntArrayRef(both), "output with shape ", to.sizes(),
                " doesn't match the broadcast shape ", at::IntArrayRef(both));
  }
  at::assert_no_internal_overlap(to);
  at::assert_no_partial_overlap(to, from);
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool is_non_blocking) {
  // A tensor of zeros that has no memory: PyTorch leaves its copies to the device.
  if (self._is_zerotensor()) {
    dst.zero_();
    return dst;
  }
  if (dst.device().is_cpu() && !is_non_blocking) throw_kept_fault(self.device().index());
  const bool is_on_device = self.device() == dst.device();
  if (is_on_device) check_copy(self, dst);
  const char* reason = is_on_device ? copy_on_device(self, dst) : nullptr;
  if (is_on_device && reason == nullptr) {
    if (dst.numel() != 0) count_native(kCopy);
    return dst;
  }
  if (is_on_device) announce_fallback(kCopy, reason);
  const auto begin = std::chrono::steady_clock::now();
  as_cpu(dst).copy_(as_cpu(self));
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  if (is_on_device) count_fallback(kCopy, reason, took.count());
  return dst;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  if (self.sizes() != dst.sizes()) resize_(dst, self.sizes(), std::nullopt);
  return copy_from(self, dst, false);
}

void record_stream(at::Tensor&, c10::Stream) {}

// PyTorch asks a foreign device for convolutions by names of their own; they are counted by those that users call.
void convolution(const c10::OperatorHandle&, c10::Stack* stack) {
  static const c10::OperatorHandle named = c10::Dispatcher::singleton().findSchemaOrThrow("aten::convolution", "");
  static const LayoutRow* const row = layout_row("aten::convolution");
  const Layout layout(row, named, *stack);
  const char* reason = convolve(stack);
  if (reason == nullptr) count_native(named);
  if (reason == nullptr || convolve_volume(stack) == kDecomposed) return layout.give(named, *stack);
  run_on_cpu(named, stack, reason);
}

void convolution_backward(const c10::OperatorHandle& own, c10::Stack* stack) {
  static const c10::OperatorHandle named =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::convolution_backward", "");
  static const LayoutRow* const row = layout_row("aten::convolution_backward");
  const Layout layout(row, own, *stack);
  const char* reason = convolve_backward(stack);
  if (reason == nullptr) count_native(named);
  if (reason == nullptr || convolve_volume_backward(stack) == kDecomposed) return layout.give(named, *stack);
  // (grad, input, weight, stride, ...) becomes (grad, input, weight, bias_sizes, stride, ...).
  const size_t first = stack->size() - 10;
  const at::Tensor weight = (*stack)[first + 2].toTensor();
  const bool is_transposed = (*stack)[first + 6].toBool();
  const int64_t groups = (*stack)[first + 8].toInt();
  const int64_t channels = is_transposed ? weight.size(1) * groups : weight.size(0);
  stack->insert(stack->begin() + static_cast<ptrdiff_t>(first) + 3, c10::IValue(std::vector<int64_t>{channels}));
  run_on_cpu(named, stack, reason);
}

// The cells of LSTM and GRU as PyTorch documents them, out of other operators. The workspace holds what the backward
// needs: the gates after their activations.
std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                                         const at::Tensor& cx, const std::optional<at::Tensor>& b_input,
                                                         const std::optional<at::Tensor>& b_hidden) {
  at::Tensor gates = input_gates + hidden_gates;
  if (b_input.has_value() && b_input->defined()) gates = gates + *b_input;
  if (b_hidden.has_value() && b_hidden->defined()) gates = gates + *b_hidden;
  const auto parts = at::chunk(gates, 4, 1);
  const at::Tensor in = at::sigmoid(parts[0]);
  const at::Tensor forget = at::sigmoid(parts[1]);
  const at::Tensor cell = at::tanh(parts[2]);
  const at::Tensor out = at::sigmoid(parts[3]);
  const at::Tensor cy = forget * cx + in * cell;
  return {out * at::tanh(cy), cy, at::cat(std::vector<at::Tensor>{in, forget, cell, out}, 1)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell_backward(const std::optional<at::Tensor>& grad_hy,
                                                                  const std::optional<at::Tensor>& grad_cy,
                                                                  const at::Tensor& cx, const at::Tensor& cy,
                                                                  const at::Tensor& workspace, bool has_bias) {
  const auto gates = at::chunk(workspace, 4, 1);
  const at::Tensor &in = gates[0], &forget = gates[1], &cell = gates[2], &out = gates[3];
  const at::Tensor tanh_cy = at::tanh(cy);
  at::Tensor grad_c;
  at::Tensor grad_out;
  if (grad_hy.has_value() && grad_hy->defined()) {
    grad_c = *grad_hy * out * (1 - tanh_cy * tanh_cy);
    grad_out = *grad_hy * tanh_cy * out * (1 - out);
  } else {
    grad_out = at::mul(out, 0);
  }
  if (grad_cy.has_value() && grad_cy->defined()) grad_c = grad_c.defined() ? grad_c + *grad_cy : *grad_cy;
  const std::vector<at::Tensor> grads = {grad_c * cell * in * (1 - in), grad_c * cx * forget * (1 - forget),
                                         grad_c * in * (1 - cell * cell), grad_out};
  const at::Tensor grad_gates = at::cat(grads, 1);
  return {grad_gates, grad_c * forget, has_bias ? grad_gates.sum(0) : at::Tensor()};
}

std::tuple<at::Tensor, at::Tensor> gru_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                            const at::Tensor& hx, const std::optional<at::Tensor>& b_input,
                                            const std::optional<at::Tensor>& b_hidden) {
  const bool has_input = b_input.has_value() && b_input->defined();
  const bool has_hidden = b_hidden.has_value() && b_hidden->defined();
  const auto x = at::chunk(has_input ? input_gates + *b_input : input_gates, 3, 1);
  const auto h = at::chunk(has_hidden ? hidden_gates + *b_hidden : hidden_gates, 3, 1);
  const at::Tensor reset = at::sigmoid(x[0] + h[0]);
  const at::Tensor update = at::sigmoid(x[1] + h[1]);
  const at::Tensor fresh = at::tanh(x[2] + reset * h[2]);
  return {(1 - update) * fresh + update * hx, at::cat(std::vector<at::Tensor>{reset, update, fresh, hx, h[2]}, 1)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> gru_cell_backward(const at::Tensor& grad_hy,
                                                                                         const at::Tensor& workspace,
                                                                                         bool has_bias) {
  const auto parts = at::chunk(workspace, 5, 1);
  const at::Tensor &reset = parts[0], &update = parts[1], &fresh = parts[2], &hx = parts[3], &hidden = parts[4];
  const at::Tensor grad_fresh = grad_hy * (1 - update) * (1 - fresh * fresh);
  const at::Tensor grad_update = grad_hy * (hx - fresh) * update * (1 - update);
  const at::Tensor grad_reset = grad_fresh * hidden * reset * (1 - reset);
  const at::Tensor grad_input = at::cat(std::vector<at::Tensor>{grad_reset, grad_update, grad_fresh}, 1);
  const at::Tensor grad_hidden = at::cat(std::vector<at::Tensor>{grad_reset, grad_update, grad_fresh * reset}, 1);
  return {grad_input, grad_hidden, grad_hy * update, has_bias ? grad_input.sum(0) : at::Tensor(),
          has_bias ? grad_hidden.sum(0) : at::Tensor()};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", TORCH_FN(empty_memory_format));
  m.impl("empty_strided", TORCH_FN(empty_strided));
  m.impl("_efficientzerotensor", TORCH_FN(efficient_zeros));
  m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  m.impl("view", TORCH_FN(at::native::view));
  m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  m.impl("unfold", TORCH_FN(at::native::unfold));
  m.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  m.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
  m.impl("resize_", TORCH_FN(resize_));
  m.impl("set_.source_Storage", TORCH_FN(set_whole_storage));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage));
  m.impl("set_.source_Tensor", TORCH_FN(at::native::set_tensor_));
  m.impl("set_", TORCH_FN(set_nothing));
  m.impl("_local_scalar_dense", TORCH_FN(local_scalar_dense));
  m.impl("_copy_from", TORCH_FN(copy_from));
  m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  m.impl("record_stream", TORCH_FN(record_stream));
  m.impl("convolution_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution>());
  m.impl("convolution_backward_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution_backward>());
  m.impl("_thnn_fused_lstm_cell", TORCH_FN(lstm_cell));
  m.impl("_thnn_fused_lstm_cell_backward_impl", TORCH_FN(lstm_cell_backward));
  m.impl("_thnn_fused_gru_cell", TORCH_FN(gru_cell));
  m.impl("_thnn_fused_gru_cell_backward", TORCH_FN(gru_cell_backward));
}

// A copy reads lazily conjugated and negated tensors itself, as copy_ does; resolving them first would copy, without
// end.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, ZeroTensor, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }

namespace {

at::Generator generator_of(int64_t device) {
  return at::globalContext().defaultGenerator(c10::Device(kDevice, static_cast<c10::DeviceIndex>(device)));
}

/// Seed and number of the next stream of random numbers of a device, which is then used up.
std::tuple<int64_t, int64_t> stream_of(int64_t device) {
  const auto [seed, stream] = next_random_stream(static_cast<c10::DeviceIndex>(device), c10::IValue());
  return {static_cast<int64_t>(seed), static_cast<int64_t>(stream)};
}

/// The modelled milliseconds between two events, given by their `event_id`. PyTorch's own method takes no event of a
/// derived class.
double elapsed_ms(int64_t begin, int64_t end) {
  const auto at = [](int64_t id) { return reinterpret_cast<void*>(id); };
  return c10::impl::getDeviceGuardImpl(kDevice)->elapsedTime(at(begin), at(end), 0);
}

}  // namespace

TORCH_LIBRARY(opkit_npu, m) {
  m.def("default_generator(int device) -> Generator?", &generator_of);
  m.def("next_random_stream(int device) -> (int, int)", &stream_of);
  m.def("elapsed_ms(int begin, int end) -> float", &elapsed_ms);
}

extern "C" __attribute__((visibility("default"))) const char* opkit_npu_chip(void) { return opkit_chip_name(); }
extern "C" __attribute__((visibility("default"))) unsigned opkit_npu_cores(int is_vector) {
  return opkit_core_count(is_vector);
}

}  // namespace opkit::npu
