"""Running built operators: open an artifact folder, call its operators on NumPy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from opkit.runtime.allocation import BEGIN_BYTES, allocated, zeros_of_bytes
    from opkit.runtime.device import Configuration, configuration, configure, load_emulator
    from opkit.runtime.kernel import DeviceMemory, Kernel, LaunchResult, launches_go_to
    from opkit.runtime.library import (
        Library,
        OutputSpec,
        Tiling,
        changed_inputs,
        open,
        raise_status,
    )
    from opkit.runtime.package import OperatorPackage
    from opkit.runtime.program import (
        find_program,
        find_script,
        program_variables,
        run_program,
        timeout_option,
    )
    from opkit.runtime.script import run_script
    from opkit.runtime.watchdog import DEFAULT_TIMEOUT_SECONDS, time_limit

__all__ = [
    "BEGIN_BYTES",
    "DEFAULT_TIMEOUT_SECONDS",
    "Configuration",
    "DeviceMemory",
    "Kernel",
    "LaunchResult",
    "Library",
    "OperatorPackage",
    "OutputSpec",
    "Tiling",
    "allocated",
    "changed_inputs",
    "configuration",
    "configure",
    "find_program",
    "find_script",
    "launches_go_to",
    "load_emulator",
    "open",
    "program_variables",
    "raise_status",
    "run_program",
    "run_script",
    "time_limit",
    "timeout_option",
    "zeros_of_bytes",
]

__getattr__ = lazy_names(
    __name__,
    {
        "allocation": ("BEGIN_BYTES", "allocated", "zeros_of_bytes"),
        "device": ("Configuration", "configuration", "configure", "load_emulator"),
        "kernel": ("DeviceMemory", "Kernel", "LaunchResult", "launches_go_to"),
        "library": ("Library", "OutputSpec", "Tiling", "changed_inputs", "open", "raise_status"),
        "package": ("OperatorPackage",),
        "program": (
            "find_program",
            "find_script",
            "program_variables",
            "run_program",
            "timeout_option",
        ),
        "script": ("run_script",),
        "watchdog": ("DEFAULT_TIMEOUT_SECONDS", "time_limit"),
    },
)
