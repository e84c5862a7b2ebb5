"""What tile programs are made of: indices of loops, arrays, registers, instructions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...ir import GraphError, Location, here

__all__ = ["Body", "Branch", "Condition", "Index", "Loop", "Memory", "Step", "Tile", "setting_at"]


@dataclass(frozen=True)
class Index:
    """A loop's variable, or arithmetic with one."""

    text: str
    value: Callable[[Mapping[str, int]], int]

    def _with(self, sign: str, other: int | Index, swapped: bool = False) -> Index:
        work = {"+": operator.add, "-": operator.sub, "*": operator.mul}
        work |= {"//": operator.floordiv, "%": operator.mod}
        left, right = (_index(other), self) if swapped else (self, _index(other))
        apply = work[sign]
        return Index(
            f"({left.text} {sign} {right.text})",
            lambda known: apply(left.value(known), right.value(known)),
        )

    def __add__(self, other: int | Index) -> Index:
        return self._with("+", other)

    def __radd__(self, other: int) -> Index:
        return self._with("+", other, True)

    def __sub__(self, other: int | Index) -> Index:
        return self._with("-", other)

    def __rsub__(self, other: int) -> Index:
        return self._with("-", other, True)

    def __mul__(self, other: int | Index) -> Index:
        return self._with("*", other)

    def __rmul__(self, other: int) -> Index:
        return self._with("*", other, True)

    def __floordiv__(self, other: int | Index) -> Index:
        return self._with("//", other)

    def __mod__(self, other: int | Index) -> Index:
        return self._with("%", other)

    def _compared(self, sign: str, other: int | Index) -> Condition:
        work = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
        work |= {"==": operator.eq, "!=": operator.ne}
        right, apply = _index(other), work[sign]
        return Condition(
            f"{self.text} {sign} {right.text}",
            lambda known: bool(apply(self.value(known), right.value(known))),
        )

    def __lt__(self, other: int | Index) -> Condition:
        return self._compared("<", other)

    def __le__(self, other: int | Index) -> Condition:
        return self._compared("<=", other)

    def __gt__(self, other: int | Index) -> Condition:
        return self._compared(">", other)

    def __ge__(self, other: int | Index) -> Condition:
        return self._compared(">=", other)

    def equals(self, other: int | Index) -> Condition:
        """Return the condition that both are the same."""
        return self._compared("==", other)


@dataclass(frozen=True)
class Condition:
    """A comparison of indices."""

    text: str
    holds: Callable[[Mapping[str, int]], bool]

    def __bool__(self) -> bool:
        raise GraphError(
            f'Python cannot branch on "{self.text}": the loop has not run yet',
            location=here(),
            help="with program.if_cond(condition): ...",
        )


@dataclass(frozen=True)
class Memory:
    """An array in global memory: an input, or an output."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    is_output: bool


@dataclass(frozen=True)
class Tile:
    """A tile register; instructions with `into=` write it again."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Step:
    name: str
    """An instruction, or `TLOAD`, `TSTORE`, `BARRIER`, `SYNC`, `TEXPANDS`."""
    target: Tile | None
    operands: tuple[Tile | Memory, ...]
    settings: tuple[tuple[str, Any], ...]
    location: Location | None


@dataclass(frozen=True)
class Loop:
    variable: str
    bounds: tuple[int, int, int]
    body: Body


@dataclass(frozen=True)
class Branch:
    condition: Condition
    body: Body
    otherwise: Body


Body: TypeAlias = "list[Step | Loop | Branch]"


def _index(value: int | Index) -> Index:
    return value if isinstance(value, Index) else Index(str(value), lambda _: value)


def setting_at(value: Any, known: Mapping[str, int] | None) -> Any:
    """Return a setting with its indices computed; without loops each of them is 0."""
    if isinstance(value, tuple):
        return tuple(setting_at(each, known) for each in value)
    if isinstance(value, Index):
        return 0 if known is None else value.value(known)
    return value
