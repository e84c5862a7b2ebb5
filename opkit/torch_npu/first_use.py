"""Classes of torch that ask for the device without letting it load its library first.

`torch.ones(3, device="npu")` calls `torch.npu._lazy_init`; `torch.Stream("npu")`, `torch.Event` and
`torch.Generator` do not. Until the library is there, an object in their place loads it.
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from typing import Any

import torch

__all__ = ["load_before_first_use", "restore"]

_NAMES = ("Stream", "Event", "Generator")


class _LoadsFirst:
    """A class of torch, whose calls for the device load its library; then the class itself is back.

    It can be asked `isinstance`, subclassed and written in annotations, as the class can.
    """

    def __init__(self, real: type, load: Callable[[], object]) -> None:
        self._real = real
        self._load = load

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if any(_names_device(value) for value in (*args, *kwargs.values())):
            self._load()
        return self._real(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, self._real)

    def __subclasscheck__(self, other: type) -> bool:
        return issubclass(other, self._real)

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        return (self._real,)

    def __or__(self, other: Any) -> Any:
        return typing.Union[self._real, other]  # noqa: UP007 - of values

    def __ror__(self, other: Any) -> Any:
        return typing.Union[other, self._real]  # noqa: UP007 - of values


def _names_device(value: object) -> bool:
    if isinstance(value, torch.device):
        return value.type == "npu"
    return isinstance(value, str) and value.partition(":")[0] == "npu"


def load_before_first_use(load: Callable[[], object]) -> None:
    """Have `torch.Stream("npu")` and the like call `load` first."""
    for name in _NAMES:
        real = getattr(torch, name)
        if not isinstance(real, _LoadsFirst):
            setattr(torch, name, _LoadsFirst(real, load))


def restore() -> None:
    """Put torch's own classes back: the library is there."""
    for name in _NAMES:
        found = getattr(torch, name)
        if isinstance(found, _LoadsFirst):
            setattr(torch, name, found._real)
