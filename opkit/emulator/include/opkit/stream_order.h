/// What programs say of the order of their streams, for whoever watches: the acl runtime and torch's device tell it at
/// each call. Plain C, stable; nothing throws.
#pragma once

#include <stdint.h>

#include "opkit/export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum opkit_stream_action {
  OPKIT_STREAM_RECORDS = 0,       ///< `event` is recorded in `stream`
  OPKIT_STREAM_WAITS = 1,         ///< what follows in `stream` waits for `event`
  OPKIT_STREAM_SYNCHRONISED = 2,  ///< the host has waited for `stream`
  OPKIT_STREAM_ENDED = 3,         ///< `stream` was destroyed
  OPKIT_EVENT_ENDED = 4           ///< `event` was destroyed or reset
} opkit_stream_action;

typedef struct opkit_stream_note {
  opkit_stream_action action;
  uint64_t stream;     ///< the same for one stream of one runtime
  uint64_t event;      ///< the same for one event of one runtime
  const char* runtime; /**< "acl" or "torch" */
  const void* caller;  ///< where the program's call returns to; null where nobody knows
} opkit_stream_note;

typedef void (*opkit_stream_watcher)(void* self, const opkit_stream_note* note);

/// Has every call told to `watcher`, on the thread that makes it. 0, or -1 where there are 16 watchers already.
OPKIT_API int32_t opkit_watch_streams(opkit_stream_watcher watcher, void* self);
OPKIT_API void opkit_unwatch_streams(opkit_stream_watcher watcher, void* self);
/// What runtimes call.
OPKIT_API void opkit_tell_streams(const opkit_stream_note* note);
/// Where a return address lies, as "file" or "file+0x12" of a loaded file; valid until the thread's next call.
OPKIT_API const char* opkit_place_of_call(const void* caller, uint64_t* offset);
/// The path of the kernels that are shipped beside this library, for opkit_kernel_open.
OPKIT_API const char* opkit_shipped_kernels(void);

#ifdef __cplusplus
}
#endif
