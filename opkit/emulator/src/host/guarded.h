/// How C functions end: nothing is thrown across them, and what went wrong is kept for opkit_last_error().
#pragma once

#include <exception>
#include <new>
#include <string>

#include "call_error.h"

namespace opkit::host {

/// Keeps a message for the calling thread, and whether the operator's host code refuses the call; returns the status.
opkit_status report(opkit_status status, const std::string& message, bool is_refusal = false);

/// Keeps a fault, for Python, and its text.
opkit_status report_fault(const FaultReport& fault);

/// Keeps the crash of a host function.
opkit_status report_crash(const std::string& message);

template <typename Body>
opkit_status guarded(Body body) {
  try {
    return body();
  } catch (const CallError& error) {
    // A fault of a host function: no kernel ran, and the device is as it was.
    if (error.status == OPKIT_FAULT) return report_crash(error.message);
    return report(error.status, error.message, error.is_refusal);
  } catch (const std::bad_alloc&) {
    return report(OPKIT_MISSING, "this machine has not enough memory for the call");
  } catch (const std::exception& error) {
    return report(OPKIT_INTERNAL, std::string("opkit failed: ") + error.what());
  } catch (...) {
    return report(OPKIT_INTERNAL, "opkit failed for an unknown reason");
  }
}

}  // namespace opkit::host
