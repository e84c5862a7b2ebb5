"""Importing this lets scripts that say "cuda" run on `npu`: `torch.cuda` leads there."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

__all__ = ()


def _renamed(value: Any) -> Any:
    if isinstance(value, str) and value.split(":")[0] == "cuda":
        return value.replace("cuda", "npu", 1)
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("npu", value.index or 0)
    return value


def _led(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*map(_renamed, args), **{k: _renamed(v) for k, v in kwargs.items()})

    return call


_FACTORIES: tuple[str, ...] = (
    "arange",
    "empty",
    "eye",
    "full",
    "ones",
    "rand",
    "randint",
    "randn",
    "randperm",
)
_FACTORIES += ("tensor", "zeros", "linspace", "as_tensor", "load")
for _name in _FACTORIES:
    setattr(torch, _name, _led(getattr(torch, _name)))
for _class, _names in ((torch.Tensor, ("to",)), (torch.nn.Module, ("to",))):
    for _name in _names:
        setattr(_class, _name, _led(getattr(_class, _name)))
for _class in (torch.Tensor, torch.nn.Module):
    setattr(_class, "cuda", getattr(_class, "npu"))  # noqa: B009, B010
_npu = getattr(torch, "npu")  # noqa: B009
_NAMES: tuple[str, ...] = (
    "is_available",
    "device_count",
    "current_device",
    "set_device",
    "synchronize",
    "Event",
)
_NAMES += ("memory_allocated", "max_memory_allocated", "empty_cache", "manual_seed_all")
for _name in _NAMES:
    setattr(torch.cuda, _name, getattr(_npu, _name))
