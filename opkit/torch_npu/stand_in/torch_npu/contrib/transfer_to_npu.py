"""Importing this lets scripts that say "cuda" run on `npu`: `torch.cuda` leads there."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _device

from opkit.torch_npu.first_use import StandIn

__all__ = ()

_npu = getattr(torch, "npu")  # noqa: B009
_real_device = torch.device


def _renamed(value: Any) -> Any:
    if isinstance(value, str):
        if value.split(":")[0] == "cuda":
            return value.replace("cuda", "npu", 1)
        return "hccl" if value == "nccl" else value
    if isinstance(value, _real_device) and value.type == "cuda":
        return _real_device("npu") if value.index is None else _real_device("npu", value.index)
    return value


def _renamed_all(*args: Any, **kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
    return [*map(_renamed, args)], {key: _renamed(value) for key, value in kwargs.items()}


def _led(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        args_, kwargs_ = _renamed_all(*args, **kwargs)
        return function(*args_, **kwargs_)

    return call


def _led_class(real: type) -> type:
    """Return a class that stands for another, and makes its objects for `npu`."""

    class Leading(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            args_, kwargs_ = _renamed_all(*args, **kwargs)
            return real(*args_, **kwargs_)

        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, real)

        def __subclasscheck__(cls, other: type) -> bool:
            return issubclass(other, real)

    return Leading(real.__name__, (), {"__doc__": real.__doc__, "__module__": real.__module__})


# "with torch.device(...)" knows PyTorch's functions by themselves: asked here, before others stand
# in their places.
_constructors: set[Any] = set(_device._device_constructors())
_NAMES: set[str] = {f.__name__ for f in _constructors if hasattr(torch, f.__name__)}
_NAMES |= {"as_tensor", "load", "empty_like", "full_like", "ones_like", "zeros_like", "rand_like"}
_NAMES |= {"randn_like", "randint_like", "is_autocast_enabled", "set_autocast_enabled"}
_NAMES |= {"get_autocast_dtype", "set_autocast_dtype"}
for _name in sorted(_NAMES):
    setattr(torch, _name, _led(getattr(torch, _name)))
for _owner, _name in (
    (torch.Tensor, "to"),
    *((torch.Tensor, f"new_{made}") for made in ("empty", "full", "ones", "tensor", "zeros")),
    (torch.nn.Module, "to"),
    (torch.nn.Module, "to_empty"),
    (torch.amp.autocast, "__init__"),
    (torch.amp.GradScaler, "__init__"),
):
    setattr(_owner, _name, _led(getattr(_owner, _name)))
for _name in ("init_process_group", "new_group"):
    if torch.distributed.is_available():
        setattr(torch.distributed, _name, _led(getattr(torch.distributed, _name)))
        torch.distributed.is_nccl_available = lambda: True
torch.cuda.is_current_stream_capturing = lambda: False
for _class in (torch.Tensor, torch.nn.Module):
    setattr(_class, "cuda", getattr(_class, "npu"))  # noqa: B009, B010
torch.Tensor.is_cuda = property(lambda tensor: tensor.device.type in ("cuda", "npu"))  # type: ignore[assignment]
for _name in ("device", "Generator"):
    setattr(torch, _name, _led_class(getattr(torch, _name)))
# PyTorch's own modules make classes of these.
for _name in ("Event", "Stream"):
    setattr(torch, _name, StandIn(getattr(torch, _name), _renamed_all))
for _module in (torch.cuda, torch.cuda.memory, torch.cuda.random):
    for _name in _npu.__all__:
        if _name != "amp" and hasattr(_module, _name):
            setattr(_module, _name, getattr(_npu, _name))

# What checkpoints ask for the device that tensors come from.
torch._utils._get_available_device_type = lambda: "npu"
# A pair, for code that compares it; of no chip of CUDA's.
torch.cuda.get_device_capability = lambda device=None: (0, 0)
