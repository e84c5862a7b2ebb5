"""Where a jit function's run goes: to opkit, where Triton's active driver is opkit's."""

from __future__ import annotations

import os
import sys
from typing import Any

__all__ = [
    "BACKEND",
    "VARIABLE",
    "install",
    "install_when_there",
    "is_active",
    "is_ours",
]

BACKEND = "opkit"
"""Its name among Triton's backends."""
VARIABLE = "TRITON_DEFAULT_BACKEND"
"""By which Triton lets users choose one."""


def is_active() -> bool:
    """Return whether Triton was asked to run kernels here, by its own variable."""
    return os.environ.get(VARIABLE) == BACKEND


def is_ours(driver: object) -> bool:
    """Return whether a driver of Triton's is opkit's."""
    return getattr(driver, "runs_kernels_of", None) == BACKEND


class _Watch:
    """Installs when Triton's jit functions are there: they are not while it looks for backends."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Find nothing; look whether the module that is waited for has been read."""
        del path, target
        jit = sys.modules.get("triton.runtime.jit")
        if name.startswith("triton") and hasattr(jit, "JITFunction") and self in sys.meta_path:
            sys.meta_path.remove(self)
            install()


def install_when_there() -> None:
    """Install as soon as Triton, which is being imported, has jit functions."""
    sys.meta_path.insert(0, _Watch())


def _of_library(name: str) -> Any:
    """Return a function that earlier versions of Triton had in `triton.language.math` too."""
    from . import libdevice

    if name not in libdevice.__all__:
        raise AttributeError(f"module 'triton.language.math' has no attribute {name!r}", name=name)
    return getattr(libdevice, name)


def install() -> None:
    """Let jit functions ask the active driver before they compile for a GPU."""
    from triton.language import math
    from triton.runtime.jit import JITFunction

    from .launching import run

    math.__dict__.setdefault("__getattr__", _of_library)

    if getattr(JITFunction.run, "asks_opkit", False):
        return
    original = JITFunction.run

    def choose(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        from triton.runtime import driver

        if is_ours(driver.active):
            return run(self, *args, grid=grid, warmup=warmup, **kwargs)
        return original(self, *args, grid=grid, warmup=warmup, **kwargs)

    choose.asks_opkit = True  # type: ignore[attr-defined]
    JITFunction.run = choose
