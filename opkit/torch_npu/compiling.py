"""`torch.compile(model)` without a backend's name, where tensors are on the device."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

__all__ = ["compile_by_default"]


def compile_by_default() -> None:
    """Have torch's default backend leave graphs on `npu` to opkit's; the others stay its own.

    Its modes and options are about other devices' kernels, and mean nothing here.
    """
    wrapper: Any = torch._TorchCompileInductorWrapper
    original = wrapper.__call__
    if hasattr(original, "leaves_npu"):
        return

    @functools.wraps(original)
    def call(self: Any, module: Any, inputs: list[Any], **settings: Any) -> Any:
        if not _is_on_device(module, inputs):
            return original(self, module, inputs, **settings)
        from torch._dynamo.backends.registry import lookup_backend

        return lookup_backend("opkit")(module, inputs)

    call.leaves_npu = True  # type: ignore[attr-defined]
    wrapper.__call__ = call


def _is_on_device(module: Any, inputs: Sequence[Any]) -> bool:
    """Whether a graph has an input, or computes a value, on the device."""
    values = [*inputs]
    values += [node.meta.get("example_value") for node in module.graph.nodes]
    return any(isinstance(each, torch.Tensor) and each.device.type == "npu" for each in values)
