#include "runtime/fallback.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/NestedTensorImpl.h>
#include <ATen/TensorUtils.h>
#include <ATen/core/List.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StorageImpl.h>
#include <torch/library.h>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/device.h"
#include "opkit/device_memory.h"
#include "runtime/widen.h"

namespace opkit::npu {
namespace {

struct OperatorCounts {
  uint64_t native = 0;
  uint64_t fallback = 0;
  double fallback_us = 0;
  std::map<std::string, uint64_t> reasons;
  bool has_warned = false;
};

std::mutex counts_lock;
std::map<std::string, OperatorCounts>& all_counts() {
  static auto* counts = new std::map<std::string, OperatorCounts>();
  return *counts;
}

std::string name_of(const c10::OperatorHandle& op) {
  const auto& name = op.operator_name();
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

std::atomic<int> fallback_mode{0};
std::atomic<CallListener> call_listener{nullptr};

/// A nested tensor's dims lie beside its storage, on the CPU: the same dims over another storage.
at::Tensor with_storage_nested(const at::Tensor& tensor, const c10::Storage& storage, c10::DispatchKey key) {
  const auto* nested = at::native::get_nested_tensor_impl(tensor);
  const auto keys = c10::DispatchKeySet(key) | c10::DispatchKeySet(c10::DispatchKey::AutogradNestedTensor);
  return at::detail::make_tensor<at::native::NestedTensorImpl>(storage, keys, tensor.dtype(),
                                                               nested->get_nested_sizes(), nested->get_nested_strides(),
                                                               nested->get_storage_offsets());
}

/// Tensors of the device seen as tensors of the CPU, for one call. Those that share a storage share one here too.
class CpuView {
 public:
  at::Tensor see(const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.device().type() != kDevice) return tensor;
    if (device_ < 0) device_ = tensor.device().index();
    c10::StorageImpl* original = tensor.storage().unsafeGetStorageImpl();
    for (const Pair& pair : pairs_) {
      if (pair.original == original) return make(tensor, pair.seen);
    }
    void* data = original->mutable_data();
    auto seen = c10::Storage(c10::make_intrusive<c10::StorageImpl>(
        c10::StorageImpl::use_byte_size_t(), original->nbytes(), c10::DataPtr(data, c10::Device(c10::DeviceType::CPU)),
        c10::GetAllocator(c10::DeviceType::CPU), original->resizable()));
    pairs_.push_back({original, tensor.storage(), seen, data});
    return make(tensor, seen);
  }

  /// The tensor of the device for a result of the CPU; `original`: what it was on the device where it was an argument.
  at::Tensor bring(const at::Tensor& result) {
    if (!result.defined() || result.device().type() != c10::DeviceType::CPU) return result;
    c10::StorageImpl* seen = result.storage().unsafeGetStorageImpl();
    for (const Pair& pair : pairs_) {
      if (pair.seen.unsafeGetStorageImpl() == seen && seen->mutable_data() == pair.data) {
        return rewrap(result, pair.original_storage);
      }
    }
    if (!result.has_storage()) return result;
    const auto found = brought_.find(seen);
    if (found != brought_.end()) return rewrap(result, found->second);
    c10::Storage storage = take_over(seen, result.storage().use_count());
    brought_.emplace(seen, storage);
    kept_.push_back(result);
    return rewrap(result, storage);
  }

  /// After the call: an argument that the CPU has resized, or given other sizes, hands both on to the device's tensor.
  void write_back(const at::Tensor& original, const at::Tensor& seen) {
    if (!original.defined() || original.device().type() != kDevice) return;
    c10::StorageImpl* storage = seen.storage().unsafeGetStorageImpl();
    c10::StorageImpl* mine = original.storage().unsafeGetStorageImpl();
    if (storage->mutable_data() != mine->mutable_data() || storage->nbytes() != mine->nbytes()) {
      c10::Storage fresh = take_over(storage, 1);
      mine->set_data_ptr_noswap(fresh.unsafeGetStorageImpl()->set_data_ptr(
          c10::DataPtr(nullptr, c10::Device(kDevice, original.device().index()))));
      mine->set_nbytes(fresh.nbytes());
    }
    if (original.is_nested()) return;
    if (original.sizes() != seen.sizes() || original.strides() != seen.strides() ||
        original.storage_offset() != seen.storage_offset()) {
      original.unsafeGetTensorImpl()->set_sizes_and_strides(seen.sizes(), seen.strides(), seen.storage_offset());
    }
  }

  c10::DeviceIndex device() const { return device_ < 0 ? current_device() : device_; }
  void set_device(c10::DeviceIndex device) { device_ = device; }

 private:
  struct Pair {
    c10::StorageImpl* original;
    c10::Storage original_storage;
    c10::Storage seen;
    void* data;
  };

  static at::Tensor make(const at::Tensor& tensor, const c10::Storage& storage) {
    if (tensor.is_nested()) return with_storage_nested(tensor, storage, c10::DispatchKey::NestedTensorCPU);
    auto impl = c10::make_intrusive<c10::TensorImpl>(c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::CPU),
                                                     tensor.dtype());
    impl->set_storage_offset(tensor.storage_offset());
    impl->set_sizes_and_strides(tensor.sizes(), tensor.strides());
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
    at::Tensor seen(std::move(impl));
    if (tensor.is_conj()) seen._set_conj(true);
    if (tensor.is_neg()) seen._set_neg(true);
    return seen;
  }

  at::Tensor rewrap(const at::Tensor& result, const c10::Storage& storage) {
    if (result.is_nested()) return with_storage_nested(result, storage, c10::DispatchKey::NestedTensorPrivateUse1);
    auto impl = c10::make_intrusive<c10::TensorImpl>(
        c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), result.dtype());
    impl->set_storage_offset(result.storage_offset());
    impl->set_sizes_and_strides(result.sizes(), result.strides());
    if (result.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
    at::Tensor moved(std::move(impl));
    if (result.is_conj()) moved._set_conj(true);
    if (result.is_neg()) moved._set_neg(true);
    return moved;
  }

  /// The memory of a storage of the CPU as a storage of the device: moved where it is the device's memory, else copied.
  c10::Storage take_over(c10::StorageImpl* seen, size_t users) {
    (void)users;
    const c10::Device device(kDevice, this->device());
    void* data = seen->mutable_data();
    const size_t bytes = seen->nbytes();
    c10::DataPtr pointer;
    if (data == nullptr) {
      pointer = c10::DataPtr(nullptr, device);
    } else if (opkit_memory_device_of(data) == device.index() && opkit_memory_size_of(data) != 0) {
      const c10::DataPtr& held = seen->data_ptr();
      if (held.get_deleter() != nullptr && held.get_context() == data) {
        c10::DataPtr taken = seen->set_data_ptr(c10::DataPtr(data, c10::Device(c10::DeviceType::CPU)));
        const auto deleter = taken.get_deleter();
        pointer = c10::DataPtr(data, taken.release_context(), deleter, device);
      }
    }
    if (data != nullptr && pointer.get() == nullptr) {
      void* copy = allocate(device.index(), bytes);
      std::memcpy(copy, data, bytes);
      pointer = c10::DataPtr(copy, copy, device_allocator()->raw_deleter(), device);
    }
    return c10::Storage(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                              std::move(pointer), device_allocator(), true));
  }

  c10::DeviceIndex device_ = -1;
  c10::SmallVector<Pair, 6> pairs_;
  std::unordered_map<c10::StorageImpl*, c10::Storage> brought_;
  std::vector<at::Tensor> kept_;  // results whose storages are keys above
};

/// A generator of the CPU for one call, of a seed that the device's generator and its next stream give.
c10::IValue cpu_generator(c10::DeviceIndex device, const c10::IValue& own) {
  const auto [seed, stream] = next_random_stream(device, own);
  // The finaliser of splitmix64: the CPU's engine takes but the low half of a seed.
  const auto mixed = [](uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  };
  return c10::IValue(at::make_generator<at::CPUGeneratorImpl>(mixed(seed + mixed(stream + 0x9e3779b97f4a7c15u))));
}

bool is_generator(const c10::Argument& argument) {
  const auto optional = argument.type()->cast<c10::OptionalType>();
  return argument.type()->kind() == c10::TypeKind::GeneratorType ||
         (optional != nullptr && optional->getElementType()->kind() == c10::TypeKind::GeneratorType);
}

/// One argument that was replaced, to be written back.
struct Replaced {
  at::Tensor original;
  at::Tensor seen;
};

c10::IValue see_value(CpuView& view, std::vector<Replaced>& replaced, const c10::IValue& value) {
  const auto see = [&](const at::Tensor& tensor) {
    // One tensor that is read and written stays one: PyTorch resizes an `out=`, and never what an operator changes.
    for (const Replaced& pair : replaced) {
      if (pair.original.is_same(tensor)) return pair.seen;
    }
    at::Tensor seen = view.see(tensor);
    if (!seen.is_same(tensor)) replaced.push_back({tensor, seen});
    return seen;
  };
  if (value.isTensor()) return see(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(see(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      list.push_back(tensor.has_value() ? std::optional<at::Tensor>(see(*tensor)) : std::nullopt);
    }
    return list;
  }
  if (value.isDevice() && value.toDevice().type() == kDevice) {
    if (value.toDevice().has_index()) view.set_device(value.toDevice().index());
    return c10::Device(c10::DeviceType::CPU);
  }
  return value;
}

/// The device's tensor for a result: the argument itself where the operator returns one.
c10::IValue bring_value(CpuView& view, const std::vector<Replaced>& replaced, const c10::IValue& value) {
  const auto bring = [&](const at::Tensor& tensor) {
    for (const Replaced& pair : replaced) {
      if (pair.seen.is_same(tensor)) return pair.original;
    }
    return view.bring(tensor);
  };
  if (value.isTensor()) return bring(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(bring(tensor));
    return list;
  }
  return value;
}

/// The sizes of nested tensors lie on the CPU.
bool is_of_nested(const c10::OperatorHandle& op) { return op.schema().name().rfind("aten::_nested_", 0) == 0; }

void check_one_device(const c10::OperatorHandle& op, const std::vector<Replaced>& replaced, c10::Stack* stack,
                      size_t first) {
  c10::DeviceIndex device = -1;
  for (const Replaced& pair : replaced) {
    const c10::DeviceIndex own = pair.original.device().index();
    TORCH_CHECK(device < 0 || device == own, name_of(op), ": tensors on npu:", static_cast<int>(device),
                " and npu:", static_cast<int>(own), "; move them to one device");
    device = own;
  }
  for (size_t i = first; i < stack->size() && device >= 0; ++i) {
    const c10::IValue& value = (*stack)[i];
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    const at::Tensor& tensor = value.toTensor();
    // A number in a tensor goes anywhere; whatever else lies elsewhere is the user's mistake, as on a chip.
    const bool is_number = !tensor.is_nested() && tensor.dim() == 0 && tensor.device().is_cpu();
    TORCH_CHECK(tensor.device().type() == kDevice || is_number || tensor.device().is_meta() || is_of_nested(op) ||
                    op.schema().name() == "aten::index" || op.schema().name() == "aten::_index_put_impl_" ||
                    op.schema().name() == "aten::index_put_",
                "Expected all tensors to be on the same device, but found at least two devices, npu:",
                static_cast<int>(device), " and ", tensor.device(), "! (when checking argument ",
                op.schema().arguments()[i - first].name(), " of ", name_of(op), ")");
  }
}

}  // namespace

at::Tensor as_cpu(const at::Tensor& tensor) {
  CpuView view;
  return view.see(tensor);
}

void count_native(const c10::OperatorHandle& op) { count_native(name_of(op)); }

void count_native(const std::string& name) {
  const std::lock_guard<std::mutex> guard(counts_lock);
  ++all_counts()[name].native;
}

void announce_fallback(const std::string& name, const char* reason) {
  const int mode = fallback_mode.load(std::memory_order_relaxed);
  if (mode == 0) return;
  TORCH_CHECK_NOT_IMPLEMENTED(mode != 2, name, " has no kernel on npu for this call (", reason,
                              "), and OPKIT_FALLBACK=error forbids the CPU");
  {
    const std::lock_guard<std::mutex> guard(counts_lock);
    OperatorCounts& counts = all_counts()[name];
    if (counts.has_warned) return;
    counts.has_warned = true;
  }
  TORCH_WARN(name, " runs on the CPU: ", reason, " (said once; torch.npu.fallbacks() counts)");
}

void count_fallback(const std::string& name, const std::string& reason, double took_us) {
  tell_listener(CallKind::Fallback, name.c_str(), took_us);
  const std::lock_guard<std::mutex> guard(counts_lock);
  OperatorCounts& counts = all_counts()[name];
  ++counts.fallback;
  counts.fallback_us += took_us;
  ++counts.reasons[reason];
}

void run_on_cpu(const c10::OperatorHandle& op, c10::Stack* stack, const char* reason) {
  announce_fallback(name_of(op), reason);
  const auto begin = std::chrono::steady_clock::now();
  const size_t count = op.schema().arguments().size();
  const size_t first = stack->size() - count;
  const char* widened = nullptr;
  CpuView view;
  std::vector<Replaced> replaced;
  check_one_device(
      op,
      [&] {
        std::vector<Replaced> seen;
        for (size_t i = first; i < stack->size(); ++i) {
          const c10::IValue& value = (*stack)[i];
          if (value.isTensor() && value.toTensor().defined() && value.toTensor().device().type() == kDevice) {
            seen.push_back({value.toTensor(), {}});
          }
        }
        return seen;
      }(),
      stack, first);
  for (size_t i = first; i < stack->size(); ++i) (*stack)[i] = see_value(view, replaced, (*stack)[i]);
  {
    for (size_t i = first; i < stack->size(); ++i) {
      if (!is_generator(op.schema().arguments()[i - first])) continue;
      c10::IValue& value = (*stack)[i];
      if (value.isNone() || value.toGenerator().device().type() == kDevice) value = cpu_generator(view.device(), value);
    }
    const DeviceMemoryForCpu results_in(view.device());
    widened = call_on_cpu(op, stack);
  }
  for (const Replaced& pair : replaced) view.write_back(pair.original, pair.seen);
  const size_t results = op.schema().returns().size();
  for (size_t i = stack->size() - results; i < stack->size(); ++i) {
    const at::Tensor given = (*stack)[i].isTensor() ? (*stack)[i].toTensor() : at::Tensor();
    TORCH_CHECK_NOT_IMPLEMENTED(!given.defined() || given.layout() == c10::Layout::Strided, name_of(op),
                                " gives a tensor of layout ", given.layout(),
                                ", which npu does not have: call it on tensors of the CPU");
    (*stack)[i] = bring_value(view, replaced, (*stack)[i]);
  }
  const double took_us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  count_fallback(
      name_of(op),
      widened == nullptr ? std::string(reason) : c10::str(reason, "; in float32, as the CPU lacks it for ", widened),
      took_us);
}

std::string counts_json() {
  const std::lock_guard<std::mutex> guard(counts_lock);
  std::string text = "[";
  for (const auto& [name, counts] : all_counts()) {
    if (text.size() > 1) text += ',';
    text += "{\"operator\":\"" + name + "\",\"native\":" + std::to_string(counts.native) +
            ",\"fallback\":" + std::to_string(counts.fallback) +
            ",\"fallback_us\":" + std::to_string(counts.fallback_us) + ",\"reasons\":{";
    bool is_first = true;
    for (const auto& [reason, times] : counts.reasons) {
      text += std::string(is_first ? "" : ",") + "\"" + reason + "\":" + std::to_string(times);
      is_first = false;
    }
    text += "}}";
  }
  return text + "]";
}

void reset_counts() {
  const std::lock_guard<std::mutex> guard(counts_lock);
  all_counts().clear();
}

void set_fallback_mode(int mode) { fallback_mode.store(mode); }

void tell_listener(CallKind kind, const char* name, double took_us) {
  if (const CallListener listener = call_listener.load(std::memory_order_relaxed)) {
    listener(static_cast<int>(kind), name, took_us);
  }
}

}  // namespace opkit::npu

namespace {

void boxed_fallback(const c10::OperatorHandle& op, c10::Stack* stack) {
  opkit::npu::run_on_cpu(op, stack, "no kernel for this operator");
}

void nested_fallback(const c10::OperatorHandle& op, c10::Stack* stack) {
  opkit::npu::run_on_cpu(op, stack, "a nested tensor");
}

/// Between devices and types: what is nested is one storage.
at::Tensor copy_nested(const at::Tensor& self, std::optional<at::ScalarType> type, std::optional<at::Layout> layout,
                       std::optional<at::Device> device, std::optional<bool> is_pinned, bool is_non_blocking,
                       std::optional<at::MemoryFormat>) {
  const auto* nested = at::native::get_nested_tensor_impl(self);
  const at::Tensor buffer = nested->get_unsafe_storage_as_tensor().to(
      self.options().dtype(type).layout(layout).device(device).pinned_memory(is_pinned), is_non_blocking, true);
  return at::detail::make_tensor<at::native::NestedTensorImpl>(
      buffer, nested->get_nested_sizes(), nested->get_nested_strides(), nested->get_storage_offsets());
}

at::Tensor& copy_into_nested(at::Tensor& self, const at::Tensor& from, bool is_non_blocking) {
  const auto* own = at::native::get_nested_tensor_impl(self);
  const auto* other = at::native::get_nested_tensor_impl_or_null(from);
  TORCH_CHECK(other != nullptr && own->get_nested_sizes().equal(other->get_nested_sizes()) &&
                  own->get_nested_strides().equal(other->get_nested_strides()),
              "copy_ into a nested tensor needs one of the same sizes");
  own->get_unsafe_storage_as_tensor().copy_(other->get_unsafe_storage_as_tensor(), is_non_blocking);
  return self;
}

/// A result that is the nested tensor's own, on the CPU as everywhere.
at::Tensor nested_sizes(const at::Tensor& self) { return at::native::get_nested_tensor_impl(self)->get_nested_sizes(); }
at::Tensor nested_strides(const at::Tensor& self) {
  return at::native::get_nested_tensor_impl(self)->get_nested_strides();
}
at::Tensor nested_offsets(const at::Tensor& self) {
  return at::native::get_nested_tensor_impl(self)->get_storage_offsets();
}

/// What has a kernel for nested tensors, and beside it one for all devices, which goes before a fallback.
constexpr const char* kNestedBeforeComposite[] = {"_safe_softmax",
                                                  "abs",
                                                  "abs_",
                                                  "chunk",
                                                  "clone",
                                                  "div.Scalar",
                                                  "embedding",
                                                  "empty_like",
                                                  "is_same_size",
                                                  "isinf",
                                                  "linear",
                                                  "logical_not",
                                                  "logical_not_",
                                                  "masked_fill.Scalar",
                                                  "matmul",
                                                  "matmul.out",
                                                  "mul.Scalar",
                                                  "mul_.Scalar",
                                                  "narrow",
                                                  "native_layer_norm",
                                                  "ones_like",
                                                  "select.int",
                                                  "silu_backward",
                                                  "split_with_sizes",
                                                  "squeeze",
                                                  "squeeze.dim",
                                                  "squeeze.dims",
                                                  "transpose.int",
                                                  "unbind.int",
                                                  "unsqueeze",
                                                  "value_selecting_reduction_backward",
                                                  "values"};

}  // namespace

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&boxed_fallback>()); }

TORCH_LIBRARY_IMPL(_, NestedTensorPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&nested_fallback>());
}
TORCH_LIBRARY_IMPL(aten, NestedTensorPrivateUse1, m) {
  m.impl("_to_copy", TORCH_FN(copy_nested));
  m.impl("copy_", TORCH_FN(copy_into_nested));
  m.impl("_nested_tensor_size", TORCH_FN(nested_sizes));
  m.impl("_nested_tensor_strides", TORCH_FN(nested_strides));
  m.impl("_nested_tensor_storage_offsets", TORCH_FN(nested_offsets));
  for (const char* name : kNestedBeforeComposite) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&nested_fallback>());
  }
}

extern "C" __attribute__((visibility("default"))) const char* opkit_npu_counts(void) {
  static thread_local std::string text;
  text = opkit::npu::counts_json();
  return text.c_str();
}
extern "C" __attribute__((visibility("default"))) void opkit_npu_reset_counts(void) { opkit::npu::reset_counts(); }
extern "C" __attribute__((visibility("default"))) void opkit_npu_listen(opkit::npu::CallListener listener) {
  opkit::npu::call_listener.store(listener);
}
extern "C" __attribute__((visibility("default"))) void opkit_npu_fallback_mode(int mode) {
  opkit::npu::set_fallback_mode(mode);
}
