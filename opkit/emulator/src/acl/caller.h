/// The program's call of the runtime that is being carried out, for what checks report about it.
#pragma once

#include "observe/finding.h"

namespace opkit::acl {

/// Holds the return address of the outermost call of this thread while it lives.
class Caller {
 public:
  explicit Caller(const void* address);
  ~Caller();
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  /// Null outside calls.
  static const void* current();

 private:
  bool is_outermost_;
};

/// Where an address lies, as debug information counts; empty when that is in no loaded file.
Site site_of_call(const void* address, const char* function);

}  // namespace opkit::acl
