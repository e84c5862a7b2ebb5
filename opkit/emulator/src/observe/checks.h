/// The checking observers: what can be asked for, and what they have found. They watch ordinary kernels.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "observe/finding.h"
#include "observe/observer.h"
#include "opkit/export.h"

namespace opkit {

struct CheckOptions {
  bool race = true;   ///< accesses of two pipes of a core that no flag orders
  bool cross = true;  ///< accesses of two cores to global memory that nothing orders
  bool init = true;   ///< reads of bytes that nothing wrote
  bool leak = true;   ///< tensors, events and flags left over when a block ends; events signalled twice
  /// Whether the compiler orders scalar accesses of vector cores with V, MTE2 and MTE3, as the documented default of
  /// --cce-auto-sync does. Source: Ascend C API, synchronisation inside a core, automatic synchronisation.
  bool has_auto_sync = true;
};

/// One detector: an observer that has findings once a launch has ended.
class Detector : public Observer {
 public:
  /// The launch's findings; empties the list.
  virtual std::vector<Finding> take() = 0;
};

std::unique_ptr<Detector> make_race_check(bool has_auto_sync);
std::unique_ptr<Detector> make_cross_check();
std::unique_ptr<Detector> make_init_check();
std::unique_ptr<Detector> make_leak_check();

/// Attaches the detectors asked for to every later launch of the process, until end_checks().
OPKIT_API void begin_checks(const CheckOptions& options);

/// Detaches them and returns what they found, launch by launch.
OPKIT_API std::vector<Finding> end_checks();

}  // namespace opkit
