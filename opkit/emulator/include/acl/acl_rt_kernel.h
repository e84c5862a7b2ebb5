/// Kernel libraries: loading, finding kernels, launching them. A library is what `opkit cc --kernel-library` or
/// aclrtcCompileProg makes. Source: runtime API documents, loading and executing kernels.
#pragma once

#include "acl/acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void* aclrtBinary;
typedef void* aclrtBinHandle;
typedef void* aclrtFuncHandle;
typedef void* aclrtArgsHandle;
typedef void* aclrtParamHandle;

#define ACL_RT_BINARY_MAGIC_ELF_AICORE 0x43554245U
#define ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE 0x41415246U
#define ACL_RT_BINARY_MAGIC_ELF_CUBE_CORE 0x41494343U

typedef enum aclrtBinaryLoadOptionType {
  ACL_RT_BINARY_LOAD_OPT_LAZY_LOAD = 1,
  ACL_RT_BINARY_LOAD_OPT_MAGIC = 2,
  ACL_RT_LOAD_BINARY_OPT_MAGIC = 2,
  ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE = 3
} aclrtBinaryLoadOptionType;

typedef union aclrtBinaryLoadOptionValue {
  uint32_t isLazyLoad;
  uint32_t magic;
  int32_t cpuKernelMode;
  uint32_t rsv[4];
} aclrtBinaryLoadOptionValue;

typedef struct aclrtBinaryLoadOption {
  aclrtBinaryLoadOptionType type;
  aclrtBinaryLoadOptionValue value;
} aclrtBinaryLoadOption;

typedef struct aclrtBinaryLoadOptions {
  aclrtBinaryLoadOption* options;
  size_t numOpt;
} aclrtBinaryLoadOptions;

typedef enum aclrtLaunchKernelAttrId {
  ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE = 1,
  ACL_RT_LAUNCH_KERNEL_ATTR_ENGINE_TYPE = 3,
  ACL_RT_LAUNCH_KERNEL_ATTR_BLOCKDIM_OFFSET = 4,
  ACL_RT_LAUNCH_KERNEL_ATTR_BLOCK_TASK_PREFETCH = 5,
  ACL_RT_LAUNCH_KERNEL_ATTR_DATA_DUMP = 6,
  ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT = 7
} aclrtLaunchKernelAttrId;

typedef union aclrtLaunchKernelAttrValue {
  uint8_t schemMode;
  uint32_t localMemorySize;
  uint32_t blockDimOffset;
  uint8_t isBlockTaskPrefetch;
  uint8_t isDataDump;
  uint16_t timeout;
  uint32_t rsv[4];
} aclrtLaunchKernelAttrValue;

typedef struct aclrtLaunchKernelAttr {
  aclrtLaunchKernelAttrId id;
  aclrtLaunchKernelAttrValue value;
} aclrtLaunchKernelAttr;

typedef struct aclrtLaunchKernelCfg {
  aclrtLaunchKernelAttr* attrs;
  size_t numAttrs;
} aclrtLaunchKernelCfg;

typedef struct aclrtPlaceHolderInfo {
  uint32_t addrOffset;
  uint32_t dataOffset;
} aclrtPlaceHolderInfo;

/// Options choose how a chip loads; kernels of the AI CPU are refused.
OPKIT_API aclError aclrtBinaryLoadFromFile(const char* path, aclrtBinaryLoadOptions* options, aclrtBinHandle* binary);
OPKIT_API aclError aclrtBinaryLoadFromData(const void* data, size_t length, const aclrtBinaryLoadOptions* options,
                                           aclrtBinHandle* binary);
/// Runs what is queued first.
OPKIT_API aclError aclrtBinaryUnLoad(aclrtBinHandle binary);
OPKIT_API aclrtBinary aclrtCreateBinary(const void* data, size_t length);
OPKIT_API aclError aclrtDestroyBinary(aclrtBinary binary);
OPKIT_API aclError aclrtBinaryLoad(const aclrtBinary binary, aclrtBinHandle* handle);
/// Finds a kernel by its name in the source, its linker name or its name expression.
OPKIT_API aclError aclrtBinaryGetFunction(const aclrtBinHandle binary, const char* name, aclrtFuncHandle* function);
OPKIT_API aclError aclrtGetFunctionName(aclrtFuncHandle function, uint32_t capacity, char* name);

OPKIT_API aclError aclrtKernelArgsInit(aclrtFuncHandle function, aclrtArgsHandle* arguments);
OPKIT_API aclError aclrtKernelArgsAppend(aclrtArgsHandle arguments, void* value, size_t size,
                                         aclrtParamHandle* parameter);
OPKIT_API aclError aclrtKernelArgsParaUpdate(aclrtArgsHandle arguments, aclrtParamHandle parameter, void* value,
                                             size_t size);
OPKIT_API aclError aclrtKernelArgsFinalize(aclrtArgsHandle arguments);

/// `arguments` lies in device memory, each value at a multiple of its alignment.
OPKIT_API aclError aclrtLaunchKernel(aclrtFuncHandle function, uint32_t blocks, const void* arguments, size_t size,
                                     aclrtStream stream);
OPKIT_API aclError aclrtLaunchKernelV2(aclrtFuncHandle function, uint32_t blocks, const void* arguments, size_t size,
                                       aclrtLaunchKernelCfg* config, aclrtStream stream);
OPKIT_API aclError aclrtLaunchKernelWithConfig(aclrtFuncHandle function, uint32_t blocks, aclrtStream stream,
                                               aclrtLaunchKernelCfg* config, aclrtArgsHandle arguments, void* reserved);
/// Placeholders are not supported: `placeholder_count` must be 0.
OPKIT_API aclError aclrtLaunchKernelWithHostArgs(aclrtFuncHandle function, uint32_t blocks, aclrtStream stream,
                                                 aclrtLaunchKernelCfg* config, void* arguments, size_t size,
                                                 aclrtPlaceHolderInfo* placeholders, size_t placeholder_count);
/// `function` is a handle; the name of a kernel of the same program has `<<<>>>` instead.
OPKIT_API aclError aclrtLaunchKernelWithArgsArray(void* function, uint32_t blocks, aclrtStream stream,
                                                  aclrtLaunchKernelCfg* config, void** arguments);

#ifdef __cplusplus
}
#endif
