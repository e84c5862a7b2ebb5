"""Triton's driver for the emulated device, and whether kernels go to it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opkit.errors import SetupError, UsageError

from .launching import TritonKernel
from .redirect import BACKEND, VARIABLE, is_ours

__all__ = ["activate", "active", "launch", "offer"]


def offer() -> None:
    """Have Triton choose this backend in this process, where nobody has chosen another."""
    os.environ.setdefault(VARIABLE, BACKEND)


def activate() -> None:
    """Have every later `kernel[grid](...)` of this process run on the emulated device.

    Raises:
        SetupError: triton is not installed.
    """
    driver = _driver()
    driver.set_active(_made())


@contextmanager
def active() -> Iterator[None]:
    """Have kernels run on the emulated device inside of the block."""
    driver = _driver()
    before = driver._active
    if not is_ours(before):
        driver.set_active(_made())
    try:
        yield
    finally:
        driver._active = before


def _driver() -> Any:
    try:
        from triton.runtime import driver
    except ImportError as err:
        raise SetupError(
            f"triton cannot be imported: {err}", help="pip install triton: it reads the Python"
        ) from err
    return driver


def _made() -> Any:
    from .backend import OpkitDriver

    return OpkitDriver()


def launch(kernel: Any, grid: Any, *args: Any, **kwargs: Any) -> TritonKernel:
    """Run a kernel over a grid on the emulated device: what `kernel[grid](*args)` means there.

    Args:
        kernel: a `@triton.jit` function, also under `@triton.autotune` or `@triton.heuristics`.
        grid: one to three extents, or a function of the arguments that gives them.
        args: NumPy arrays or torch tensors on npu where the function has pointers; numbers.
    Raises:
        TritonError: the program has something that has no kernel here; with file and line.
    """
    if not hasattr(kernel, "run"):
        raise UsageError(f"{kernel!r} is no kernel: @triton.jit makes one of a function")
    with active():
        result: TritonKernel = kernel.run(*args, grid=grid, warmup=False, **kwargs)
    return result
