/// The chip as shape inference asks for it, by another of its paths.
#pragma once

#include "platform/platform_info.h"
