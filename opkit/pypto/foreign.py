"""The name `pypto` for programs that say it: only where asked for, never beside the real one."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["as_pypto"]


@contextmanager
def as_pypto() -> Iterator[None]:
    """Let `import pypto` mean opkit's inside of the block, where no other is installed."""
    if "pypto" in sys.modules or importlib.util.find_spec("pypto") is not None:
        yield
        return
    import opkit.pypto as ours

    from . import symbolic

    names = {"pypto": ours, "pypto.frontend": ours.frontend}
    names |= {
        f"pypto.{part}": getattr(ours, part) for part in ("experimental", "platform", "runtime")
    }
    # Beside the function of that name, as in the public project.
    names["pypto.symbolic_scalar"] = symbolic
    sys.modules.update(names)
    try:
        yield
    finally:
        for name, module in names.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]
