"""What one row of the operator table says, and the rules for shapes and data types that rows
share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opkit.dtypes import find_dtype
from opkit.errors import UsageError

from .dimensions import Dimension, Shape, broadcast_shapes, normal_axes
from .graph import Tensor
from .setting_values import Settings
from .value import Value

__all__ = [
    "Operator",
    "as_bool",
    "as_float",
    "as_promoted",
    "broadcast",
    "is_floating",
    "limits_of",
    "normal_axes",
    "promote",
    "wrapped",
]

_INTEGER_ORDER = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
_REQUIRED = object()


@dataclass(frozen=True)
class Operator:
    """One operator."""

    name: str
    arity: int | None
    """Tensors that it takes; None for a list."""
    kind: str
    """`elementwise`, `reduction`, `movement`, `product`, `index`, `join`, `scan`, `line`, `random`
    or `source`."""
    shape: Callable[[Sequence[Tensor], Settings], Shape]
    dtype: Callable[[Sequence[Tensor], Settings], str]
    reference: Callable[..., Any]
    """NumPy's value: takes the arrays, then the settings by name."""
    expand: Callable[..., Value] | None = None
    """What it is made of, in simpler operators; None for one that kernels compute by themselves."""
    allowances: Mapping[str, float] = field(default_factory=dict)
    """By data type, the share of its value by which `expand` may be off the reference: less than
    rounding to that type is off by. Where there is none, it is as exact as float32."""
    vector: str = ""
    """The instruction that computes it, and after a colon its mode."""
    gradient: Callable[..., Sequence[Value | None]] | None = None
    """From the gradient of its result to those of its operands."""
    pto: str = ""
    """Its name among the tile operations of the PTO instruction set."""
    aten: str = ""
    """Its name in torch's operator library, without the `aten::`."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Its settings and their defaults; REQUIRED where there is none."""

    def __post_init__(self) -> None:
        """Have what gives fractions of whole numbers take them as fractions from the first on: on
        the way they would wrap, and NumPy takes those of 8 bits for float16."""
        if self.dtype is as_float:
            object.__setattr__(self, "reference", _of_fractions(self.reference))
            if self.expand is not None:
                object.__setattr__(self, "expand", _made_of_fractions(self.expand))

    def settings(self, given: Mapping[str, object]) -> Settings:
        """Return all settings of a call.

        Raises:
            UsageError: one is unknown or lacks.
        """
        unknown = [key for key in given if key not in self.parameters]
        if unknown:
            raise UsageError(
                f'"{self.name}" has no setting "{unknown[0]}"',
                help=f"it has {', '.join(self.parameters) or 'none'}",
            )
        full = Settings(self.parameters, **given)
        missing = [key for key, value in full.items() if value is _REQUIRED]
        if missing:
            raise UsageError(f'"{self.name}" needs "{missing[0]}"')
        return full


REQUIRED: Any = _REQUIRED


def _of_fractions(reference: Callable[..., Any]) -> Callable[..., Any]:
    def value(*arrays: Any, **settings: Any) -> Any:
        import numpy as np

        given = [np.asanyarray(array) for array in arrays]
        wide = [a.astype(np.float64) if a.dtype.kind in "iub" else a for a in given]
        return reference(*wide, **settings)

    return value


def _made_of_fractions(expand: Callable[..., Value]) -> Callable[..., Value]:
    def made(*values: Value, **settings: Any) -> Value:
        # Of 16 bits and more beside fractions of 16 bits, which have fewer digits, one stays whole.
        dtype = next((v.dtype for v in values if is_floating(v.dtype)), "float32")
        whole = _INTEGER_ORDER[:3] if dtype != "float32" else _INTEGER_ORDER
        given = [v.astype(dtype) if v.dtype in whole else v for v in values]
        return expand(*given, **settings)

    return made


def is_floating(dtype: str) -> bool:
    """Return whether a data type has fractions."""
    return "float" in dtype


def limits_of(dtype: str) -> tuple[int, int] | None:
    """Return the least and the largest of a data type of whole numbers; None for others."""
    row = find_dtype(dtype)
    if row is None or not dtype.startswith(("int", "uint")):
        return None
    count = 1 << 8 * row.size_bytes
    low = -count // 2 if dtype.startswith("int") else 0
    return low, low + count - 1


def wrapped(dtype: str, number: float) -> float:
    """Return a number as it wraps in a data type of whole numbers; itself in others."""
    limits = limits_of(dtype)
    if limits is None:
        return number
    low, high = limits
    return (number - low) % (high - low + 1) + low


def promote(left: str, right: str) -> str:
    """Return the type that holds the values of two others, as NumPy and torch promote.

    Raises:
        UsageError: no type does.
    """
    if left == right:
        return left
    if is_floating(left) and is_floating(right):
        return "float64" if "float64" in (left, right) else "float32"
    if is_floating(left) or is_floating(right):
        return left if is_floating(left) else right
    low, high = sorted((left, right), key=_INTEGER_ORDER.index)
    if low.startswith("int") and high == f"u{low}":
        row = find_dtype(high)
        assert row is not None
        wider = f"int{16 * row.size_bytes}"
        if wider not in _INTEGER_ORDER:
            raise UsageError(f"no data type holds both {left} and {right}")
        return wider
    return high


def broadcast(tensors: Sequence[Tensor], _: Settings) -> Shape:
    """Shape rule: NumPy's broadcasting."""
    return broadcast_shapes(*(tensor.shape for tensor in tensors))


def as_promoted(tensors: Sequence[Tensor], _: Mapping[str, Any]) -> str:
    """Data type rule: the operands' common type; numbers of rank 0 do not widen a tensor's type."""
    dtype = ""
    ranked = [t for t in tensors if t.shape] or tensors
    for tensor in ranked:
        dtype = promote(dtype, tensor.dtype) if dtype else tensor.dtype
    floats = [t.dtype for t in tensors if is_floating(t.dtype)]
    return floats[0] if floats and not is_floating(dtype) else dtype


def as_first(tensors: Sequence[Tensor], _: Settings) -> str:
    """Data type rule: the first operand's type."""
    return tensors[0].dtype


def as_sum(tensors: Sequence[Tensor], _: Settings) -> str:
    """Data type rule: the first operand's type; truths are counted."""
    return "int32" if tensors[0].dtype == "bool" else tensors[0].dtype


def as_float(tensors: Sequence[Tensor], settings: Settings) -> str:
    """Data type rule: the operands' common type if it has fractions, else float32."""
    dtype = as_promoted(tensors, settings)
    return dtype if is_floating(dtype) else "float32"


def as_bool(_: Sequence[Tensor], __: Settings) -> str:
    """Data type rule: true or false."""
    return "bool"


def reduced(tensors: Sequence[Tensor], settings: Settings) -> Shape:
    """Shape rule of reductions."""
    shape = tensors[0].shape
    axes = settings.axes(len(shape))
    if settings["keepdims"]:
        return tuple(1 if at in axes else extent for at, extent in enumerate(shape))
    return tuple(extent for at, extent in enumerate(shape) if at not in axes)


def scalar_shape(_: Sequence[Tensor], __: Settings) -> tuple[Dimension, ...]:
    """Shape rule of single numbers."""
    return ()
