"""`python -m opkit.cli.vendor NAME ARGUMENTS`."""

from __future__ import annotations

import sys

from opkit.cli.vendor.start import TOOLS, run_tool

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in TOOLS:
        sys.exit(f"usage: python -m opkit.cli.vendor NAME ...; NAME is one of {', '.join(TOOLS)}")
    sys.exit(run_tool(sys.argv[1], sys.argv[2:], owns_process=True))
