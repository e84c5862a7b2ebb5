/// Tiling functions that run on the device on real hardware; here they run where all others do.
#pragma once

#include "register/op_impl_registry.h"
