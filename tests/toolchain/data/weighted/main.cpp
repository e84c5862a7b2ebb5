#include <cstdio>
#include "acl/acl.h"
#include "aclnn_weighted_sum.h"

int main() {
  aclrtStream stream = nullptr;
  if (aclnnInit(nullptr) != 0 || aclrtSetDevice(0) != 0 || aclrtCreateStream(&stream) != 0) return 1;
  const float host[6] = {1, 2, 3, 4, 5, 6};
  void* memory[3] = {};
  for (void*& each : memory) aclrtMalloc(&each, sizeof host, ACL_MEM_MALLOC_HUGE_FIRST);
  for (int i = 0; i < 2; ++i) aclrtMemcpy(memory[i], sizeof host, host, sizeof host, ACL_MEMCPY_HOST_TO_DEVICE);
  const int64_t shape[2] = {2, 3};
  const int64_t storage[2] = {3, 2};
  const int64_t transposed[2] = {1, 2};
  const auto tensor = [&](void* data, const int64_t* strides) {
    return aclCreateTensor(shape, 2, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, strides == nullptr ? shape : storage, 2,
                           data);
  };
  const aclTensor* members[2] = {tensor(memory[0], nullptr), tensor(memory[1], transposed)};
  aclTensorList* list = aclCreateTensorList(members, 2);
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  std::printf("null %d\n", aclnnWeightedSumGetWorkspaceSize(nullptr, 2.0, members[0], &bytes, &executor));
  aclTensor* wrong = aclCreateTensor(shape, 2, ACL_INT32, nullptr, 0, ACL_FORMAT_ND, shape, 2, memory[2]);
  std::printf("type %d\n", aclnnWeightedSumGetWorkspaceSize(list, 2.0, wrong, &bytes, &executor));
  // Not what InferShape gives: that is for graphs.
  const int64_t flat[1] = {6};
  aclTensor* out = aclCreateTensor(flat, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, flat, 1, memory[2]);
  std::printf("first %d\n", aclnnWeightedSumGetWorkspaceSize(list, 2.0, out, &bytes, &executor));
  void* workspace = nullptr;
  aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
  std::printf("second %d of %d\n", aclnnWeightedSum(workspace, bytes, executor, stream), int(bytes));
  std::printf("again %d\n", aclnnWeightedSum(workspace, bytes, executor, stream));
  aclrtSynchronizeStream(stream);
  float result[6] = {};
  aclrtMemcpy(result, sizeof result, memory[2], sizeof result, ACL_MEMCPY_DEVICE_TO_HOST);
  for (float value : result) std::printf("%g ", value);
  std::printf("\n");
  aclDestroyTensorList(list);
  aclDestroyTensor(out);
  return aclDestroyTensor(wrong);
}
