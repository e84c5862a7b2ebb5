/// Which kernels read the system counter: their launches are timed even where nobody asks for times.
#pragma once

#include "core/launch.h"

namespace opkit {

/// Whether the code of the launch's kernel calls system_cycle(): the object that holds it asks the loader for it.
bool reads_system_counter(const Launch& launch);

}  // namespace opkit
