"""What `opkit check` costs: launches with each tool's detectors attached, beside launches without.

    python benchmarks/checks.py

Needs torch, to build the examples. One thread pinned to one core; launches with and without checks
take turns, and the least processor time of each counts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from measure import least_seconds, pin_to_one_core
from operators import build
from table import print_figure, print_head

from opkit import runtime
from opkit.sanitizer import Check

_ROOT = Path(__file__).resolve().parent.parent
# The others report faults, which launches without checks have too.
_TOOLS = ("memcheck", "initcheck", "racecheck", "cachecheck", "synccheck", "apicheck")


def figures(what: str, launch: Callable[[], object], rounds: int) -> None:
    """Print the ratio of a checked launch to a plain one, for each tool and for all of them."""

    def checked(tools: tuple[str, ...]) -> Callable[[], None]:
        def call() -> None:
            with Check(tools) as session:
                launch()
            assert session.findings == (), session.findings

        return call

    for tools in [*((tool,) for tool in _TOOLS), ()]:
        with_checks, without = least_seconds(checked(tools), launch, rounds=rounds)
        times = f"{with_checks * 1e3:.2f} ms / {without * 1e3:.2f} ms"
        name = tools[0] if tools else "all tools"
        figure = f"{with_checks / without:.2f} ({times})"
        print_figure(f"{what}, {name} / no checks", figure, "<= 4")


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        gelu = build(_ROOT / "examples" / "gelu_custom", Path(name))
        norm = build(_ROOT / "examples" / "rmsnorm", Path(name))
        pin_to_one_core()
        runtime.configure(threads=1)
        random = np.random.default_rng(0)
        x = random.standard_normal(1 << 20).astype(np.float16)
        rows = random.standard_normal((2048, 4096)).astype(np.float16)
        gamma = random.standard_normal(4096).astype(np.float16)
        print_head()
        figures("GELU 1 Mi, by hand", lambda: gelu.run("GELUCustomTuned", [x]), 40)
        figures("GELU 1 Mi, generated", lambda: gelu.run("GELUCustom", [x]), 40)
        figures("RMSNorm 2048x4096", lambda: norm.run("Rmsnorm", [rows, gamma]), 15)


if __name__ == "__main__":
    main()
