/// Formats of tensors as host functions see them. Source: basic data structures API, gert::StorageFormat.
#pragma once

#include "graph/types.h"

namespace gert {

/// Which dimensions of a shape were added to reach a format's rank; here nothing adds any.
class ExpandDimsType {};

/// A format as the caller sees it and as the data lies in memory.
class StorageFormat {
 public:
  StorageFormat() = default;
  StorageFormat(ge::Format origin, ge::Format storage, const ExpandDimsType& = {})
      : origin_(origin), storage_(storage) {}
  ge::Format GetOriginFormat() const { return origin_; }
  ge::Format GetStorageFormat() const { return storage_; }

 private:
  ge::Format origin_ = ge::FORMAT_ND;
  ge::Format storage_ = ge::FORMAT_ND;
};

}  // namespace gert
