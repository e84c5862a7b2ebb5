"""What `opkit test` costs on the GELU example, and what it finds on both examples.

    python benchmarks/precision.py

Copies the examples to a temporary folder and tests them there through the command line.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from table import print_figure, print_head

_EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
_SMALL_CASES = 400
_LARGE_ELEMENTS = 64 << 20
_FLOAT16_BYTES = 2


@dataclass(frozen=True)
class Run:
    """One `opkit test`."""

    seconds: float
    peak_bytes: int
    report: dict[str, Any]


def run_test(project: Path, *arguments: str) -> Run:
    """Return what one `opkit test` took, its report included."""
    command = [sys.executable, "-m", "opkit", "test", str(project), "--json", "-q", *arguments]
    with tempfile.TemporaryFile() as output:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        output.seek(0)
        text = output.read()
    code = os.waitstatus_to_exitcode(status)
    if code:
        raise SystemExit(f"{' '.join(command)} exits {code}: {text.decode()[:2000]}")
    return Run(seconds, usage.ru_maxrss << 10, json.loads(text))


def write_cases(path: Path, shapes: list[list[int]]) -> Path:
    """Write a case of each shape."""
    path.write_text(json.dumps({"cases": [{"op": "gelu_custom", "shape": shapes}]}))
    return path


def worst_figures(report: dict[str, Any]) -> dict[tuple[str, str, str], dict[str, float]]:
    """Return cases and the worst of each figure, by operator, data type and standard."""
    worst: dict[tuple[str, str, str], dict[str, float]] = {}
    for case in report["cases"]:
        for output in case["outputs"]:
            row = worst.setdefault((case["op"], output["dtype"], output["standard"]), {"cases": 0})
            row["cases"] += 1
            for figure in output["figures"]:
                row[figure["name"]] = max(row.get(figure["name"], 0.0), figure["value"])
    return worst


def main() -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        for example in ("gelu_custom", "rmsnorm"):
            shutil.copytree(_EXAMPLES / example, folder / example)
        gelu = folder / "gelu_custom"
        one = write_cases(folder / "one.json", [[7]])
        many = write_cases(folder / "many.json", [[n + 1] for n in range(_SMALL_CASES)])
        large = write_cases(folder / "large.json", [[_LARGE_ELEMENTS]])
        run_test(gelu, "--cases", str(one))  # builds
        print_head()
        alone = [run_test(gelu, "--cases", str(one)) for _ in range(3)]
        together = [run_test(gelu, "--cases", str(many)) for _ in range(3)]
        start_up = statistics.median(run.seconds for run in alone)
        seconds = statistics.median(run.seconds for run in together) - start_up
        rate = (_SMALL_CASES - 1) / seconds
        what = f"GELU, cases of 1 to {_SMALL_CASES} elements, one process"
        print_figure(what, f"{rate:.0f} cases/s, start {start_up:.2f} s", "-")
        peak = run_test(gelu, "--cases", str(large)).peak_bytes
        idle = min(run.peak_bytes for run in alone)
        share = (peak - idle) / (_LARGE_ELEMENTS * _FLOAT16_BYTES)
        print_figure("memory of a 64 Mi case / the tensor's bytes", f"{share:.1f}", "<= 6")
        print("\n| operator | dtype | standard | outputs judged | worst |\n|---|---|---|---|---|")
        for example in ("gelu_custom", "rmsnorm"):
            report = run_test(folder / example).report
            for key, row in sorted(worst_figures(report).items()):
                count = row.pop("cases")
                figures = ", ".join(f"{name} {value:.3g}" for name, value in row.items())
                print(f"| {' | '.join(key)} | {count} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
