/// Memory of the emulated devices: what torch's allocator and td::mm allocate from. Plain C, stable; nothing throws.
///
/// Each device has one range of addresses as large as the chip's memory. Blocks are cut from segments and kept for the
/// next allocation when they are given back; a block's address and size are multiples of 512 bytes.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "opkit/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/// One figure: what it is now, its peak, and what was added to it and taken off it in all.
typedef struct opkit_memory_figure {
  int64_t current;
  int64_t peak;
  int64_t added;
  int64_t removed;
} opkit_memory_figure;

/// Small blocks (up to 1 MiB), large ones, and both.
enum { OPKIT_MEMORY_ALL = 0, OPKIT_MEMORY_SMALL = 1, OPKIT_MEMORY_LARGE = 2, OPKIT_MEMORY_POOLS = 3 };

typedef struct opkit_memory_figures {
  opkit_memory_figure allocations[OPKIT_MEMORY_POOLS];     ///< blocks handed out
  opkit_memory_figure segments[OPKIT_MEMORY_POOLS];        ///< taken from the device
  opkit_memory_figure inactive_split[OPKIT_MEMORY_POOLS];  ///< free parts of segments that are in use
  opkit_memory_figure allocated_bytes[OPKIT_MEMORY_POOLS];
  opkit_memory_figure reserved_bytes[OPKIT_MEMORY_POOLS];
  opkit_memory_figure inactive_split_bytes[OPKIT_MEMORY_POOLS];
  opkit_memory_figure requested_bytes[OPKIT_MEMORY_POOLS];  ///< before they were rounded up
  int64_t retries;                                          ///< allocations that had the cache given back first
  int64_t out_of_memory;                                    ///< allocations that failed
  int64_t segment_allocations;
  int64_t segment_releases;
  int64_t cache_hits;         ///< allocations that a cached block served
  int64_t predictions;        ///< allocations for which the history named a size
  int64_t right_predictions;  ///< of these, those of that size
  int64_t max_split_bytes;    ///< -1: blocks of any size are split
} opkit_memory_figures;

/// Why the last allocation of this thread failed.
typedef struct opkit_memory_shortage {
  uint64_t wanted_bytes;
  uint64_t total_bytes;
  uint64_t free_bytes;
  uint64_t allocated_bytes;
  uint64_t reserved_bytes;
  uint64_t host_refused;  ///< 1: the host had no memory, the device had
} opkit_memory_shortage;

OPKIT_API int32_t opkit_memory_devices(void);
/// How many devices there are; before the first allocation. 0 on success.
OPKIT_API int32_t opkit_memory_set_devices(int32_t count);
/// Null when there is no room; `bytes` may be 0, which gives null too.
OPKIT_API void* opkit_memory_allocate(int32_t device, uint64_t bytes, uint64_t stream);
/// 0, or -1 where `pointer` is no allocation of any device.
OPKIT_API int32_t opkit_memory_free(void* pointer);
/// The device that an address belongs to, -1 for others.
OPKIT_API int32_t opkit_memory_device_of(const void* pointer);
/// The usable bytes of an allocation from its start; 0 where `pointer` is none.
OPKIT_API uint64_t opkit_memory_size_of(const void* pointer);
OPKIT_API void opkit_memory_shortage_of_thread(opkit_memory_shortage* shortage);
OPKIT_API void opkit_memory_get_figures(int32_t device, opkit_memory_figures* figures);
OPKIT_API void opkit_memory_reset_peaks(int32_t device);
OPKIT_API void opkit_memory_reset_totals(int32_t device);
/// Gives segments without a block in use back.
OPKIT_API void opkit_memory_release_cache(int32_t device);
OPKIT_API void opkit_memory_info(int32_t device, uint64_t* free_bytes, uint64_t* total_bytes);
/// `max_split_bytes` -1: any; `collect_above` 0: never, else the part of the memory above which unused cached blocks
/// are given back; `fraction`: the part of the memory that this process may use. 0, or -1 for values that cannot be.
OPKIT_API int32_t opkit_memory_configure(int32_t device, int64_t max_split_bytes, double collect_above,
                                         double fraction);
/// Keeps the last `entries` allocations and releases for the snapshot; 0: none. `stack` names the caller, and may be
/// null: its text is kept with the entry.
OPKIT_API void opkit_memory_record(uint64_t entries, const char* (*stack)(void));
/// Segments, blocks and recorded events as JSON; valid until the thread's next call.
OPKIT_API const char* opkit_memory_snapshot(void);

#ifdef __cplusplus
}
#endif
