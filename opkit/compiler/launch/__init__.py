"""Launching compiled kernels: from Python, from a plan, from an operator's host code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from .compiled import Compiled, compile
    from .host_tiling import bytes_text, extent_cpp, launch_function, size_parameter, sizes_of
    from .host_types import type_sizes
    from .hosted import HostedKernel, OperatorKernel, Share, operator_kernels, shares_of_kernel
    from .launch import Argument, Code, Draw, Launch, Room, TensorArgument
    from .launches import launched_cores, launches_of
    from .together import MOST_CLASSES, SharedLaunch, share_launch, share_products

__all__ = [
    "MOST_CLASSES",
    "Argument",
    "Code",
    "Compiled",
    "Draw",
    "HostedKernel",
    "Launch",
    "OperatorKernel",
    "Room",
    "Share",
    "SharedLaunch",
    "TensorArgument",
    "bytes_text",
    "compile",
    "extent_cpp",
    "launch_function",
    "launched_cores",
    "launches_of",
    "operator_kernels",
    "share_launch",
    "share_products",
    "shares_of_kernel",
    "size_parameter",
    "sizes_of",
    "type_sizes",
]

__getattr__ = lazy_names(
    __name__,
    {
        "compiled": (
            "Compiled",
            "compile",
        ),
        "host_tiling": (
            "bytes_text",
            "extent_cpp",
            "launch_function",
            "size_parameter",
            "sizes_of",
        ),
        "host_types": ("type_sizes",),
        "hosted": (
            "HostedKernel",
            "OperatorKernel",
            "Share",
            "operator_kernels",
            "shares_of_kernel",
        ),
        "launch": (
            "Argument",
            "Code",
            "Draw",
            "Launch",
            "Room",
            "TensorArgument",
        ),
        "launches": (
            "launched_cores",
            "launches_of",
        ),
        "together": (
            "MOST_CLASSES",
            "SharedLaunch",
            "share_launch",
            "share_products",
        ),
    },
)
