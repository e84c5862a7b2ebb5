"""What in torch asks for the device without letting it load its library first.

`torch.ones(3, device="npu")` calls `torch.npu._lazy_init`; `torch.Stream("npu")`, `torch.Event` and
`torch.Generator` do not, nor do tensors that are nested or sparse, pinned memory, and the figures
of `torch.accelerator`. Until the library is there, something in their place loads it.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Sequence
from typing import Any

import torch

__all__ = ["StandIn", "load_before_first_use", "restore"]

_NAMES = ("Stream", "Event", "Generator")
_LAYOUTS = ("coo", "compressed", "csr", "csc", "bsr", "bsc")
_FOR_DEVICE: tuple[tuple[Any, str], ...] = (
    (torch.nested, "nested_tensor"),
    (torch.nested, "as_nested_tensor"),
    *((torch, f"sparse_{layout}_tensor") for layout in _LAYOUTS),
)
_ALWAYS: tuple[tuple[Any, str], ...] = (
    (torch.Tensor, "pin_memory"),
    (torch._C, "_accelerator_getMemoryInfo"),
)
_put_back: list[Callable[[], None]] = []


class StandIn:
    """What stands for a class of torch, whose calls are changed before the class has them.

    It can be asked `isinstance`, subclassed and written in annotations, as the class can.
    """

    def __init__(
        self, real: Any, change: Callable[..., tuple[Sequence[Any], dict[str, Any]]]
    ) -> None:
        self._real = real
        self._change = change

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args_, kwargs_ = self._change(*args, **kwargs)
        return self._real(*args_, **kwargs_)

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


class _LoadsFirst(StandIn):
    """A class of torch, whose calls for the device load its library; then the class is back."""

    def __init__(self, real: type, load: Callable[[], object]) -> None:
        def change(*args: Any, **kwargs: Any) -> tuple[Sequence[Any], dict[str, Any]]:
            if any(_names_device(value) for value in (*args, *kwargs.values())):
                load()
            return args, kwargs

        super().__init__(real, change)


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
    if _put_back:
        return
    for owner, name in (*_FOR_DEVICE, *_ALWAYS):
        if hasattr(owner, name):
            _replace(owner, name, _loads(getattr(owner, name), load, (owner, name) in _ALWAYS))
    if hasattr(torch._C, "_accelerator_isAllocatorInitialized"):
        # PyTorch's own asserts that the device has one; where it has none, all figures are 0.
        _replace(torch._C, "_accelerator_isAllocatorInitialized", lambda: False)


def _loads(
    real: Callable[..., Any], load: Callable[[], object], always: bool
) -> Callable[..., Any]:
    """A function that calls `load` before the real one: always, or where it is for the device."""

    @functools.wraps(real)
    def call(*args: Any, **kwargs: Any) -> Any:
        if always or any(_names_device(value) for value in (*args, *kwargs.values())):
            load()
        return real(*args, **kwargs)

    return call


def _replace(owner: Any, name: str, made: Callable[..., Any]) -> None:
    if name in vars(owner):
        real = vars(owner)[name]
        _put_back.append(lambda: setattr(owner, name, real))
    else:
        _put_back.append(lambda: delattr(owner, name))  # inherited
    setattr(owner, name, made)


def restore() -> None:
    """Put torch's own classes back: the library is there."""
    for name in _NAMES:
        found = getattr(torch, name)
        if isinstance(found, _LoadsFirst):
            setattr(torch, name, found._real)
    while _put_back:
        _put_back.pop()()
