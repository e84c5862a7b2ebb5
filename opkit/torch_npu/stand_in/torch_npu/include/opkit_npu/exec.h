/// EXEC_NPU_CMD: calls the two functions of an aclnn operator on tensors of the device. Source: public op-plugin guide,
/// EXEC_NPU_CMD; public documents of the aclnn API, two-phase calls.
///
/// The functions come from what is in the process already, then from libcust_opapi.so of each folder in
/// ASCEND_CUSTOM_OPP_PATH, then from those of $ASCEND_OPP_PATH/vendors. The call has ended when the macro has.
#pragma once

#include <dirent.h>
#include <dlfcn.h>
#include <torch/extension.h>

#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"

namespace opkit_npu {

/// The type's number in the aclnn API; throws where it has none.
inline aclDataType type_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat: return ACL_FLOAT;
    case at::kHalf: return ACL_FLOAT16;
    case at::kBFloat16: return ACL_BF16;
    case at::kDouble: return ACL_DOUBLE;
    case at::kChar: return ACL_INT8;
    case at::kByte: return ACL_UINT8;
    case at::kShort: return ACL_INT16;
    case at::kInt: return ACL_INT32;
    case at::kLong: return ACL_INT64;
    case at::kBool: return ACL_BOOL;
    default: TORCH_CHECK(false, "EXEC_NPU_CMD: the aclnn API has no type ", type);
  }
}

/// What the arguments of one call were turned into; given back when the call is over.
class Converted {
 public:
  Converted() = default;
  Converted(const Converted&) = delete;
  Converted& operator=(const Converted&) = delete;
  ~Converted() {
    for (auto release = releases_.rbegin(); release != releases_.rend(); ++release) (*release)();
  }

  aclTensor* make(const at::Tensor& tensor) {
    if (!tensor.defined()) return nullptr;
    TORCH_CHECK(tensor.is_privateuseone(), "EXEC_NPU_CMD: a tensor lies on ", tensor.device(), ", not on npu");
    const auto item = static_cast<int64_t>(tensor.itemsize());
    const int64_t storage = static_cast<int64_t>(tensor.storage().nbytes()) / item;
    aclTensor* made = aclCreateTensor(tensor.sizes().data(), tensor.sizes().size(), type_of(tensor.scalar_type()),
                                      tensor.strides().data(), tensor.storage_offset(), ACL_FORMAT_ND, &storage, 1,
                                      tensor.storage().mutable_data());
    TORCH_CHECK(made != nullptr, "EXEC_NPU_CMD: a tensor of sizes ", tensor.sizes(), " is not one of the aclnn API");
    return keep(made, [made] { aclDestroyTensor(made); });
  }
  aclTensor* make(const std::optional<at::Tensor>& tensor) { return tensor ? make(*tensor) : nullptr; }
  aclTensorList* make(at::TensorList tensors) {
    std::vector<const aclTensor*> members;
    for (const at::Tensor& tensor : tensors) members.push_back(make(tensor));
    // The list owns its members.
    for (size_t i = 0; i < members.size(); ++i) releases_.pop_back();
    aclTensorList* made = aclCreateTensorList(members.data(), members.size());
    return keep(made, [made] { aclDestroyTensorList(made); });
  }
  aclScalar* make(const at::Scalar& scalar) {
    if (scalar.isBoolean()) return make_scalar(scalar.toBool(), ACL_BOOL);
    if (scalar.isIntegral(false)) return make_scalar(scalar.toLong(), ACL_INT64);
    return make_scalar(scalar.toFloat(), ACL_FLOAT);
  }
  aclIntArray* make(at::IntArrayRef values) {
    aclIntArray* made = aclCreateIntArray(values.data(), values.size());
    return keep(made, [made] { aclDestroyIntArray(made); });
  }
  aclBoolArray* make(at::ArrayRef<bool> values) {
    aclBoolArray* made = aclCreateBoolArray(values.data(), values.size());
    return keep(made, [made] { aclDestroyBoolArray(made); });
  }
  char* make(const char* text) { return const_cast<char*>(text); }
  char* make(const std::string& text) { return const_cast<char*>(text.c_str()); }
  bool make(bool value) { return value; }
  double make(double value) { return value; }
  double make(float value) { return value; }
  int64_t make(int64_t value) { return value; }
  int64_t make(int value) { return value; }

 private:
  template <typename T, typename Release>
  T* keep(T* made, Release release) {
    releases_.emplace_back(std::move(release));
    return made;
  }
  template <typename T>
  aclScalar* make_scalar(T value, aclDataType type) {
    aclScalar* made = aclCreateScalar(&value, type);
    return keep(made, [made] { aclDestroyScalar(made); });
  }

  std::vector<std::function<void()>> releases_;
};

/// The libraries that may hold aclnn functions of the user's operators.
inline std::vector<std::string> operator_libraries() {
  std::vector<std::string> found;
  const auto add = [&](const std::string& folder) { found.push_back(folder + "/op_api/lib/libcust_opapi.so"); };
  if (const char* given = std::getenv("ASCEND_CUSTOM_OPP_PATH")) {
    std::string rest = given;
    while (!rest.empty()) {
      const size_t end = rest.find(':');
      if (end != 0) add(rest.substr(0, end));
      rest = end == std::string::npos ? "" : rest.substr(end + 1);
    }
  }
  if (const char* home = std::getenv("ASCEND_OPP_PATH")) {
    const std::string vendors = std::string(home) + "/vendors";
    if (DIR* folder = opendir(vendors.c_str())) {
      while (const dirent* entry = readdir(folder)) {
        if (entry->d_name[0] != '.') add(vendors + "/" + entry->d_name);
      }
      closedir(folder);
    }
  }
  return found;
}

/// A function's address; throws where no library has it.
inline void* find_function(const std::string& name) {
  if (void* found = dlsym(RTLD_DEFAULT, name.c_str())) return found;
  std::string looked;
  for (const std::string& path : operator_libraries()) {
    looked += "\n  " + path;
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    if (void* found = dlsym(library, name.c_str())) return found;
    dlclose(library);
  }
  TORCH_CHECK(false, "EXEC_NPU_CMD: there is no function ", name,
              looked.empty() ? std::string("; set ASCEND_CUSTOM_OPP_PATH to the installed operators")
                             : "; looked into" + looked);
}

inline const char* reason() {
  const char* text = aclGetRecentErrMsg();
  return text == nullptr ? "no further detail" : text;
}

/// This thread's stream; made when it is needed first.
inline aclrtStream stream_of_thread() {
  static thread_local aclrtStream stream = [] {
    static std::once_flag once;
    std::call_once(once, [] { aclInit(nullptr); });
    aclrtStream made = nullptr;
    TORCH_CHECK(aclrtSetDevice(0) == ACL_SUCCESS, "EXEC_NPU_CMD: ", reason());
    TORCH_CHECK(aclrtCreateStream(&made) == ACL_SUCCESS, "EXEC_NPU_CMD: ", reason());
    return made;
  }();
  return stream;
}

template <typename... Arguments>
void execute(const char* name, const Arguments&... arguments) {
  Converted kept;
  auto given = std::make_tuple(kept.make(arguments)...);
  const auto call = [&](auto... converted) {
    using FirstPhase = aclnnStatus (*)(decltype(converted)..., uint64_t*, aclOpExecutor**);
    using SecondPhase = aclnnStatus (*)(void*, uint64_t, aclOpExecutor*, aclrtStream);
    const auto first = reinterpret_cast<FirstPhase>(find_function(std::string(name) + "GetWorkspaceSize"));
    const auto second = reinterpret_cast<SecondPhase>(find_function(name));
    uint64_t workspace_bytes = 0;
    aclOpExecutor* executor = nullptr;
    aclnnStatus status = first(converted..., &workspace_bytes, &executor);
    TORCH_CHECK(status == ACLNN_SUCCESS, name, "GetWorkspaceSize returned ", status, ": ", reason());
    at::Tensor workspace;
    if (workspace_bytes != 0) {
      workspace = at::empty({static_cast<int64_t>(workspace_bytes)}, at::TensorOptions("npu").dtype(at::kByte));
    }
    aclrtStream stream = stream_of_thread();
    status = second(workspace.defined() ? workspace.data_ptr() : nullptr, workspace_bytes, executor, stream);
    TORCH_CHECK(status == ACLNN_SUCCESS, name, " returned ", status, ": ", reason());
    const aclError ended = aclrtSynchronizeStream(stream);
    TORCH_CHECK(ended == ACL_SUCCESS, name, " faulted with ", ended, ": ", reason());
  };
  std::apply(call, given);
}

}  // namespace opkit_npu

#define EXEC_NPU_CMD(function, ...) ::opkit_npu::execute(#function, __VA_ARGS__)
