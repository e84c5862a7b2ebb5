/// The operator call: how Python, the pybind11 module and the torch library run an operator. Plain C, stable.
///
/// Every function returns an opkit_status and throws nothing; after a status other than OPKIT_OK,
/// opkit_last_error() describes it for the calling thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "opkit/export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum opkit_status {
  OPKIT_OK = 0,
  OPKIT_USAGE = 2,     // wrong dtype, shape, attribute or argument count: the message says which
  OPKIT_MISSING = 3,   // no kernel variant for these dtypes, unreadable or incompatible artifact
  OPKIT_FAULT = 1,     // the kernel faulted; the device can be used again
  OPKIT_INTERNAL = 70  // our bug
} opkit_status;

/// One dense tensor. `dtype` is a ge::DataType number (opkit/dtypes.py, column ge_value). An absent optional input
/// has `data` null and `rank` -1.
typedef struct opkit_tensor {
  void* data;
  const int64_t* shape;
  int32_t rank;
  int32_t dtype;
} opkit_tensor;

/// How an attribute's value is carried.
typedef enum opkit_attr_kind {
  OPKIT_ATTR_INT = 0,
  OPKIT_ATTR_FLOAT = 1,
  OPKIT_ATTR_BOOL = 2,
  OPKIT_ATTR_STRING = 3,
  OPKIT_ATTR_LIST_INT = 4,
  OPKIT_ATTR_LIST_FLOAT = 5,
  OPKIT_ATTR_LIST_BOOL = 6,
  OPKIT_ATTR_LIST_LIST_INT = 7
} opkit_attr_kind;

/// One attribute by name; attributes left out take the default of the operator's OpDef.
typedef struct opkit_attr {
  const char* name;
  opkit_attr_kind kind;
  int64_t int_value;           // INT and BOOL
  double float_value;          // FLOAT
  const char* string_value;    // STRING
  const int64_t* int_list;     // LIST_INT and LIST_BOOL; LIST_LIST_INT: all values, one list after the other
  const double* float_list;    // LIST_FLOAT
  size_t list_length;          // LIST_LIST_INT: the number of lists
  const size_t* list_lengths;  // LIST_LIST_INT: the length of each
} opkit_attr;

/// What an output will be: at most 8 dimensions.
typedef struct opkit_shape {
  int64_t dims[8];
  int32_t rank;
  int32_t dtype;
} opkit_shape;

/// The arguments of one call: tensors in OpDef order, those of a dynamic param one after the other; attributes by name.
typedef struct opkit_call {
  const opkit_tensor* inputs;
  size_t input_count;
  const opkit_attr* attrs;
  size_t attr_count;
  const size_t* input_lengths;  // how many of `inputs` belong to each OpDef input; null: one each
  size_t input_length_count;
  const size_t* output_lengths;  // how many tensors each OpDef output has: 1, or 0 for an optional one that is not
  size_t output_length_count;    // wanted; null: one each, a dynamic output as many as the first dynamic input
  const opkit_tensor* outputs;   // the caller's, where they are there before the call: shapes (rank -1: none) and types
  size_t output_count;           // (-1: none) for what the operator itself does not infer; null otherwise
} opkit_call;

typedef struct opkit_library opkit_library;

/// Opens an artifact folder; the same folder opened twice is the same library. Never closed.
OPKIT_API opkit_status opkit_library_open(const char* folder, opkit_library** library);

/// Infers the outputs of operator `op_type` (its OpDef name) by its own InferShape and InferDataType.
/// `outputs` has room for `*output_count` entries; on return `*output_count` is the operator's number of outputs.
OPKIT_API opkit_status opkit_infer(opkit_library* library, const char* op_type, const opkit_call* call,
                                   opkit_shape* outputs, size_t* output_count);

/// Runs the operator: its TilingFunc, then the kernel variant for these dtypes on the configured device.
OPKIT_API opkit_status opkit_run(opkit_library* library, const char* op_type, const opkit_call* call,
                                 const opkit_tensor* outputs, size_t output_count);

/// One call in steps: its outputs are known before memory for them is there, and its workspace can be the caller's.
typedef struct opkit_plan opkit_plan;

/// Binds a call and infers its outputs. `call` and what it points at may go afterwards, except for the tensors' data.
OPKIT_API opkit_status opkit_prepare(opkit_library* library, const char* op_type, const opkit_call* call,
                                     opkit_plan** plan);

/// The same for a caller whose outputs are there, as an aclnn function's: where `call` has the shape and the type of
/// each, they are what the operator computes, and nothing is inferred. On the chip InferShape and InferDataType are for
/// graphs only.
OPKIT_API opkit_status opkit_prepare_given(opkit_library* library, const char* op_type, const opkit_call* call,
                                           opkit_plan** plan);

/// The outputs of a plan; valid as long as the plan. An output whose shape the kernel writes has the largest one that
/// it may have before opkit_plan_run, and what the kernel wrote afterwards: its elements come first in the tensor's
/// memory.
OPKIT_API const opkit_shape* opkit_plan_outputs(const opkit_plan* plan, size_t* output_count);

/// Whether these are the outputs that the plan wants: number, types, shapes.
OPKIT_API opkit_status opkit_plan_check_outputs(const opkit_plan* plan, const opkit_tensor* outputs,
                                                size_t output_count);

/// Runs the tiling function: the bytes of workspace that the kernel wants.
OPKIT_API opkit_status opkit_plan_workspace(opkit_plan* plan, uint64_t* size_bytes);

/// What a tiling function has set.
typedef struct opkit_tiling {
  uint64_t key;
  uint32_t blocks;
  const uint8_t* data;  ///< the plan's own
  uint64_t size_bytes;
} opkit_tiling;

/// Runs the tiling function. Of a plan that launches nothing: OPKIT_USAGE.
OPKIT_API opkit_status opkit_plan_tiling(opkit_plan* plan, opkit_tiling* tiling);

/// Runs the kernel, after tiling where that has not been done. A null `workspace` is replaced by memory of its own.
OPKIT_API opkit_status opkit_plan_run(opkit_plan* plan, const opkit_tensor* outputs, size_t output_count,
                                      void* workspace);

OPKIT_API void opkit_plan_destroy(opkit_plan* plan);

/// What the last failing call on this thread had to say; never null.
OPKIT_API const char* opkit_last_error(void);

#ifdef __cplusplus
}
#endif
