"""`pypto.runtime`: the names by which the public project's tests run a block on data."""

from __future__ import annotations

from .blocks import run_last_block

__all__ = ["_device_fini", "_device_init", "_device_run_once_data_from_host"]

_device_run_once_data_from_host = run_last_block


def _device_init() -> None:
    """Do nothing: the emulated device is there."""


def _device_fini() -> None:
    """Do nothing: the emulated device holds nothing of a block."""


def __getattr__(name: str) -> object:
    raise AttributeError(f"opkit has no pypto.runtime.{name}", name=name)
