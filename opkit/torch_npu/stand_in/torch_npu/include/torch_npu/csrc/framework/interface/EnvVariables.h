/// What extensions include to call operators by handlers of their own; opkit's names of it.
#pragma once

#include "opkit_npu/command.h"
