"""opkit and PyTorch: generated operators, networks; the only package that imports torch, on first
use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from opkit.torch_bridge.debugger import PrecisionDebugger
    from opkit.torch_bridge.network import LayerResult, NetworkReport, compare_recordings
    from opkit.torch_bridge.operators import (
        Gradient,
        Operator,
        OperatorModule,
        maximum,
        minimum,
        register_operators,
    )
    from opkit.torch_bridge.recording import Recording, load_recording, record
    from opkit.torch_bridge.shapes import (
        broadcast_shape,
        elementwise_shape,
        matmul_shape,
        reduce_shape,
        row_shape,
        rowwise_shape,
    )

__all__ = [
    "Gradient",
    "LayerResult",
    "NetworkReport",
    "Operator",
    "OperatorModule",
    "PrecisionDebugger",
    "Recording",
    "broadcast_shape",
    "compare_recordings",
    "elementwise_shape",
    "load_recording",
    "matmul_shape",
    "maximum",
    "minimum",
    "record",
    "reduce_shape",
    "register_operators",
    "row_shape",
    "rowwise_shape",
]

__getattr__ = lazy_names(
    __name__,
    {
        "debugger": ("PrecisionDebugger",),
        "network": ("LayerResult", "NetworkReport", "compare_recordings"),
        "operators": (
            "Gradient",
            "Operator",
            "OperatorModule",
            "maximum",
            "minimum",
            "register_operators",
        ),
        "recording": ("Recording", "load_recording", "record"),
        "shapes": (
            "broadcast_shape",
            "elementwise_shape",
            "matmul_shape",
            "reduce_shape",
            "row_shape",
            "rowwise_shape",
        ),
    },
)
