"""Running built operators: open an artifact folder, call its operators on NumPy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opkit.runtime.device import Configuration, configuration, configure, load_emulator
    from opkit.runtime.kernel import DeviceMemory, Kernel, LaunchResult
    from opkit.runtime.library import Library, OutputSpec, open, raise_status
    from opkit.runtime.package import OperatorPackage
    from opkit.runtime.program import find_program, program_variables, run_program
    from opkit.runtime.script import run_script
    from opkit.runtime.watchdog import DEFAULT_TIMEOUT_SECONDS, time_limit

__all__ = [
    "DEFAULT_TIMEOUT_SECONDS",
    "Configuration",
    "DeviceMemory",
    "Kernel",
    "LaunchResult",
    "Library",
    "OperatorPackage",
    "OutputSpec",
    "configuration",
    "configure",
    "find_program",
    "load_emulator",
    "open",
    "program_variables",
    "raise_status",
    "run_program",
    "run_script",
    "time_limit",
]

_MODULES = {
    "DEFAULT_TIMEOUT_SECONDS": "watchdog",
    "Configuration": "device",
    "DeviceMemory": "kernel",
    "Kernel": "kernel",
    "LaunchResult": "kernel",
    "Library": "library",
    "OperatorPackage": "package",
    "OutputSpec": "library",
    "configuration": "device",
    "configure": "device",
    "load_emulator": "device",
    "open": "library",
    "find_program": "program",
    "program_variables": "program",
    "raise_status": "library",
    "run_program": "program",
    "run_script": "script",
    "time_limit": "watchdog",
}


def __getattr__(name: str) -> object:
    # On first use: what they import loads NumPy and the compiled module.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
