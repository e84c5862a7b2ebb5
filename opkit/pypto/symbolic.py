"""Numbers that the public project knows when a program runs: sizes, indices of loops, elements.

opkit traces a program for the sizes and the elements that a call brings, so that each of them is a
number: `if`, `range` and slices work as in Python, and `min` and `max` are there as methods too.
"""

from __future__ import annotations

from typing import Any

from opkit.compiler import GraphError

from .location import here

__all__ = ["SymInt", "SymbolicScalar", "numbers"]


class SymbolicScalar(int):
    """A whole number with the methods of the public project's symbols."""

    loop: range | None = None
    """All indices of the loop, for a loop's index."""
    name: str = ""

    def __new__(cls, arg0: Any = 0, arg1: int | None = None) -> SymbolicScalar:
        """Make a number; with a name in front of it where `arg0` is a string.

        Raises:
            GraphError: a name without a value.
        """
        if not isinstance(arg0, str):
            return super().__new__(cls, arg0)
        if arg1 is None:
            raise GraphError(
                f'SymbolicScalar("{arg0}") has no value',
                location=here(),
                help=f'give it one, SymbolicScalar("{arg0}", 10), or take a size of a tensor',
            )
        scalar = super().__new__(cls, arg1)
        scalar.name = arg0
        return scalar

    def max(self, other: int) -> SymbolicScalar:
        """Return the larger of two numbers."""
        return SymbolicScalar(max(int(self), int(other)))

    def min(self, other: int) -> SymbolicScalar:
        """Return the smaller of two numbers."""
        return SymbolicScalar(min(int(self), int(other)))

    def concrete(self) -> int:
        """Return it as Python's number."""
        return int(self)

    def is_concrete(self) -> bool:
        """Return True: every number is known when a program is traced."""
        return True

    def is_immediate(self) -> bool:
        """Return whether it was made without a name."""
        return not self.name

    def is_symbol(self) -> bool:
        """Return whether it was made with a name."""
        return bool(self.name)

    def is_expression(self) -> bool:
        """Return False: what is computed of numbers is a number."""
        return False

    def as_variable(self) -> None:
        """Mark it as an intermediate of the vendor's compiler: it changes no result."""


SymInt = int | SymbolicScalar
"""What the public project's annotations call a size, an index or an element."""


def _scalar_result(name: str) -> Any:
    plain = getattr(int, name)

    def operation(self: SymbolicScalar, *others: Any) -> Any:
        result = plain(self, *others)
        return SymbolicScalar(result) if type(result) is int else result

    operation.__name__ = name
    return operation


for _name in (
    *("add", "radd", "sub", "rsub", "mul", "rmul", "floordiv", "rfloordiv", "mod", "rmod"),
    *("neg", "pos", "abs"),
):
    setattr(SymbolicScalar, f"__{_name}__", _scalar_result(f"__{_name}__"))


class Extents(tuple[int, ...]):
    """The shape of a tensor: to programs of the public project a list, and equal to one."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, tuple(other) if isinstance(other, list) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __add__(self, other: Any) -> Any:
        return [*self, *other] if isinstance(other, list) else tuple.__add__(self, other)

    def __radd__(self, other: Any) -> Any:
        return [*other, *self] if isinstance(other, list) else NotImplemented


def numbers(extents: tuple[int, ...]) -> tuple[int, ...]:
    """Return extents as programs see them."""
    return Extents(SymbolicScalar(extent) for extent in extents)
