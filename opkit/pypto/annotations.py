"""`pypto.Tensor((32, pypto.DYNAMIC), pypto.DT_FP32)`: what a parameter may be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opkit.compiler import GraphError, Location

__all__ = ["DYNAMIC", "STATIC", "Tensor", "TensorType", "check_annotation"]

DYNAMIC = "dynamic"
"""An extent that differs from call to call."""
STATIC = "static"
"""An extent that the first call decides; calls with others are traced anew."""


class TensorType:
    """A tensor's rank, extents and data type, as far as they are given."""

    def __init__(self, shape: object = None, dtype: object = None, **_: object) -> None:
        self.shape = tuple(shape) if isinstance(shape, list | tuple) else None
        self.dtype = dtype

    def __class_getitem__(cls, _: object) -> TensorType:
        return cls()


Tensor = TensorType


def check_annotation(function: Callable[..., Any], name: str, value: Any) -> None:
    """Refuse an argument that its parameter's annotation does not allow.

    Raises:
        GraphError: rank, an extent or the data type differ.
    """
    wanted = function.__annotations__.get(name)
    if isinstance(wanted, str):
        try:
            wanted = eval(wanted, function.__globals__)
        except (NameError, SyntaxError, TypeError, AttributeError):
            return
    if not isinstance(wanted, TensorType):
        return
    code = function.__code__
    place = Location(code.co_filename, code.co_firstlineno)
    if not hasattr(value, "shape"):
        raise GraphError(
            f'{function.__name__}: "{name}" is a tensor, not {type(value).__name__}',
            location=place,
            help="pass a NumPy array or a torch tensor",
        )
    given = tuple(value.shape)
    if wanted.shape and wanted.shape != (Ellipsis,):
        if len(given) != len(wanted.shape):
            raise GraphError(
                f'{function.__name__}: "{name}" has {len(wanted.shape)} axes, and the argument'
                f" has {len(given)}",
                location=place,
            )
        for axis, (extent, there) in enumerate(zip(wanted.shape, given, strict=True)):
            if isinstance(extent, int) and extent not in (-1, there):
                raise GraphError(
                    f'{function.__name__}: axis {axis} of "{name}" has {extent} elements, and the'
                    f" argument has {there}",
                    location=place,
                    help="pypto.DYNAMIC in the annotation allows any",
                )
    if wanted.dtype is not None:
        from .functions import dtype_name

        dtype = str(value.dtype).rpartition(".")[2]
        if dtype_name(wanted.dtype) != dtype:
            raise GraphError(
                f'{function.__name__}: "{name}" is {dtype_name(wanted.dtype)}, and the argument is'
                f" {dtype}",
                location=place,
                help="convert the argument",
            )
