/// The older path of this header.
#pragma once

#include "ascendc/host_api/tiling/template_argument.h"
