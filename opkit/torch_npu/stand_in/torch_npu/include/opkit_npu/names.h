/// Names that extensions for the vendor's device use of PyTorch's own classes.
///
/// PyTorch has no `is_npu` and no dispatch key `NPU`: the device is its PrivateUse1. So these are macros; include the
/// header behind PyTorch's.
#pragma once

#include <torch/extension.h>

#define is_npu is_privateuseone
#define NPU PrivateUse1
