// Ranges that programs open for a profiler.
#include <map>
#include <mutex>
#include <string>

#include "acl/acl_prof.h"
#include "acl/error.h"

using namespace opkit::acl;

namespace {

constexpr uint32_t kMaxDims = 8;  // Source: runtime API, aclprofEventAttributes

/// How many ranges of this thread are open.
thread_local uint32_t open_ranges = 0;

}  // namespace

uint64_t aclprofStr2Id(const char* message) {
  static std::mutex lock;
  static auto* numbers = new std::map<std::string, uint64_t>();
  if (message == nullptr) return 0;
  const std::lock_guard<std::mutex> guard(lock);
  return numbers->emplace(message, numbers->size() + 1).first->second;
}

aclError aclprofRangePushEx(aclprofEventAttributes* attr) {
  const auto refuse = [](const char* reason) {
    return fail(ACL_ERROR_INVALID_PARAM, "aclprofRangePushEx", "%s", reason);
  };
  if (attr == nullptr) return refuse("the pointer is null");
  if (attr->messageType != MESSAGE_TYPE_TENSOR_INFO) return refuse("messageType is not MESSAGE_TYPE_TENSOR_INFO");
  const aclprofTensorInfo* info = attr->message.tensorInfo;
  if (info == nullptr) return refuse("message.tensorInfo is null");
  if (info->tensorNum != 0 && info->tensors == nullptr) return refuse("tensors is null");
  for (uint32_t i = 0; i < info->tensorNum; ++i) {
    if (info->tensors[i].shapeDim > kMaxDims) return refuse("a tensor has more than 8 dims");
    if (info->tensors[i].type > 1) return refuse("a tensor is neither an input (0) nor an output (1)");
  }
  ++open_ranges;
  return ACL_SUCCESS;
}

aclError aclprofRangePop(void) {
  if (open_ranges == 0) {
    return fail(ACL_ERROR_INVALID_PARAM, "aclprofRangePop", "no range is open: aclprofRangePushEx opens one");
  }
  --open_ranges;
  return ACL_SUCCESS;
}
