// Aclnn functions: arguments to an operator call, and the two phases.
#include "opkit/aclnn_call.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "acl/error.h"
#include "acl/state.h"
#include "aclnn/objects.h"
#include "aclnn/packed.h"
#include "host/dtypes.h"
#include "host/launch_run.h"
#include "opkit/op_call.h"

using opkit::acl::fail;

namespace opkit::aclnn {

/// Tensor data with gaps beside its dense copy.
struct DenseCopy {
  const aclTensor* tensor;
  char* first;  ///< of the tensor when the call was prepared
  std::vector<int64_t> view_dims;
  std::vector<int64_t> strides;
  size_t element_bytes;
  std::vector<char> bytes;
  bool is_output;

  void copy(bool into_tensor) {
    char* dense = bytes.data();
    std::vector<int64_t> index(view_dims.size(), 0);
    for (size_t done = 0; done < bytes.size(); done += element_bytes, dense += element_bytes) {
      int64_t at = 0;
      for (size_t axis = 0; axis < index.size(); ++axis) at += index[axis] * strides[axis];
      char* element = first + at * static_cast<int64_t>(element_bytes);
      std::memcpy(into_tensor ? element : dense, into_tensor ? dense : element, element_bytes);
      for (size_t axis = index.size(); axis-- > 0 && ++index[axis] == view_dims[axis];) index[axis] = 0;
    }
  }
};

/// An output's tensor, whose shape the kernel may write. The caller may destroy it before the call has run.
struct GivenOutput {
  aclTensor* tensor;
  std::weak_ptr<void> life;

  /// Takes the shape that was written; false where the tensor has gaps, which the elements do not follow.
  bool take(const opkit_shape& shape) {
    const std::vector<int64_t> dims(shape.dims, shape.dims + shape.rank);
    if (life.expired() || tensor->view_dims == dims) return true;
    if (!tensor->is_dense()) return false;
    tensor->view_dims = dims;
    tensor->strides.assign(dims.size(), 1);
    for (size_t axis = dims.size(); axis-- > 1;) tensor->strides[axis - 1] = tensor->strides[axis] * dims[axis];
    return true;
  }
};

/// A scalar or a list of scalars, whose data type the other inputs may decide.
struct GivenScalars {
  size_t parameter;  ///< its place among the OpDef's inputs
  size_t input;      ///< its place among the tensors
  std::vector<aclScalar> scalars;
};

struct Arguments {
  std::string function;
  std::string folder;
  std::string op_type;
  aclnnStatus error = ACLNN_SUCCESS;

  std::vector<opkit_tensor> inputs;
  std::vector<size_t> input_lengths;
  std::vector<opkit_tensor> outputs;
  std::vector<size_t> output_lengths;
  std::vector<opkit_attr> attrs;
  std::deque<std::vector<int64_t>> shapes;
  std::deque<std::vector<int64_t>> int_lists;
  std::deque<std::vector<double>> float_lists;
  std::deque<std::vector<char>> values;  ///< of scalars and arrays
  std::deque<DenseCopy> copies;
  std::vector<GivenOutput> given_outputs;
  std::vector<GivenScalars> scalars;
  std::vector<int32_t> combinations;  ///< data types of the OpDef's inputs, a row for each combination

  void refuse(aclnnStatus code, const std::string& reason) {
    if (error == ACLNN_SUCCESS) error = fail(code, function.c_str(), "%s", reason.c_str());
  }

  /// Adds one tensor to `list`.
  void add(const char* name, const aclTensor& tensor, bool is_contiguous_made, bool is_output) {
    const size_t element_bytes = aclDataTypeSize(tensor.data_type);
    void* data = tensor.first();
    const int64_t count = tensor.element_count();
    if (count != 0) check_place(name, tensor, element_bytes);
    if (!tensor.is_dense()) {
      if (!is_contiguous_made) {
        return refuse(ACLNN_ERR_PARAM_INVALID,
                      std::string(name) +
                          " has gaps or another order than its shape: make it contiguous, or declare "
                          "AutoContiguous() for it in the OpDef");
      }
      copies.push_back({&tensor, tensor.first(), tensor.view_dims, tensor.strides, element_bytes,
                        std::vector<char>(static_cast<size_t>(count) * element_bytes), is_output});
      data = copies.back().bytes.data();
    }
    const std::vector<int64_t>& shape = shapes.emplace_back(tensor.view_dims);
    if (is_output) given_outputs.push_back({const_cast<aclTensor*>(&tensor), tensor.life});
    (is_output ? outputs : inputs)
        .push_back({data, shape.data(), static_cast<int32_t>(shape.size()), tensor.data_type});
  }

  void check_place(const char* name, const aclTensor& tensor, size_t element_bytes) {
    if (tensor.data == nullptr) return refuse(ACLNN_ERR_PARAM_NULLPTR, std::string(name) + " has elements but no data");
    acl::Runtime& runtime = acl::Runtime::get();
    const std::lock_guard<std::recursive_mutex> guard(runtime.lock);
    const acl::Allocation* allocation = nullptr;
    const acl::Side side = runtime.memory.side_of(tensor.data, &allocation);
    if (side == acl::Side::Freed) {
      return refuse(ACLNN_ERR_PARAM_INVALID, std::string(name) + " lies in device memory that was freed");
    }
    if (side != acl::Side::Device) {
      return refuse(ACLNN_ERR_PARAM_INVALID, std::string(name) + " does not lie in device memory (aclrtMalloc)");
    }
    int64_t last = 0;
    for (size_t axis = 0; axis < tensor.view_dims.size(); ++axis) {
      last += tensor.strides[axis] * (tensor.view_dims[axis] - 1);
    }
    const auto end = reinterpret_cast<uint64_t>(tensor.first()) + (static_cast<uint64_t>(last) + 1) * element_bytes;
    if (allocation != nullptr && end > allocation->begin + allocation->bytes) {
      refuse(ACLNN_ERR_PARAM_INVALID, std::string(name) + " reaches " +
                                          std::to_string(end - allocation->begin - allocation->bytes) +
                                          " bytes behind its device memory");
    }
  }

  void add_absent(const char* name, bool is_optional, bool is_output) {
    if (!is_optional) return refuse(ACLNN_ERR_PARAM_NULLPTR, std::string(name) + " is null");
    (is_output ? output_lengths : input_lengths).push_back(0);
  }

  template <typename Value>
  void add_values(const Value* data, size_t count, int32_t dtype, bool is_vector) {
    const host::DtypeRow* row = host::find_dtype(dtype);
    if (row == nullptr) return refuse(ACLNN_ERR_INNER, "an array has a type that opkit does not know");
    std::vector<char>& bytes = values.emplace_back(count * row->size_bytes);
    for (size_t i = 0; i < count; ++i) store(bytes.data() + i * row->size_bytes, dtype, data[i]);
    std::vector<int64_t>& shape = shapes.emplace_back();
    if (is_vector) shape.push_back(static_cast<int64_t>(count));
    inputs.push_back({bytes.data(), shape.data(), static_cast<int32_t>(shape.size()), dtype});
  }

  /// Adds scalars as one tensor; each is converted by itself, so whole numbers of 64 bits stay exact.
  void add_scalars(std::vector<aclScalar> list, int32_t dtype, bool is_vector) {
    scalars.push_back({input_lengths.size(), inputs.size(), std::move(list)});
    const std::vector<aclScalar>& added = scalars.back().scalars;
    std::vector<int64_t>& shape = shapes.emplace_back();
    if (is_vector) shape.push_back(static_cast<int64_t>(added.size()));
    inputs.push_back({nullptr, shape.data(), static_cast<int32_t>(shape.size()), dtype});
    input_lengths.push_back(1);
  }

  /// Gives scalars the data types of the combination that the other inputs are of. Of several, the first in which most
  /// scalars keep their own type.
  void settle_scalars() {
    if (scalars.empty()) return;
    const size_t width = input_lengths.size();
    const int32_t* best = nullptr;
    size_t best_kept = 0;
    for (size_t row = 0; width != 0 && (row + 1) * width <= combinations.size(); ++row) {
      const int32_t* dtypes = combinations.data() + row * width;
      if (!fits(dtypes)) continue;
      size_t kept = 0;
      for (const GivenScalars& given : scalars) {
        for (const aclScalar& scalar : given.scalars) kept += scalar.data_type == dtypes[given.parameter] ? 1 : 0;
      }
      if (best == nullptr || kept > best_kept) {
        best = dtypes;
        best_kept = kept;
      }
    }
    for (const GivenScalars& given : scalars) {
      opkit_tensor& tensor = inputs[given.input];
      if (best != nullptr) tensor.dtype = best[given.parameter];
      const host::DtypeRow* row = host::find_dtype(tensor.dtype);
      if (row == nullptr) return refuse(ACLNN_ERR_INNER, "a scalar has a type that opkit does not know");
      std::vector<char>& bytes = values.emplace_back(given.scalars.size() * row->size_bytes);
      tensor.data = bytes.data();
      for (size_t i = 0; i < given.scalars.size(); ++i) {
        store_scalar(bytes.data() + i * row->size_bytes, tensor.dtype, given.scalars[i]);
      }
    }
  }

  /// Whether all inputs but the scalars have a combination's data types.
  bool fits(const int32_t* dtypes) const {
    size_t input = 0;
    for (size_t parameter = 0; parameter < input_lengths.size(); ++parameter) {
      for (size_t i = 0; i < input_lengths[parameter]; ++i, ++input) {
        const bool is_scalar = std::any_of(scalars.begin(), scalars.end(),
                                           [&](const GivenScalars& given) { return given.input == input; });
        if (!is_scalar && inputs[input].dtype != dtypes[parameter]) return false;
      }
    }
    return true;
  }

  static void store_scalar(char* to, int32_t dtype, const aclScalar& scalar) {
    switch (scalar.data_type) {
      case ACL_FLOAT:
      case ACL_DOUBLE:
      case ACL_FLOAT16:
      case ACL_BF16: return store(to, dtype, scalar.as_double());
      case ACL_UINT64: return store(to, dtype, static_cast<uint64_t>(scalar.as_int()));
      default: return store(to, dtype, scalar.as_int());
    }
  }

  template <typename Target, typename Value>
  static void put(char* to, Value value) {
    const auto target = static_cast<Target>(value);
    std::memcpy(to, &target, sizeof target);
  }

  template <typename Value>
  static void store(char* to, int32_t dtype, Value value) {
    switch (dtype) {
      case ACL_FLOAT: return put<float>(to, value);
      case ACL_DOUBLE: return put<double>(to, value);
      case ACL_FLOAT16: return put<uint16_t>(to, aclFloatToFloat16(static_cast<float>(value)));
      case ACL_BF16: return put<uint16_t>(to, to_bfloat16(static_cast<float>(value)));
      case ACL_BOOL: return put<uint8_t>(to, value != Value(0) ? 1 : 0);
      case ACL_INT8: return put<int8_t>(to, value);
      case ACL_UINT8: return put<uint8_t>(to, value);
      case ACL_INT16: return put<int16_t>(to, value);
      case ACL_UINT16: return put<uint16_t>(to, value);
      case ACL_INT32: return put<int32_t>(to, value);
      case ACL_UINT32: return put<uint32_t>(to, value);
      case ACL_UINT64: return put<uint64_t>(to, value);
      default: return put<int64_t>(to, value);
    }
  }

  /// Rounds to nearest, ties to even; NaN stays NaN.
  static uint16_t to_bfloat16(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
    return static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1)) >> 16);
  }
};

namespace {

/// The artifact folder that a library lies in: its own, or that above op_api/lib.
std::string artifact_of(const void* address) {
  Dl_info info = {};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return ".";
  std::error_code ignored;
  const std::filesystem::path own = std::filesystem::canonical(info.dli_fname, ignored).parent_path();
  const std::filesystem::path above = own.parent_path().parent_path();
  return std::filesystem::exists(own / "kernels.txt", ignored) ? own.string() : above.string();
}

aclnnStatus code_of(opkit_status status, aclnnStatus usage) {
  switch (status) {
    case OPKIT_OK: return ACLNN_SUCCESS;
    case OPKIT_FAULT:  // of a host function: this operator cannot be called so
    case OPKIT_USAGE: return usage;
    case OPKIT_MISSING: return ACLNN_ERR_INNER_FIND_KERNEL_ERROR;
    default: return ACLNN_ERR_INNER;
  }
}

}  // namespace
}  // namespace opkit::aclnn

/// A call between its two phases.
struct aclOpExecutor {
  std::unique_ptr<opkit::aclnn::Arguments> arguments;
  opkit_plan* plan = nullptr;
  uint64_t workspace_bytes = 0;
  bool is_repeatable = false;

  ~aclOpExecutor() {
    if (plan != nullptr) opkit_plan_destroy(plan);
  }
};

namespace opkit::aclnn {
namespace {

/// Executors that live, so that one that was used up is named instead of read. Under the runtime's lock.
std::set<aclOpExecutor*>& executors() {
  static auto& living = *new std::set<aclOpExecutor*>();
  return living;
}

aclError execute(acl::Runtime& runtime, aclOpExecutor& executor, const std::string& function, void* workspace) {
  if (runtime.device_error != ACL_SUCCESS) return runtime.device_error;  // refused, as on a chip in error state
  Arguments& arguments = *executor.arguments;
  for (DenseCopy& copy : arguments.copies) {
    copy.copy(false);
  }
  const opkit_status status =
      opkit_plan_run(executor.plan, arguments.outputs.data(), arguments.outputs.size(), workspace);
  std::fflush(stdout);
  const bool is_kernels = status == OPKIT_FAULT && !host::last_fault().kernel.empty();
  if (is_kernels) return acl::fail_device(runtime, host::last_fault());
  if (status != OPKIT_OK) {
    return fail(code_of(status, ACLNN_ERR_PARAM_INVALID), function.c_str(), "%s", opkit_last_error());
  }
  for (DenseCopy& copy : arguments.copies) {
    if (copy.is_output) copy.copy(true);
  }
  size_t count = 0;
  const opkit_shape* shapes = opkit_plan_outputs(executor.plan, &count);
  for (size_t i = 0; i < count; ++i) {
    if (arguments.given_outputs[i].take(shapes[i])) continue;
    return fail(ACLNN_ERR_PARAM_INVALID, function.c_str(),
                "output %zu has gaps, and its kernel writes its shape: give a contiguous tensor", i);
  }
  return ACL_SUCCESS;
}

}  // namespace

Call::Call(const char* function, const void* address, const char* op_type) : arguments_(new Arguments()) {
  arguments_->function = function;
  arguments_->folder = artifact_of(address);
  arguments_->op_type = op_type;
}

Call::Call(const char* function, const PackedFolder& folder, const char* op_type) : arguments_(new Arguments()) {
  arguments_->function = function;
  arguments_->op_type = op_type;
  std::string reason;
  arguments_->folder = unpacked(folder, &reason);
  if (!reason.empty()) arguments_->refuse(ACLNN_ERR_INNER, reason);
}

Call::~Call() { delete arguments_; }

void Call::input(const char* name, const aclTensor* tensor, bool is_optional, bool is_contiguous_made) {
  if (tensor == nullptr) return arguments_->add_absent(name, is_optional, false);
  arguments_->add(name, *tensor, is_contiguous_made, false);
  arguments_->input_lengths.push_back(1);
}

void Call::input(const char* name, const aclTensorList* list, bool is_optional, bool is_contiguous_made) {
  if (list == nullptr) return arguments_->add_absent(name, is_optional, false);
  for (const aclTensor* tensor : list->tensors) {
    if (tensor == nullptr) return arguments_->refuse(ACLNN_ERR_PARAM_NULLPTR, std::string(name) + " holds a null");
    arguments_->add(name, *tensor, is_contiguous_made, false);
  }
  arguments_->input_lengths.push_back(list->tensors.size());
}

void Call::combinations(const int32_t* dtypes, size_t count) {
  arguments_->combinations.assign(dtypes, dtypes + count);
}

void Call::input(const char* name, const aclScalar* scalar, bool is_optional, int32_t dtype) {
  if (scalar == nullptr) return arguments_->add_absent(name, is_optional, false);
  arguments_->add_scalars({*scalar}, dtype, false);
}

void Call::input(const char* name, const aclScalarList* list, bool is_optional, int32_t dtype) {
  if (list == nullptr) return arguments_->add_absent(name, is_optional, false);
  std::vector<aclScalar> scalars;
  for (const aclScalar* scalar : list->scalars) {
    if (scalar == nullptr) return arguments_->refuse(ACLNN_ERR_PARAM_NULLPTR, std::string(name) + " holds a null");
    scalars.push_back(*scalar);
  }
  arguments_->add_scalars(std::move(scalars), dtype, true);
}

void Call::input(const char* name, const aclIntArray* values, bool is_optional, int32_t dtype) {
  if (values == nullptr) return arguments_->add_absent(name, is_optional, false);
  arguments_->add_values(values->values.data(), values->values.size(), dtype, true);
  arguments_->input_lengths.push_back(1);
}

void Call::input(const char* name, const aclFloatArray* values, bool is_optional, int32_t dtype) {
  if (values == nullptr) return arguments_->add_absent(name, is_optional, false);
  arguments_->add_values(values->values.data(), values->values.size(), dtype, true);
  arguments_->input_lengths.push_back(1);
}

void Call::input(const char* name, const aclBoolArray* values, bool is_optional, int32_t dtype) {
  if (values == nullptr) return arguments_->add_absent(name, is_optional, false);
  arguments_->add_values(values->values.get(), values->count, dtype, true);
  arguments_->input_lengths.push_back(1);
}

void Call::attr(const char* name, int64_t value) {
  opkit_attr& attr = arguments_->attrs.emplace_back();
  attr.name = name;
  attr.kind = OPKIT_ATTR_INT;
  attr.int_value = value;
}

void Call::attr(const char* name, double value) {
  opkit_attr& attr = arguments_->attrs.emplace_back();
  attr.name = name;
  attr.kind = OPKIT_ATTR_FLOAT;
  attr.float_value = value;
}

void Call::attr(const char* name, bool value) {
  opkit_attr& attr = arguments_->attrs.emplace_back();
  attr.name = name;
  attr.kind = OPKIT_ATTR_BOOL;
  attr.int_value = value ? 1 : 0;
}

void Call::attr(const char* name, const char* value) {
  if (value == nullptr) return;  // the OpDef's default, or its complaint
  opkit_attr& attr = arguments_->attrs.emplace_back();
  attr.name = name;
  attr.kind = OPKIT_ATTR_STRING;
  attr.string_value = value;
}

void Call::attr(const char* name, const aclIntArray* values) {
  if (values == nullptr) return;
  opkit_attr& attr = arguments_->attrs.emplace_back();
  attr.name = name;
  attr.kind = OPKIT_ATTR_LIST_INT;
  attr.int_list = values->values.data();
  attr.list_length = values->values.size();
}

void Call::attr(const char* name, const aclFloatArray* values) {
  if (values == nullptr) return;
  const auto& reals = arguments_->float_lists.emplace_back(values->values.begin(), values->values.end());
  opkit_attr& attr = arguments_->attrs.emplace_back();
  attr.name = name;
  attr.kind = OPKIT_ATTR_LIST_FLOAT;
  attr.float_list = reals.data();
  attr.list_length = reals.size();
}

void Call::attr(const char* name, const aclBoolArray* values) {
  if (values == nullptr) return;
  const bool* first = values->values.get();
  const auto& flags = arguments_->int_lists.emplace_back(first, first + values->count);
  opkit_attr& attr = arguments_->attrs.emplace_back();
  attr.name = name;
  attr.kind = OPKIT_ATTR_LIST_BOOL;
  attr.int_list = flags.data();
  attr.list_length = flags.size();
}

void Call::output(const char* name, const aclTensor* tensor, bool is_optional, bool is_contiguous_made) {
  if (tensor == nullptr) return arguments_->add_absent(name, is_optional, true);
  arguments_->add(name, *tensor, is_contiguous_made, true);
  arguments_->output_lengths.push_back(1);
}

void Call::output(const char* name, const aclTensorList* list, bool is_optional, bool is_contiguous_made) {
  if (list == nullptr) return arguments_->add_absent(name, is_optional, true);
  for (const aclTensor* tensor : list->tensors) {
    if (tensor == nullptr) return arguments_->refuse(ACLNN_ERR_PARAM_NULLPTR, std::string(name) + " holds a null");
    arguments_->add(name, *tensor, is_contiguous_made, true);
  }
  arguments_->output_lengths.push_back(list->tensors.size());
}

aclnnStatus Call::prepare(uint64_t* workspace_bytes, aclOpExecutor** executor) {
  Arguments& arguments = *arguments_;
  if (workspace_bytes == nullptr || executor == nullptr) {
    arguments.refuse(ACLNN_ERR_PARAM_NULLPTR, "workspaceSize or executor is null");
  }
  if (arguments.error == ACLNN_SUCCESS) arguments.settle_scalars();
  if (arguments.error != ACLNN_SUCCESS) return arguments.error;
  const char* function = arguments.function.c_str();
  opkit_library* library = nullptr;
  opkit_status status = opkit_library_open(arguments.folder.c_str(), &library);
  if (status != OPKIT_OK) return fail(ACLNN_ERR_INNER_FIND_KERNEL_ERROR, function, "%s", opkit_last_error());
  opkit_call call = {};
  call.inputs = arguments.inputs.data();
  call.input_count = arguments.inputs.size();
  call.input_lengths = arguments.input_lengths.data();
  call.input_length_count = arguments.input_lengths.size();
  call.attrs = arguments.attrs.data();
  call.attr_count = arguments.attrs.size();
  call.output_lengths = arguments.output_lengths.data();
  call.output_length_count = arguments.output_lengths.size();
  call.outputs = arguments.outputs.data();
  call.output_count = arguments.outputs.size();
  // Host functions may read inputs that they depend on: queued copies into them come first.
  acl::Runtime& runtime = acl::Runtime::get();
  const std::lock_guard<std::recursive_mutex> guard(runtime.lock);
  acl::drain_all(runtime);
  auto made = std::make_unique<aclOpExecutor>();
  status = opkit_prepare_given(library, arguments.op_type.c_str(), &call, &made->plan);
  if (status != OPKIT_OK) return fail(code_of(status, ACLNN_ERR_PARAM_INVALID), function, "%s", opkit_last_error());
  status = opkit_plan_check_outputs(made->plan, arguments.outputs.data(), arguments.outputs.size());
  if (status != OPKIT_OK) return fail(code_of(status, ACLNN_ERR_PARAM_INVALID), function, "%s", opkit_last_error());
  status = opkit_plan_workspace(made->plan, &made->workspace_bytes);
  if (status != OPKIT_OK) {
    return fail(code_of(status, ACLNN_ERR_INNER_TILING_ERROR), function, "%s", opkit_last_error());
  }
  *workspace_bytes = made->workspace_bytes;
  made->arguments.reset(arguments_);
  arguments_ = nullptr;
  *executor = made.release();
  executors().insert(*executor);
  return ACLNN_SUCCESS;
}

aclnnStatus run(const char* function, void* workspace, uint64_t workspace_bytes, aclOpExecutor* executor,
                aclrtStream stream) {
  acl::Runtime& runtime = acl::Runtime::get();
  const std::lock_guard<std::recursive_mutex> guard(runtime.lock);
  if (executor == nullptr) return fail(ACLNN_ERR_PARAM_NULLPTR, function, "the executor is null");
  if (executors().count(executor) == 0) {
    return fail(ACLNN_ERR_PARAM_INVALID, function,
                "the executor was used before: call the GetWorkspaceSize function again for each run");
  }
  if (workspace_bytes < executor->workspace_bytes || (workspace == nullptr && executor->workspace_bytes != 0)) {
    return fail(ACLNN_ERR_PARAM_INVALID, function, "the workspace has %llu bytes, the operator needs %llu",
                static_cast<unsigned long long>(workspace == nullptr ? 0 : workspace_bytes),
                static_cast<unsigned long long>(executor->workspace_bytes));
  }
  if (executor->workspace_bytes != 0 && runtime.memory.side_of(workspace) != acl::Side::Device) {
    return fail(ACLNN_ERR_PARAM_INVALID, function, "the workspace does not lie in device memory (aclrtMalloc)");
  }
  aclError error = ACL_SUCCESS;
  acl::Stream* queue = acl::find_stream(runtime, stream, function, &error);
  if (queue == nullptr) return ACLNN_ERR_RUNTIME_ERROR;
  std::shared_ptr<aclOpExecutor> owner(executor, [](aclOpExecutor*) {});
  if (!executor->is_repeatable) {
    executors().erase(executor);
    owner = std::shared_ptr<aclOpExecutor>(executor);
  }
  acl::submit(*queue, {[&runtime, owner, workspace, name = std::string(function)] {
                         return execute(runtime, *owner, name, workspace);
                       },
                       nullptr, nullptr, function});
  return ACLNN_SUCCESS;
}

}  // namespace opkit::aclnn

aclnnStatus aclnnInit(const char* config_path) {
  (void)config_path;
  return ACLNN_SUCCESS;
}

aclnnStatus aclnnFinalize(void) { return ACLNN_SUCCESS; }

aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
  const std::lock_guard<std::recursive_mutex> guard(opkit::acl::Runtime::get().lock);
  if (opkit::aclnn::executors().count(executor) == 0) {
    return fail(ACLNN_ERR_PARAM_INVALID, "aclSetAclOpExecutorRepeatable", "%p is no executor, or was used up",
                static_cast<void*>(executor));
  }
  executor->is_repeatable = true;
  return ACLNN_SUCCESS;
}

aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) {
  opkit::acl::Runtime& runtime = opkit::acl::Runtime::get();
  const std::lock_guard<std::recursive_mutex> guard(runtime.lock);
  if (opkit::aclnn::executors().erase(executor) == 0) {
    return fail(ACLNN_ERR_PARAM_INVALID, "aclDestroyAclOpExecutor", "%p is no executor, or was used up",
                static_cast<void*>(executor));
  }
  opkit::acl::drain_all(runtime);  // queued runs still need it
  delete executor;
  return ACLNN_SUCCESS;
}
