"""`extend_params`: what the public project has done behind a product or a convolution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .traced import Traced

__all__ = ["Extension", "extension_of"]


class Extension(NamedTuple):
    """What is done with a result."""

    bias: Traced | None
    is_relu: bool
    further: dict[str, Any]
    """Everything else that is asked for, by name."""


def extension_of(given: Mapping[str, Any] | None) -> Extension:
    """Return what `extend_params` ask for."""
    further = {name: each for name, each in (given or {}).items() if each is not None}
    bias = further.pop("bias_tensor", None)
    is_relu = str(further.pop("relu_type", "")).rpartition(".")[2] == "RELU"
    return Extension(bias, is_relu, further)
