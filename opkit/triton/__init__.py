"""Triton programs on the emulated chip: `@triton.jit` functions become Ascend C kernels.

Triton itself is the real package and reads the Python; opkit reads its IR. `launch(kernel, grid,
...)` runs one on NumPy arrays or tensors on npu; after `activate()`, or with Triton's own variable
TRITON_DEFAULT_BACKEND=opkit, `kernel[grid](...)` does. See docs/triton.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from .activation import activate, active, launch, offer
    from .front import TritonError
    from .headers import DEVICE_FUNCTIONS
    from .launching import SlowKernel, TritonKernel
    from .redirect import is_active

__all__ = [
    "DEVICE_FUNCTIONS",
    "SlowKernel",
    "TritonError",
    "TritonKernel",
    "activate",
    "active",
    "is_active",
    "launch",
    "offer",
]

__getattr__ = lazy_names(
    __name__,
    {
        "activation": ("activate", "active", "launch", "offer"),
        "front": ("TritonError",),
        "launching": ("SlowKernel", "TritonKernel"),
        "headers": ("DEVICE_FUNCTIONS",),
        "redirect": ("is_active",),
    },
)
