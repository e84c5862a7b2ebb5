/// Shape inference by another of its paths.
#pragma once

#include "op_common/op_host/infershape_broadcast_util.h"
