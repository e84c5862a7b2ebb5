"""Models that move to the device keep their parameters, as on PyTorch's own devices.

PyTorch gives a module new parameters where it moves to a foreign device: weights that two layers
share would part, and an optimizer made before the move would go on with the old ones.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

__all__ = ["keep_parameters"]

_outermost = threading.local()
Slot = tuple[dict[str, "nn.Parameter | None"], str]


def keep_parameters() -> None:
    """Have `Module.to("npu")`, and the way back, leave parameters the objects that they were."""
    original: Any = nn.Module._apply
    if hasattr(original, "keeps_parameters"):
        return

    @functools.wraps(original)
    def apply(self: nn.Module, fn: Callable[[Any], Any], recurse: bool = True) -> Any:
        if getattr(_outermost, "is_inside", False):
            return original(self, fn, recurse)
        slots = _slots_by_parameter(self)
        _outermost.is_inside = True
        try:
            return original(self, fn, recurse)
        finally:
            _outermost.is_inside = False
            for parameter, places in slots:
                _put_back(parameter, places)

    apply.keeps_parameters = True  # type: ignore[attr-defined]
    nn.Module._apply = apply  # type: ignore[method-assign]


def _unshaped_as(parameter: nn.Parameter, moved: nn.Parameter) -> nn.Parameter:
    """A lazy module's parameter that waits for its shape where PyTorch has made an empty one."""
    make: Any = type(parameter)
    made: nn.Parameter = make(
        requires_grad=parameter.requires_grad, device=moved.device, dtype=moved.dtype
    )
    return made


def _slots_by_parameter(module: nn.Module) -> list[tuple[nn.Parameter, list[Slot]]]:
    found: dict[int, tuple[nn.Parameter, list[Slot]]] = {}
    for part in module.modules():
        for name, parameter in part._parameters.items():
            if parameter is not None:
                found.setdefault(id(parameter), (parameter, []))[1].append((part._parameters, name))
    return list(found.values())


def _put_back(parameter: nn.Parameter, places: list[Slot]) -> None:
    """Give a parameter what its moved copy holds, and put it where it was."""
    owner, name = places[0]
    moved = owner[name]
    if moved is None or moved is parameter or moved.device.type == parameter.device.type:
        return
    if "npu" not in (moved.device.type, parameter.device.type):
        return
    # A graph that is still alive holds the old one: then the copy takes its place everywhere.
    kept = _unshaped_as(parameter, moved) if is_lazy(parameter) else moved
    del moved
    for places_parameters, places_name in places:
        places_parameters[places_name] = None
    try:
        torch.utils.swap_tensors(parameter, kept)  # type: ignore[no-untyped-call]
        kept = parameter
    except RuntimeError:
        pass
    for places_parameters, places_name in places:
        places_parameters[places_name] = kept
