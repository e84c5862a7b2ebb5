"""Triton's driver for the emulated device, and whether kernels go to it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from opkit.errors import SetupError, UsageError

from .launching import TritonKernel
from .redirect import BACKEND, VARIABLE, is_ours

_FAMILY = "triton.language.extra.cann"
_LENT = (f"{_FAMILY}.libdevice", f"{_FAMILY}.extension")
_ENTRIES = "triton.runtime.libentry"

__all__ = ["activate", "active", "launch", "offer"]


class _Lent(Loader):
    """Finds modules that the chip's own Triton has, by their names there, where nobody else does.

    The last finder of all: a Triton that has the module goes first.
    """

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        """Return where a module comes from; None: not from here."""
        del path, target
        if name == _FAMILY:
            return ModuleSpec(name, self, is_package=True)
        lent = name in (*_LENT, _ENTRIES)
        return ModuleSpec(name, self) if lent else None

    def create_module(self, spec: ModuleSpec) -> None:
        """Have an empty module made."""
        del spec

    def exec_module(self, module: ModuleType) -> None:
        """Fill it."""
        if module.__name__ == _FAMILY:
            return
        if module.__name__ == _ENTRIES:
            module.libentry = _libentry  # type: ignore[attr-defined]
            return
        from . import extension, libdevice

        own = libdevice if module.__name__ == _LENT[0] else extension
        for name in own.__all__:
            setattr(module, name, getattr(own, name))
        module.__getattr__ = own.__getattr__  # type: ignore[method-assign]


def _libentry() -> Callable[[Any], Any]:
    """Return what the chip's Triton keeps launches by: kernels here are kept anyway."""
    return lambda kernel: kernel


def offer() -> None:
    """Have Triton choose this backend in this process, where nobody has chosen another.

    Programs for the chip's own Triton find its modules, too.
    """
    os.environ.setdefault(VARIABLE, BACKEND)
    if not any(isinstance(finder, _Lent) for finder in sys.meta_path):
        sys.meta_path.append(_Lent())


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
