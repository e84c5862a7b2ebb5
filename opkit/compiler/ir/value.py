"""A tensor of a program under construction, as Python's operators see it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeAlias

from .dimensions import Dimension, Shape
from .graph import GraphError, Location, Node, Tensor, here
from .indexing import index, split

__all__ = ["Builder", "Operand", "Value"]


class Builder(Protocol):
    """The operations of a graph under construction that its values need."""

    @property
    def location(self) -> Location | None:
        """The line that the next node gets."""

    @property
    def nodes(self) -> Sequence[Node]:
        """The nodes so far."""

    def apply(self, operator: str, *operands: Operand, **attributes: object) -> Value:
        """Return one operator's result."""

    def constant(self, value: float | int | bool, dtype: str | None = None) -> Value:
        """Return a number as a tensor of rank 0."""

    def extent(self, value: Dimension) -> Value:
        """Return a size, which may be known at launch only, as a tensor of rank 0."""


class Value:
    """A tensor of a program under construction; Python's operators apply operators to it."""

    __array_priority__ = 1000
    __slots__ = ("builder", "tensor")

    def __init__(self, builder: Builder, tensor: Tensor) -> None:
        self.builder = builder
        self.tensor = tensor

    @property
    def shape(self) -> Shape:
        """The extents."""
        return self.tensor.shape

    @property
    def dtype(self) -> str:
        """The data type's name."""
        return self.tensor.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.tensor.shape)

    @property
    def T(self) -> Value:
        """The transpose: all axes in reverse."""
        return self.apply("transpose", axes=tuple(reversed(range(self.ndim))))

    def apply(self, operator: str, *others: Operand, **attributes: object) -> Value:
        """Return an operator's result with this value as its first operand."""
        return self.builder.apply(operator, self, *others, **attributes)

    def __add__(self, other: Operand) -> Value:
        return self.apply("add", other)

    def __radd__(self, other: Operand) -> Value:
        return self.builder.apply("add", other, self)

    def __sub__(self, other: Operand) -> Value:
        return self.apply("sub", other)

    def __rsub__(self, other: Operand) -> Value:
        return self.builder.apply("sub", other, self)

    def __mul__(self, other: Operand) -> Value:
        return self.apply("mul", other)

    def __rmul__(self, other: Operand) -> Value:
        return self.builder.apply("mul", other, self)

    def __truediv__(self, other: Operand) -> Value:
        return self.apply("div", other)

    def __rtruediv__(self, other: Operand) -> Value:
        return self.builder.apply("div", other, self)

    def __floordiv__(self, other: Operand) -> Value:
        return self.apply("floor_divide", other)

    def __rfloordiv__(self, other: Operand) -> Value:
        return self.builder.apply("floor_divide", other, self)

    def __mod__(self, other: Operand) -> Value:
        return self.apply("mod", other)

    def __rmod__(self, other: Operand) -> Value:
        return self.builder.apply("mod", other, self)

    def __pow__(self, other: Operand) -> Value:
        return self.apply("pow", other)

    def __rpow__(self, other: Operand) -> Value:
        return self.builder.apply("pow", other, self)

    def __matmul__(self, other: Value) -> Value:
        return self.apply("matmul", other)

    def __neg__(self) -> Value:
        return self.apply("neg")

    def __abs__(self) -> Value:
        return self.apply("abs")

    def __lt__(self, other: Operand) -> Value:
        return self.apply("less", other)

    def __le__(self, other: Operand) -> Value:
        return self.apply("less_equal", other)

    def __gt__(self, other: Operand) -> Value:
        return self.apply("greater", other)

    def __ge__(self, other: Operand) -> Value:
        return self.apply("greater_equal", other)

    def __eq__(self, other: object) -> Value:  # type: ignore[override]
        return self.apply("equal", other)  # type: ignore[arg-type]

    def __ne__(self, other: object) -> Value:  # type: ignore[override]
        return self.apply("not_equal", other)  # type: ignore[arg-type]

    __hash__ = object.__hash__

    def __and__(self, other: Operand) -> Value:
        return self.apply("bitwise_and", other)

    def __or__(self, other: Operand) -> Value:
        return self.apply("bitwise_or", other)

    def __xor__(self, other: Operand) -> Value:
        return self.apply("bitwise_xor", other)

    # Bits and truth do not ask for an order.
    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Value:
        return self.apply("bitwise_not")

    def __getitem__(self, key: object) -> Value:
        return index(self, key)

    def __setitem__(self, key: object, value: object) -> None:
        raise GraphError(
            f'"{self.tensor.name}" does not change: values of a program are computed once',
            location=here(),
            help="use where(), concat(), put_along() or pad()",
        )

    def __bool__(self) -> bool:
        raise GraphError(
            f'"{self.tensor.name}" has no value while the program is traced, so'
            " Python cannot branch on it",
            location=here(),
            help="use where(condition, a, b)",
        )

    def __iter__(self) -> Iterator[Value]:
        raise GraphError(
            f'a loop over "{self.tensor.name}" cannot be traced',
            location=here(),
            help="write it as operators over whole tensors",
        )

    def __float__(self) -> float:
        raise GraphError(
            f'"{self.tensor.name}" has no value while the program is traced',
            location=here(),
            help="keep it a tensor",
        )

    def __len__(self) -> int:
        first = self.shape[0] if self.shape else None
        if not isinstance(first, int):
            raise GraphError(
                "len() of a tensor whose first axis has no fixed size", location=here()
            )
        return first

    def __repr__(self) -> str:
        return f"<{self.tensor}>"

    def sum(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Value:
        """Return the sum over axes; over all for None."""
        return self.apply("sum", axis=axis, keepdims=keepdims)

    def mean(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Value:
        """Return the mean over axes."""
        return self.apply("mean", axis=axis, keepdims=keepdims)

    def max(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Value:
        """Return the largest over axes."""
        return self.apply("max", axis=axis, keepdims=keepdims)

    def min(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Value:
        """Return the smallest over axes."""
        return self.apply("min", axis=axis, keepdims=keepdims)

    def astype(self, dtype: str) -> Value:
        """Return the tensor in another data type."""
        return self.apply("cast", dtype=dtype)

    def reshape(self, *shape: Dimension) -> Value:
        """Return the same elements in another shape; one extent may be -1."""
        return self.apply("reshape", shape=shape)

    def split(self, parts: int | Sequence[int], axis: int = 0) -> tuple[Value, ...]:
        """Return parts along an axis: so many equal ones, or of these sizes.

        Raises:
            GraphError: they do not make up the axis.
        """
        return split(self, parts, axis)

    def topk(self, k: int, axis: int = -1, largest: bool = True) -> tuple[Value, Value]:
        """Return the k largest or smallest elements of an axis, in order, and their places."""
        settings = {"k": k, "axis": axis, "largest": largest}
        return self.apply("topk", **settings), self.apply("topk_places", **settings)

    def transpose(self, *axes: int) -> Value:
        """Return the axes in another order."""
        return self.apply("transpose", axes=axes or tuple(reversed(range(self.ndim))))


Operand: TypeAlias = Value | float | int | bool
