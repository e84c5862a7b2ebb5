/// What all contexts have in common, by the name that some host sources include.
#pragma once

#include "exe_graph/runtime/extended_kernel_context.h"
