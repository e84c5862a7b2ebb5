"""The vendor's commands by their names, done by opkit: a file each.

`distributions/vendor_commands` installs them as scripts; without it
`python -m opkit.cli.vendor npu-smi info` runs one. Where the real command is on PATH, that one runs
instead, and a line says so.
"""

from __future__ import annotations

from opkit.cli.vendor.start import TOOLS, find_real, main, run_tool

__all__ = ["TOOLS", "find_real", "main", "run_tool"]
