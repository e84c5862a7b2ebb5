/// The chip as host functions see it, by another of its paths.
#pragma once

#include "platform/platform_infos_def.h"
