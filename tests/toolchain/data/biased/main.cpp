#include <cstdio>

#include "acl/acl.h"
#include "aclnn_biased.h"

/// Prints y = x + bias + terms for one element of a type.
template <typename T, typename Scalar>
int run(aclDataType type, T x, aclDataType scalar_type, Scalar bias, Scalar term, const char* format) {
  aclrtStream stream = nullptr;
  if (aclrtCreateStream(&stream) != 0) return 1;
  void* memory[2] = {};
  for (void*& each : memory) aclrtMalloc(&each, sizeof x, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemcpy(memory[0], sizeof x, &x, sizeof x, ACL_MEMCPY_HOST_TO_DEVICE);
  const int64_t shape[1] = {1};
  const auto tensor = [&](void* data) {
    return aclCreateTensor(shape, 1, type, nullptr, 0, ACL_FORMAT_ND, shape, 1, data);
  };
  aclTensor* in = tensor(memory[0]);
  aclTensor* out = tensor(memory[1]);
  aclScalar* scalar = aclCreateScalar(&bias, scalar_type);
  const aclScalar* members[2] = {aclCreateScalar(&term, scalar_type), aclCreateScalar(&term, scalar_type)};
  aclScalarList* terms = aclCreateScalarList(members, 2);
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  if (aclnnBiasedGetWorkspaceSize(in, scalar, terms, out, &bytes, &executor) != 0) return 2;
  void* workspace = nullptr;
  if (bytes != 0) aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
  if (aclnnBiased(workspace, bytes, executor, stream) != 0 || aclrtSynchronizeStream(stream) != 0) return 3;
  T y = {};
  aclrtMemcpy(&y, sizeof y, memory[1], sizeof y, ACL_MEMCPY_DEVICE_TO_HOST);
  std::printf(format, y);
  aclDestroyScalar(scalar);
  return aclDestroyScalarList(terms);
}

int main() {
  if (aclnnInit(nullptr) != 0 || aclrtSetDevice(0) != 0) return 1;
  if (int wrong = run(ACL_FLOAT, 1.0f, ACL_FLOAT, 0.5f, 0.25f, "%g\n")) return wrong;
  if (int wrong = run(ACL_FLOAT, 1.0f, ACL_DOUBLE, 0.5, 0.125, "%g\n")) return wrong;
  if (int wrong = run(ACL_INT32, int32_t{1}, ACL_INT64, int64_t{2}, int64_t{3}, "%d\n")) return wrong;
  const int64_t odd = (int64_t{1} << 53) + 1;
  return run(ACL_INT64, int64_t{0}, ACL_INT64, int64_t{0}, odd, "%ld\n");
}
