"""The compiled module, loaded at the first use of a class of td."""

from __future__ import annotations

from typing import Any

__all__ = ["native"]


def native() -> Any:
    """Return the compiled module with td's classes in it."""
    from opkit.runtime import load_emulator

    load_emulator()
    from opkit.emulator import _emulator

    return _emulator
