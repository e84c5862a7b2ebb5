/// What programs tell a profiler of the tensors of a launch. It is checked and not shown: opkit profile times
/// launches from outside. The profiler's other calls are not here. Source: runtime API,
/// aclprofRangePushEx, aclprofRangePop, aclprofEventAttributes.
#pragma once

#include "acl/acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

// Public programs define the structures themselves where they find this macro missing.
#ifndef ACL_PROF_TENSOR_INFO_DEFINED
#define ACL_PROF_TENSOR_INFO_DEFINED

typedef enum { MESSAGE_TYPE_TENSOR_INFO = 0 } ProfMessageType;

typedef struct aclprofTensor {
  uint32_t type;      ///< 0: input, 1: output
  uint32_t format;    ///< aclFormat
  uint32_t dataType;  ///< aclDataType
  uint32_t shapeDim;  ///< up to 8
  uint32_t shape[8];
} aclprofTensor;

typedef struct aclprofTensorInfo {
  uint64_t opNameId;  ///< of aclprofStr2Id
  uint64_t opTypeId;
  uint32_t resv;
  uint32_t tensorNum;
  uint32_t kernelType;
  uint32_t blockNums;
  void* stream;
  aclprofTensor* tensors;
} aclprofTensorInfo;

typedef struct aclprofEventAttributes {
  uint16_t version;
  uint16_t size;  ///< of `message`
  uint32_t messageType;
  union message {
    aclprofTensorInfo* tensorInfo;
  } message;
} aclprofEventAttributes;

#endif

/// The number of a text, the same one for each.
OPKIT_API uint64_t aclprofStr2Id(const char* message);
/// Opens a range of the calling thread: what it launches until the range ends works on these tensors.
OPKIT_API aclError aclprofRangePushEx(aclprofEventAttributes* attr);
/// Ends the range that was opened last.
OPKIT_API aclError aclprofRangePop(void);

#ifdef __cplusplus
}
#endif
