#include <cstdio>
#include <initializer_list>

#include "acl/acl.h"
#include "aclnn_positives.h"

/// Prints the elements above 0, as many as the tensor has after the run; the second time the tensor is gone by then.
int main() {
  aclrtStream stream = nullptr;
  if (aclnnInit(nullptr) != 0 || aclrtSetDevice(0) != 0 || aclrtCreateStream(&stream) != 0) return 1;
  const float values[6] = {1, -2, 3, 0, -5, 6};
  float found[6] = {};
  void* memory[2] = {};
  for (void*& each : memory) aclrtMalloc(&each, sizeof values, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemcpy(memory[0], sizeof values, values, sizeof values, ACL_MEMCPY_HOST_TO_DEVICE);
  const int64_t shape[1] = {6};
  for (bool keeps : {true, false}) {
    aclTensor* in = aclCreateTensor(shape, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, shape, 1, memory[0]);
    aclTensor* out = aclCreateTensor(shape, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, shape, 1, memory[1]);
    uint64_t bytes = 0;
    aclOpExecutor* executor = nullptr;
    if (aclnnPositivesGetWorkspaceSize(in, out, &bytes, &executor) != 0) return 2;
    if (!keeps) aclDestroyTensor(out);
    if (aclnnPositives(nullptr, bytes, executor, stream) != 0 || aclrtSynchronizeStream(stream) != 0) return 3;
    int64_t* dims = nullptr;
    uint64_t rank = 0;
    if (keeps && (aclGetViewShape(out, &dims, &rank) != 0 || rank != 1)) return 4;
    aclrtMemcpy(found, sizeof found, memory[1], sizeof found, ACL_MEMCPY_DEVICE_TO_HOST);
    for (int64_t i = 0; keeps && i < dims[0]; ++i) std::printf("%g\n", found[i]);
  }
  return 0;
}
