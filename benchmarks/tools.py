"""How long the command line keeps its user waiting: building the GELU example, and asking for help.

    python benchmarks/tools.py

Builds in a temporary folder, with a cache of its own that starts out empty.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from table import print_figure, print_head

_ROOT = Path(__file__).resolve().parent.parent


def seconds_of(arguments: list[str], environment: dict[str, str]) -> float:
    """Return the wall time of one `opkit` command."""
    command = [sys.executable, "-m", "opkit", *arguments]
    start = time.perf_counter()
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    """Print the table."""
    print_head()
    help_times = [seconds_of(["--help"], dict(os.environ)) for _ in range(11)]
    print_figure("opkit --help", f"{statistics.median(help_times) * 1e3:.0f} ms", "<= 150 ms")
    cold, unchanged = [], []
    prototype = _ROOT / "examples" / "gelu_custom" / "gelu_custom.json"
    with tempfile.TemporaryDirectory() as name:
        for attempt in range(3):
            folder = Path(name) / str(attempt)
            environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
            project = str(folder / "gelu_custom")
            seconds_of(["gen", "-q", "-i", str(prototype), "-o", project], environment)
            cold.append(seconds_of(["build", "-q", project], environment))
            unchanged += [seconds_of(["build", "-q", project], environment) for _ in range(3)]
    print_figure("cold opkit build, GELU", f"{statistics.median(cold):.1f} s", "<= 10 s")
    print_figure("opkit build, no change", f"{statistics.median(unchanged):.2f} s", "<= 0.5 s")


if __name__ == "__main__":
    main()
