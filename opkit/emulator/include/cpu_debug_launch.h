/// Included by sources that can also be built for a CPU debug mode. Launches need nothing more here: `opkit cc`
/// rewrites them in every mode.
#pragma once

#include "opkit/launch_entry.h"
