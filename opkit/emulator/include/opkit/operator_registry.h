/// Which implementations an operator has: one registry for the process, which torch's device and td::OperatorRegistry
/// share. Plain C, stable; nothing throws.
///
/// Three tables: implementations for a data type come first, then those for a kind of device, then the others; within
/// each the highest priority. Two of one table and one priority are an error that names both and where they stand.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "opkit/export.h"
#include "opkit/op_call.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  OPKIT_OPERATOR_CALLABLE = 0,  ///< `refuse` and `run` serve calls
  OPKIT_OPERATOR_TORCH = 1      ///< `self` means something to torch's device alone
};

/// One implementation. The registry copies its texts, and hands out rows that live as long as the process.
typedef struct opkit_operator {
  const char* op;      ///< such as aten::add.out
  const char* name;    ///< of the implementation, for messages
  int32_t priority;    ///< the highest that takes a call serves it
  const char* device;  ///< the chip that it is for; null: any
  int32_t dtype;       ///< of the first tensor, a ge::DataType number; -1: any
  const char* file;    ///< where it was registered; null: unknown
  uint32_t line;
  int32_t kind;
  void* self;
  /// Null where the call is taken, else why not; valid until the thread's next call.
  const char* (*refuse)(void* self, const opkit_tensor* inputs, size_t input_count);
  /// Computes the outputs, which are there. Anything but OPKIT_OK: opkit_registry_fail says what was wrong.
  opkit_status (*run)(void* self, const opkit_tensor* inputs, size_t input_count, const opkit_tensor* outputs,
                      size_t output_count, const opkit_attr* attrs, size_t attr_count);
} opkit_operator;

/// The number of an operator's name, the same for the life of the process.
OPKIT_API uint32_t opkit_registry_id(const char* op);
/// Adds one; OPKIT_USAGE where a field is missing, or one of its table and priority is there.
OPKIT_API opkit_status opkit_registry_add(const opkit_operator* implementation);
/// Takes those with this `self` out, and returns how many there were.
OPKIT_API size_t opkit_registry_remove(const void* self);
/// The implementations for a call, first choice first; `chip` null is the one that is emulated. Returns how many
/// there are, of which up to `room` are in `rows`.
OPKIT_API size_t opkit_registry_candidates(uint32_t id, int32_t dtype, const char* chip, const opkit_operator** rows,
                                           size_t room);
/// Every implementation as JSON; valid until the thread's next call.
OPKIT_API const char* opkit_registry_describe(void);
/// Keeps what an implementation's `run` has to say for opkit_last_error(), and returns the status.
OPKIT_API opkit_status opkit_registry_fail(opkit_status status, const char* message);

#ifdef __cplusplus
}
#endif
