/// The observers that a device configuration can ask for by name.
#pragma once

#include "observe/observer.h"

namespace opkit {

/// The process's timing observer (observe/timing.cpp).
Observer* timing_observer();
/// The one that only says what kernels read of the system counter.
Observer* counter_observer();

}  // namespace opkit
