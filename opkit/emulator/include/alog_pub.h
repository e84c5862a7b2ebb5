/// The log by module and level by another of its paths.
#pragma once

#include "toolchain/slog.h"
