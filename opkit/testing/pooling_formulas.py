"""What operators that pool windows of a tensor compute, by the formulas of their documents.

Channels come last where the data format says NDHWC. Sources: the documents of each operator,
formula and parameters.
"""

from __future__ import annotations

__all__ = ["POOLING"]

_AVERAGES = (
    "torch.nn.functional.avg_pool3d({X}, ksize, strides, pads, ceil_mode, count_include_pad,"
    " divisor_override or None)"
)
_FIRST = "{0}.movedim(-1, 1)"
_LARGEST = "torch.nn.functional.adaptive_max_pool3d({0}, output_size, return_indices=True)"

POOLING: dict[str, tuple[str, ...]] = {
    "adaptive_avg_pool3d": (
        f"torch.nn.functional.adaptive_avg_pool3d({_FIRST}, output_size).movedim(1, -1)"
        " if data_format == 'NDHWC' and {0}.dim() == 5 else None",
    ),
    # Which of two that are equal the index names is open.
    "adaptive_max_pool3d": (
        f"({_LARGEST}[0], {_LARGEST}[1] if {{0}}.unique().numel() == {{0}}.numel() else None)"
        " if {0}.dim() == 5 and indices_dtype in (3, 9) else None",
    ),
    "avg_pool3_d": (
        f"{_AVERAGES.replace('{X}', _FIRST)}.movedim(1, -1) if data_format == 'NDHWC'"
        f" else {_AVERAGES.replace('{X}', '{0}')} if data_format == 'NCDHW' else None",
    ),
    "max_pool_v3": (
        "torch.nn.functional.max_pool2d({0}, ksize[2:], strides[2:], (pads[0], pads[2]),"
        " ceil_mode=ceil_mode) if len(ksize) == len(strides) == 4 and pads[::2] == pads[1::2]"
        " else None",
    ),
}
"""As `opkit.testing.operator_formulas.WRITTEN_OUT`, of which these are a part."""
