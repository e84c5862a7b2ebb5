"""Running built operators: open an artifact folder, call its operators on NumPy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opkit.runtime.device import Configuration, configuration, configure, load_emulator
    from opkit.runtime.library import Library, OutputSpec, open, raise_status

__all__ = [
    "Configuration",
    "Library",
    "OutputSpec",
    "configuration",
    "configure",
    "load_emulator",
    "open",
    "raise_status",
]

_MODULES = {
    "Configuration": "device",
    "Library": "library",
    "OutputSpec": "library",
    "configuration": "device",
    "configure": "device",
    "load_emulator": "device",
    "open": "library",
    "raise_status": "library",
}


def __getattr__(name: str) -> object:
    # On first use: what they import loads NumPy and the compiled module.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
