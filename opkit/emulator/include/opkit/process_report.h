/// What a process tells of itself: its log, and the memory that its devices hold. Plain C, stable; nothing throws.
///
/// The library neither opens files nor reads the environment: whoever starts it says where records and figures go
/// (opkit/process_files.h).
#pragma once

#include <stdint.h>

#include "opkit/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Numbers of the levels as ASCEND_GLOBAL_LOG_LEVEL has them. Source: environment variable reference, log level.
enum { OPKIT_LOG_DEBUG = 0, OPKIT_LOG_INFO = 1, OPKIT_LOG_WARNING = 2, OPKIT_LOG_ERROR = 3, OPKIT_LOG_NONE = 4 };

/// Takes one record, from any thread. `where` is "file:line", or empty.
typedef void (*opkit_log_sink)(int32_t level, const char* component, const char* where, const char* message);

/// Records of `lowest_level` and above go to `sink`; null: nowhere.
OPKIT_API void opkit_set_log(opkit_log_sink sink, int32_t lowest_level);
/// Logs a record, such as one of the device's binding for PyTorch.
OPKIT_API void opkit_write_log(int32_t level, const char* component, const char* where, const char* message);
/// Whether records of this level go anywhere.
OPKIT_API int32_t opkit_logs(int32_t level);

enum { OPKIT_PUBLISHED_DEVICES = 64, OPKIT_PUBLISHED_FIGURES = 2 };

/// Has the bytes that each device's allocations hold, and those that it has reserved for them, kept current in
/// `figures[device][2]`, which others may read meanwhile; null: no longer. What was allocated before does not count.
OPKIT_API void opkit_memory_publish(int64_t (*figures)[OPKIT_PUBLISHED_FIGURES]);

#ifdef __cplusplus
}
#endif
