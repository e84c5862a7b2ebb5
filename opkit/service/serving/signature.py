"""A call by its shapes and data types: exactly, and as a bucket of which there are few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opkit.service.workers import Inputs, Tensor

__all__ = ["OTHER_BUCKET", "Signature", "Signatures"]

OTHER_BUCKET = "other"
"""Where calls are counted once an operator has as many buckets as it may."""

_MOST_SIGNATURES = 4096
_MOST_BUCKETS = 32


@dataclass(frozen=True)
class Signature:
    """One combination of shapes and data types."""

    text: str
    """Such as `float16[2,4096] float32[4096]`."""
    bucket: str
    """The same with every size rounded up to a power of two."""


class Signatures:
    """The signatures of one operator's calls; bounded, whatever callers send."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Signature] = {}
        self._buckets: set[str] = set()

    def of(self, inputs: Inputs) -> Signature:
        """Return a call's signature."""
        key = tuple(_key(value) for value in inputs)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST_SIGNATURES:
                self._known.clear()
            found = self._known[key] = self._make(inputs)
        return found

    def _make(self, inputs: Inputs) -> Signature:
        bucket = " ".join(_text(value, rounded=True) for value in inputs)
        if bucket not in self._buckets:
            if len(self._buckets) < _MOST_BUCKETS:
                self._buckets.add(bucket)
            else:
                bucket = OTHER_BUCKET
        return Signature(" ".join(_text(value, rounded=False) for value in inputs), bucket)


def _key(value: Tensor | list[Tensor] | None) -> object:
    if value is None:
        return None
    if isinstance(value, list):
        return tuple((array.shape, dtype) for array, dtype in value)
    return value[0].shape, value[1]


def _text(value: Tensor | list[Tensor] | None, *, rounded: bool) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        return "(" + " ".join(_text(item, rounded=rounded) for item in value) + ")"
    array, dtype = value
    return f"{dtype}[{','.join(str(size) for size in _sizes(array.shape, rounded))}]"


def _sizes(shape: Sequence[int], rounded: bool) -> list[int]:
    return [1 << (size - 1).bit_length() if rounded and size > 0 else size for size in shape]
