/// The codes of the vendor's error reports. Host code that includes them logs by text as well, and the text is what
/// opkit shows, so there is nothing to define.
#pragma once

#include "op_common/log/log.h"
