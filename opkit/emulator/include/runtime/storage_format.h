/// The basic data structures by the path that operator libraries use.
#pragma once

#include "exe_graph/runtime/storage_format.h"
