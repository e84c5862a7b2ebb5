/// What a project's libcust_opapi.so is made of: its functions name their arguments to this class, which checks and
/// runs them. The build writes those functions (opkit/toolchain/building/opapi.py); nobody else includes this.
#pragma once

#include <cstddef>
#include <cstdint>

#include "aclnn/aclnn_base.h"
#include "opkit/export.h"

namespace opkit::aclnn {

struct Arguments;

/// One file that a library or program carries inside.
struct PackedFile {
  const char* name;
  const char* begin;
  const char* end;
};

/// An artifact folder carried inside. It is never moved: its address says which one it is.
struct PackedFolder {
  const PackedFile* files;
  size_t count;
};

/// Collects the arguments of one first-phase function, inputs in OpDef order, then attributes, then outputs. Every
/// add function takes the name of the OpDef for messages. A null argument is checked by prepare.
class OPKIT_API Call {
 public:
  /// `function`: for messages. `address`: any function of the library, which lies in an artifact folder or in
  /// op_api/lib below it.
  Call(const char* function, const void* address, const char* op_type);
  /// The folder is written out for the first call, and deleted when the process ends.
  Call(const char* function, const PackedFolder& folder, const char* op_type);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// `is_contiguous_made`: a tensor with gaps is copied before the kernel runs; otherwise it is refused.
  void input(const char* name, const aclTensor* tensor, bool is_optional, bool is_contiguous_made);
  void input(const char* name, const aclTensorList* list, bool is_optional, bool is_contiguous_made);
  /// The data types of all inputs, a row for each combination of the OpDef: scalars take those of the combination that
  /// the tensors are of.
  void combinations(const int32_t* dtypes, size_t count);
  /// As tensors of this type (a ge::DataType number).
  void input(const char* name, const aclScalar* scalar, bool is_optional, int32_t dtype);
  void input(const char* name, const aclScalarList* list, bool is_optional, int32_t dtype);
  void input(const char* name, const aclIntArray* values, bool is_optional, int32_t dtype);
  void input(const char* name, const aclFloatArray* values, bool is_optional, int32_t dtype);
  void input(const char* name, const aclBoolArray* values, bool is_optional, int32_t dtype);

  void attr(const char* name, int64_t value);
  void attr(const char* name, double value);
  void attr(const char* name, bool value);
  void attr(const char* name, const char* value);
  void attr(const char* name, const aclIntArray* values);
  void attr(const char* name, const aclFloatArray* values);
  void attr(const char* name, const aclBoolArray* values);

  void output(const char* name, const aclTensor* tensor, bool is_optional, bool is_contiguous_made);
  void output(const char* name, const aclTensorList* list, bool is_optional, bool is_contiguous_made);

  aclnnStatus prepare(uint64_t* workspace_bytes, aclOpExecutor** executor);

 private:
  Arguments* arguments_;
};

/// The second phase: queues the kernel.
OPKIT_API aclnnStatus run(const char* function, void* workspace, uint64_t workspace_bytes, aclOpExecutor* executor,
                          aclrtStream stream);

}  // namespace opkit::aclnn
