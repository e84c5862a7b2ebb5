/// Devices, contexts, streams, events and memory.
///
/// Streams are in order and asynchronous: what is queued runs when somebody waits for it (a synchronise, a query, a
/// destroyed stream, a reset device), in the order of the stream, and behind the events that the stream waits for.
/// So a program that forgets to synchronise reads old bytes every time, not now and then.
#pragma once

#include "acl/acl_base.h"
#include "acl/acl_rt_capture.h"
#include "acl/acl_rt_kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ACL_EVENT_SYNC 0x00000001u
#define ACL_EVENT_CAPTURE_STREAM_PROGRESS 0x00000002u
#define ACL_EVENT_TIME_LINE 0x00000008u

typedef enum {
  ACL_MEM_MALLOC_HUGE_FIRST = 0,
  ACL_MEM_MALLOC_HUGE_ONLY = 1,
  ACL_MEM_MALLOC_NORMAL_ONLY = 2,
  ACL_MEM_MALLOC_HUGE_FIRST_P2P = 3,
  ACL_MEM_MALLOC_HUGE_ONLY_P2P = 4,
  ACL_MEM_MALLOC_NORMAL_ONLY_P2P = 5
} aclrtMemMallocPolicy;

typedef enum {
  ACL_MEMCPY_HOST_TO_HOST = 0,
  ACL_MEMCPY_HOST_TO_DEVICE = 1,
  ACL_MEMCPY_DEVICE_TO_HOST = 2,
  ACL_MEMCPY_DEVICE_TO_DEVICE = 3,
  ACL_MEMCPY_DEFAULT = 4
} aclrtMemcpyKind;

typedef enum { ACL_EVENT_STATUS_COMPLETE = 0, ACL_EVENT_STATUS_NOT_READY = 1 } aclrtEventStatus;
typedef enum {
  ACL_EVENT_RECORDED_STATUS_NOT_READY = 0,
  ACL_EVENT_RECORDED_STATUS_COMPLETE = 1
} aclrtEventRecordedStatus;
typedef enum { ACL_STREAM_STATUS_COMPLETE = 0, ACL_STREAM_STATUS_NOT_READY = 1 } aclrtStreamStatus;
typedef enum {
  ACL_DEV_ATTR_AICPU_CORE_NUM = 1,
  ACL_DEV_ATTR_AICORE_CORE_NUM = 101,
  ACL_DEV_ATTR_VECTOR_CORE_NUM = 201
} aclrtDevAttr;
typedef enum {
  ACL_MEM_LOCATION_TYPE_HOST = 0,      ///< of aclrtMallocHost
  ACL_MEM_LOCATION_TYPE_DEVICE,        ///< of aclrtMalloc
  ACL_MEM_LOCATION_TYPE_UNREGISTERED,  ///< of neither
  ACL_MEM_LOCATION_TYPE_HOST_NUMA = 4
} aclrtMemLocationType;
typedef struct aclrtMemLocation {
  uint32_t id;  ///< of the device
  aclrtMemLocationType type;
} aclrtMemLocation;
typedef struct aclrtPtrAttributes {
  aclrtMemLocation location;
  uint32_t pageSize;  ///< in bytes; of the emulator's pages, not of the chip's
  uint32_t rsv[4];
} aclrtPtrAttributes;
typedef enum { ACL_RT_THREAD_LEVEL = 0 } aclrtLastErrLevel;

/// `config_path` names a JSON file of dump and profiling settings, which have no meaning here; null is usual.
OPKIT_API aclError aclInit(const char* config_path);
OPKIT_API aclError aclFinalize(void);

OPKIT_API aclError aclrtSetDevice(int32_t device);
/// Runs what is queued, then releases all that the device holds; a device that a kernel has faulted works again.
OPKIT_API aclError aclrtResetDevice(int32_t device);
OPKIT_API aclError aclrtGetDevice(int32_t* device);
OPKIT_API aclError aclrtGetDeviceCount(uint32_t* count);
/// The number of AI CPUs is not known.
OPKIT_API aclError aclrtGetDeviceInfo(uint32_t device, aclrtDevAttr attribute, int64_t* value);
OPKIT_API const char* aclrtGetSocName(void);
/// The version of a package of CANN's, of which none is here: an error, and the number stays what it is.
OPKIT_API aclError aclsysGetVersionNum(char* package, int32_t* version);
/// Where cores' flags lie, for SetSyncBaseAddr, which has nothing to do here: no kernel may use it otherwise.
OPKIT_API aclError aclrtGetHardwareSyncAddr(void** addr);
OPKIT_API aclError aclrtGetLastError(aclrtLastErrLevel level);
OPKIT_API aclError aclrtPeekAtLastError(aclrtLastErrLevel level);

OPKIT_API aclError aclrtCreateContext(aclrtContext* context, int32_t device);
OPKIT_API aclError aclrtDestroyContext(aclrtContext context);
OPKIT_API aclError aclrtSetCurrentContext(aclrtContext context);
OPKIT_API aclError aclrtGetCurrentContext(aclrtContext* context);

OPKIT_API aclError aclrtCreateStream(aclrtStream* stream);
OPKIT_API aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority, uint32_t flag);
OPKIT_API aclError aclrtDestroyStream(aclrtStream stream);
/// Drops what is queued.
OPKIT_API aclError aclrtDestroyStreamForce(aclrtStream stream);
OPKIT_API aclError aclrtSynchronizeStream(aclrtStream stream);
/// Nothing can run longer than the caller waits, so `timeout_ms` is never reached.
OPKIT_API aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout_ms);
OPKIT_API aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status);
OPKIT_API aclError aclrtSynchronizeDevice(void);
OPKIT_API aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout_ms);

OPKIT_API aclError aclrtCreateEvent(aclrtEvent* event);
OPKIT_API aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag);
OPKIT_API aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag);
OPKIT_API aclError aclrtDestroyEvent(aclrtEvent event);
OPKIT_API aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);
OPKIT_API aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream);
OPKIT_API aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event);
OPKIT_API aclError aclrtSynchronizeEvent(aclrtEvent event);
OPKIT_API aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status);

/// Aligned to 64 bytes. Kernels may touch `size` rounded up to 32 bytes: the further 32 bytes that a chip's runtime
/// reserves are no part of it here, so that an overrun is found.
OPKIT_API aclError aclrtMalloc(void** pointer, size_t size, aclrtMemMallocPolicy policy);
OPKIT_API aclError aclrtMallocAlign32(void** pointer, size_t size, aclrtMemMallocPolicy policy);
OPKIT_API aclError aclrtMallocCached(void** pointer, size_t size, aclrtMemMallocPolicy policy);
OPKIT_API aclError aclrtFree(void* pointer);
OPKIT_API aclError aclrtMallocHost(void** pointer, size_t size);
OPKIT_API aclError aclrtFreeHost(void* pointer);
OPKIT_API aclError aclrtMemcpy(void* destination, size_t destination_bytes, const void* source, size_t count,
                               aclrtMemcpyKind kind);
OPKIT_API aclError aclrtMemcpyAsync(void* destination, size_t destination_bytes, const void* source, size_t count,
                                    aclrtMemcpyKind kind, aclrtStream stream);
OPKIT_API aclError aclrtMemset(void* destination, size_t destination_bytes, int32_t value, size_t count);
OPKIT_API aclError aclrtMemsetAsync(void* destination, size_t destination_bytes, int32_t value, size_t count,
                                    aclrtStream stream);
/// Where memory lies, by any address in it.
OPKIT_API aclError aclrtPointerGetAttributes(const void* pointer, aclrtPtrAttributes* attributes);

#ifdef __cplusplus
}
#endif
