"""What a row of the table is given besides the operator's own arguments."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from opkit.errors import UsageError

from ...ir import Operand, Value
from ...tracing import GraphBuilder

__all__ = ["AtenCall", "Refused"]


class Refused(UsageError):
    """The compiler's kernels do not compute this; torch does."""


class AtenCall:
    """One call of an ATen operator, on its way into a program."""

    def __init__(
        self,
        builder: GraphBuilder,
        shapes: tuple[tuple[int, ...], ...],
        dtypes: tuple[str, ...],
        constants: dict[str, Any],
        *,
        exact: Collection[str] = (),
    ) -> None:
        self.builder = builder
        self.shapes = shapes
        """Shape of each result."""
        self.dtypes = dtypes
        self.exact = frozenset(exact)
        """Operators that the target computes to the last bit, and compiled kernels do not."""
        self._constants = constants

    def uniform(self, shape: tuple[Any, ...]) -> Value:
        """Return numbers in (0, 1] that are drawn anew in every run."""
        # The run puts seed and stream in; until then the number only tells one draw from another.
        drawn = sum(node.operator == "random_uniform" for node in self.builder.nodes)
        seed = self.builder.constant(0)
        return seed.apply("random_uniform", shape=shape, stream=drawn)

    @property
    def shape(self) -> tuple[int, ...]:
        """The first result's."""
        return self.shapes[0]

    @property
    def dtype(self) -> str:
        """The first result's."""
        return self.dtypes[0]

    def apply(self, name: str, *operands: Operand, **settings: object) -> Value:
        """Apply an operator of the compiler."""
        return self.builder.apply(name, *operands, **settings)

    def typed(self, operand: Operand, dtype: str | None = None) -> Operand:
        """Return a tensor in the result's type, or another; numbers stay as they are."""
        wanted = dtype or self.dtype
        if isinstance(operand, Value) and operand.dtype != wanted:
            return operand.astype(wanted)
        return operand

    def constant(self, array: Any, dtype: str | None = None) -> Value:
        """Return an array as an input that is the same in every run; `dtype`: what its bits are."""
        name = f"constant{len(self._constants)}"
        self._constants[name] = array
        return self.builder.input(name, array.shape, dtype or str(array.dtype))

    def full(self, shape: tuple[int, ...], value: float | int | bool, dtype: str) -> Value:
        """Return a tensor of one number."""
        number: float | int | bool = float(value) if "float" in dtype else value
        if dtype == "bool":
            number = bool(value)
        return self.builder.constant(number, dtype).apply("broadcast_to", shape=shape)

    def axis(self, axis: int, rank: int) -> int:
        """Return an axis as a number from 0."""
        return axis % rank if rank else 0
