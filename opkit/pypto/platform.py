"""`pypto.platform`: the chip that programs run on."""

from __future__ import annotations

from opkit import runtime
from opkit.chips import find_chip

__all__ = ["npuarch"]


def __getattr__(name: str) -> str:
    if name != "npuarch":
        raise AttributeError(f"opkit has no pypto.platform.{name}", name=name)
    return find_chip(runtime.configuration().chip).npu_arch.upper().replace("-", "_")


npuarch: str
