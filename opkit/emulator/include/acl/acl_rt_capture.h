/// Capturing what is submitted to streams, to run it again as often as wanted (ACLGraph).
///
/// Between aclmdlRICaptureBegin and aclmdlRICaptureEnd, tasks of the stream are kept instead of run. A stream that
/// waits for an event recorded in a captured stream is captured too, until the end. A run of the captured tasks is one
/// task of the stream that it is submitted to. Source: runtime API documents, running instances of models.
#pragma once

#include "acl/acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void* aclmdlRI;

/// Whom a capture keeps from calls that could not be captured, such as aclrtMemcpy.
typedef enum {
  ACL_MODEL_RI_CAPTURE_MODE_GLOBAL = 0,        ///< every thread
  ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL = 1,  ///< the thread that began the capture
  ACL_MODEL_RI_CAPTURE_MODE_RELAXED = 2        ///< nobody
} aclmdlRICaptureMode;

OPKIT_API aclError aclmdlRICaptureBegin(aclrtStream stream, aclmdlRICaptureMode mode);
OPKIT_API aclError aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI* modelRI);
/// Runs the captured tasks once and waits for them; opkit keeps no time limits, so `timeout` is -1 or above 0 only.
OPKIT_API aclError aclmdlRIExecute(aclmdlRI modelRI, int32_t timeout);
OPKIT_API aclError aclmdlRIExecuteAsync(aclmdlRI modelRI, aclrtStream stream);
OPKIT_API aclError aclmdlRIDestroy(aclmdlRI modelRI);
/// Writes the captured tasks to a file, in the order of their runs: {"tasks": [{"stream": 0, "name": "add"}]}.
OPKIT_API aclError aclmdlRIDebugJsonPrint(aclmdlRI modelRI, const char* path, uint32_t flags);

#ifdef __cplusplus
}
#endif
