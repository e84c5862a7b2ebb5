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
# What each window's largest element was given, where it stands in its channel.
_PLACED = (
    "torch.zeros_like({X}).flatten(2).scatter_add(2, {P}.flatten(2), {G}.flatten(2))"
    ".reshape({X}.shape) if {X}.dim() == 5 and {P}.shape == {G}.shape else None"
)
_WINDOWS = (
    "torch.nn.functional.max_pool3d({0}, ksize, strides, pads, dilation, ceil_mode,"
    " return_indices=True)"
)
_SHARED = (
    "torch.autograd.functional.vjp(lambda {0}: torch.nn.functional.adaptive_avg_pool3d("
    f"{_FIRST}, {{dy}}.shape[1:4]).movedim(1, -1), {{0}}, {{dy}})[1]"
)
_LARGEST = "torch.nn.functional.adaptive_max_pool3d({0}, output_size, return_indices=True)"


def _placed(tensor: str, places: str, gradient: str) -> str:
    """Return it, of inputs by what stands for them in an expression."""
    parts = {"{X}": tensor, "{P}": places, "{G}": gradient}
    text = _PLACED
    for name, part in parts.items():
        text = text.replace(name, part)
    return text


_OF_VOLUME = (
    "torch.autograd.functional.vjp(lambda volume: torch.nn.functional.avg_pool3d(volume, ksize,"
    " strides, pads, ceil_mode, count_include_pad, divisor_override or None),"
    " {dy}.new_zeros({0}.tolist()), {dy})[1]"
)
_OF_PLANE = (
    "torch.autograd.functional.vjp(lambda plane: torch.nn.functional.avg_pool2d(plane,"
    " (kernel_h, kernel_w), (stride_h, stride_w), (pad_top, pad_left), ceil_mode,"
    " count_include_pad, divisor_override or None), {dy}.new_zeros({0}.tolist()), {dy})[1]"
)

POOLING: dict[str, tuple[str, ...]] = {
    "adaptive_avg_pool3d_grad": (
        f"{_SHARED} if data_format == 'NDHWC' and {{0}}.dim() == 5 else None",
    ),
    "adaptive_max_pool3_d_grad": (_placed("{0}", "{1}", "{dy}"),),
    "adaptive_avg_pool3d": (
        f"torch.nn.functional.adaptive_avg_pool3d({_FIRST}, output_size).movedim(1, -1)"
        " if data_format == 'NDHWC' and {0}.dim() == 5 else None",
    ),
    # Which of two that are equal the index names is open.
    "adaptive_max_pool3d": (
        f"({_LARGEST}[0], {_LARGEST}[1] if {{0}}.unique().numel() == {{0}}.numel() else None)"
        " if {0}.dim() == 5 and indices_dtype in (3, 9) else None",
    ),
    "average_pooling_grad": (
        f"{_OF_PLANE} if pad_top == pad_bottom and pad_left == pad_right else None",
    ),
    # Where channels come last, the document is silent on the order of the sizes that it is given.
    "avg_pool3_d_grad": (f"{_OF_VOLUME} if data_format == 'NCDHW' else None",),
    "avg_pool3_d": (
        f"{_AVERAGES.replace('{X}', _FIRST)}.movedim(1, -1) if data_format == 'NDHWC'"
        f" else {_AVERAGES.replace('{X}', '{0}')} if data_format == 'NCDHW' else None",
    ),
    "max_pool3_d": (
        f"torch.nn.functional.max_pool3d({_FIRST} if data_format == 'NDHWC' else {{0}},"
        " ksize, strides, pads[::2], ceil_mode=bool(ceil_mode))"
        ".movedim(1, -1 if data_format == 'NDHWC' else 1)"
        " if {0}.dim() == 5 and padding == 'CALCULATED' and pads[::2] == pads[1::2]"
        " and len(ksize) == len(strides) == 3 and set(dilation) == {{1}} else None",
    ),
    "max_pooling_grad": (
        "torch.where({0} == {1}, {dy}, 0.0) if {dy}.shape == {0}.shape == {1}.shape else None",
    ),
    # Of the windows only their sizes are known here; a case names the places itself.
    "max_pool3_d_grad_with_argmax": (
        _placed("{0}", "{2}", "{1}").replace(
            " if ",
            " if len(ksize) == len(strides) == len(pads) == len(dilation) == 3"
            " and ceil_mode in (True, False) and ",
        ),
    ),
    "max_pool3_d_with_argmax": (
        f"({_WINDOWS}[0], {_WINDOWS}[1] if {{0}}.unique().numel() == {{0}}.numel() else None)"
        " if data_format == 'NCDHW' and {0}.dim() == 5 else None",
    ),
    "max_pool_v3": (
        "torch.nn.functional.max_pool2d({0}, ksize[2:], strides[2:], (pads[0], pads[2]),"
        " ceil_mode=ceil_mode) if len(ksize) == len(strides) == 4 and pads[::2] == pads[1::2]"
        " else None",
    ),
}
"""As `opkit.testing.references.operator_formulas.WRITTEN_OUT`, of which these are a part."""
