/// What extensions include for the device; opkit's names of it.
#pragma once

#include "opkit_npu/names.h"
