/// What the helper headers that contests and courses hand out call: they find aclnn functions by themselves and give the
/// call to OpCommand. Source: those public headers, and the public op-plugin guide.
#pragma once

#include <torch/extension.h>

#include <functional>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "op_common/log/log.h"
#include "opkit_npu/names.h"

// These headers name both without their namespace.
using std::string;
using std::vector;

namespace torch_npu::utils {

inline c10::DeviceType get_npu_device_type() { return c10::DeviceType::PrivateUse1; }
inline bool is_npu(const at::Tensor& tensor) { return tensor.is_privateuseone(); }
inline bool is_npu(const at::TensorOptions& options) { return options.device().is_privateuseone(); }
inline bool is_npu(const at::Device& device) { return device.is_privateuseone(); }

}  // namespace torch_npu::utils

namespace at_npu::native {

/// One call of an operator. The call has been made, and has ended, when `Run` returns.
class OpCommand {
 public:
  OpCommand& Name(const std::string& name) {
    name_ = name;
    return *this;
  }
  void SetCustomHandler(std::function<int()> handler) { handler_ = std::move(handler); }

  /// Throws where the handler reports a failure, or there is none: operators are not called by their types here.
  void Run() {
    TORCH_CHECK(handler_, "OpCommand: ", name_, " has no handler (SetCustomHandler), and opkit runs no operator by type;",
                " call its aclnn function");
    run(name_, handler_);
  }

  /// Makes the call at once.
  static void RunOpApi(const std::string& name, const std::function<int()>& handler) { run(name, handler); }
  static void RunOpApiV2(const std::string& name, const std::function<int()>& handler) { run(name, handler); }

 private:
  static void run(const std::string& name, const std::function<int()>& handler) {
    const int status = handler();
    const char* reason = aclGetRecentErrMsg();
    TORCH_CHECK(status == ACL_SUCCESS, name, " returned ", status, ": ", reason == nullptr ? "no detail" : reason);
  }

  std::string name_;
  std::function<int()> handler_;
};

}  // namespace at_npu::native

// As host functions log.
#define ASCEND_LOGD(...) OPKIT_HOST_LOG(Debug, "", __VA_ARGS__)
#define ASCEND_LOGI(...) OPKIT_HOST_LOG(Info, "", __VA_ARGS__)
#define ASCEND_LOGW(...) OPKIT_HOST_LOG(Warning, "", __VA_ARGS__)
#define ASCEND_LOGE(...) OPKIT_HOST_LOG(Error, "", __VA_ARGS__)
