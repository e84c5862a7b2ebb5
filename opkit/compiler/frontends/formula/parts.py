"""Values of a formula while it is read, and the types that they are computed in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...ir import HALVES, Value, same

__all__ = ["Part", "floats", "gone_of_all", "of_one_rank", "single", "widened"]


@dataclass(frozen=True)
class Part:
    """A value, and which of its axes a reduction has taken away: counted from the last, -1."""

    value: Value | float | int | bool
    gone: frozenset[int] = frozenset()

    @property
    def axes(self) -> frozenset[int]:
        rank = self.value.ndim if isinstance(self.value, Value) else 0
        return frozenset(range(-rank, 0))

    def without_gone(self) -> Part:
        """Return the value without the axes that reductions have taken away."""
        value = self.value
        if not self.gone or not isinstance(value, Value):
            return self
        rank = value.ndim
        kept = [e for axis, e in enumerate(value.shape) if axis - rank not in self.gone]
        return Part(value.reshape(*kept))


def single(value: Any) -> Any:
    is_half = isinstance(value, Value) and value.dtype in HALVES
    return value.astype("float32") if is_half else value


def floats(operands: Sequence[Any]) -> set[str]:
    """Return the types of what holds fractions."""
    return {e.dtype for e in operands if isinstance(e, Value) and "float" in e.dtype}


def widened(operands: Sequence[Any]) -> list[Any]:
    """Return operands of which at least one is float32, as far as they are halves: what is computed
    of them is too. That is the largest of them: a product's sums then stay what they are, and what
    is added to each row or column joins its kernel."""
    found = list(operands)
    halves = [at for at, each in enumerate(found) if single(each) is not each]
    is_wide = any(isinstance(e, Value) and e.dtype == "float32" and e.shape for e in found)
    if halves and not is_wide:
        widest = max(halves, key=lambda at: found[at].ndim)
        found[widest] = single(found[widest])
    return found


def of_one_rank(parts: Sequence[Part]) -> Sequence[Part]:
    """Return operands of which those that lack axes lack them for good where another operand
    has the very shape that is left: of N means over a row, and N numbers."""
    plain = [p.value for p in parts if not p.gone and isinstance(p.value, Value)]
    highest = max((x.ndim for x in plain), default=0)
    found = []
    for part in parts:
        value = part.value
        if isinstance(value, Value) and part.gone and 0 < highest < value.ndim:
            rank = value.ndim
            left = [e for at, e in enumerate(value.shape) if at - rank not in part.gone]
            others = [x.shape for x in plain if x.ndim == highest]
            if len(left) == highest and any(all(map(same, left, s)) for s in others):
                part = part.without_gone()
        found.append(part)
    return found


def gone_of_all(parts: Sequence[Part]) -> frozenset[int]:
    """Return the axes that an element-wise result has lost: those that some operand has lost, and
    no other has."""
    return frozenset(
        axis
        for part in parts
        for axis in part.gone
        if all(axis in other.gone or axis not in other.axes for other in parts)
    )
