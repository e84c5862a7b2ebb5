"""`pypto.Tensor((32, pypto.DYNAMIC), pypto.DT_FP32)`: what a parameter may be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opkit.compiler import GraphError, Location

from .diagnostics import warn
from .enumerations import dtype_name

__all__ = ["DYN", "DYNAMIC", "STATIC", "Tensor", "TensorType", "check_annotation"]

DYNAMIC = DYN = "dynamic"
"""An extent that differs from call to call."""
STATIC = "static"
"""An extent that the first call decides; calls with others are traced anew."""


class TensorType:
    """A tensor's rank, extents and data type, as far as they are given."""

    def __init__(self, shape: object = None, dtype: object = None, **_: object) -> None:
        self.shape = tuple(shape) if isinstance(shape, list | tuple) else None
        self.dtype = dtype

    def __class_getitem__(cls, given: object) -> TensorType:
        if isinstance(given, tuple) and given and isinstance(given[0], list | tuple):
            return cls(*given)
        return cls(given) if isinstance(given, list) else cls()


Tensor = TensorType


def check_annotation(function: Callable[..., Any], name: str, value: Any) -> None:
    """Refuse an argument that its parameter's annotation does not allow.

    Another rank than that of extents which are all left open is a warning.

    Raises:
        GraphError: a rank with given extents, an extent or the data type differ.
    """
    wanted = function.__annotations__.get(name)
    if isinstance(wanted, str):
        try:
            wanted = eval(wanted, function.__globals__)
        except (NameError, SyntaxError, TypeError, AttributeError):
            return
    # A tensor that is declared says the same.
    wanted = getattr(wanted, "type", wanted)
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
    if wanted.shape:
        extents = wanted.shape
        if extents[-1] is Ellipsis:
            # Whatever follows.
            extents = (*extents[:-1], *given[len(extents) - 1 :])
        if len(given) != len(extents):
            message = (
                f'{function.__name__}: "{name}" has {len(wanted.shape)} axes, and the argument'
                f" has {len(given)}"
            )
            if any(isinstance(extent, int) for extent in extents):
                raise GraphError(message, location=place)
            warn(message, place)
        for axis, (extent, there) in enumerate(zip(extents, given, strict=False)):
            if isinstance(extent, int) and extent not in (-1, there):
                raise GraphError(
                    f'{function.__name__}: axis {axis} of "{name}" has {extent} elements, and the'
                    f" argument has {there}",
                    location=place,
                    help="pypto.DYNAMIC in the annotation allows any",
                )
    if wanted.dtype is not None:
        dtype = str(value.dtype).rpartition(".")[2]
        if dtype_name(wanted.dtype) != dtype:
            raise GraphError(
                f'{function.__name__}: "{name}" is {dtype_name(wanted.dtype)}, and the argument is'
                f" {dtype}",
                location=place,
                help="convert the argument",
            )
