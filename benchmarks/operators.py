"""How fast the examples run emulated, beside torch's own operators.

    python benchmarks/operators.py

Needs torch. Builds the examples in a temporary folder. One thread pinned to one core, but for the
figure of two threads; torch's operator and ours take turns, both from tensor to tensor.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from measure import compare, host_scaling, median_seconds, pin_to_one_core
from table import print_figure, print_head

from opkit import runtime

_ROOT = Path(__file__).resolve().parent.parent
_ISSUES = 1_000_000


def build(project: Path, folder: Path) -> runtime.Library:
    """Build a copy of a project in a folder and open it, its torch operators included."""
    copy = folder / project.name
    shutil.copytree(project, copy, ignore=shutil.ignore_patterns("build"))
    command = [sys.executable, "-m", "opkit", "build", "-q", str(copy)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    library = runtime.open(copy / "build" / "opkit")
    extension = copy / "build" / "opkit" / "_torch.so"
    if extension.is_file():
        torch.ops.load_library(str(extension))
    return library


def figure_beside_torch(
    what: str, ours: Callable[[], object], theirs: Callable[[], object], to_reach: str
) -> None:
    """Print the ratio of our time to torch's."""
    pair = compare(ours, theirs, rounds=41)
    times = f"{pair.first_seconds * 1e3:.2f} ms / {pair.second_seconds * 1e3:.2f} ms"
    print_figure(what, f"{pair.ratio:.2f} ({times})", to_reach)


def figure_of_two_threads(call: Callable[[], object], cores: set[int]) -> None:
    """Print how much faster two host threads are than one, each with a core to itself."""
    what = "two host threads / one, GELU 16 Mi"
    if len(cores) < 2:
        print_figure(what, "not measured: this host gives one core", ">= 1.8x")
        return
    both = set(sorted(cores)[-2:])
    ratios = []
    for _ in range(9):
        seconds = []
        for threads, allowed in ((1, {max(both)}), (2, both)):
            os.sched_setaffinity(0, allowed)
            runtime.configure(threads=threads)
            call()
            start = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - start)
        ratios.append(seconds[0] / seconds[1])
    os.sched_setaffinity(0, both)
    host = host_scaling()
    pin_to_one_core()
    runtime.configure(threads=1)
    figure = f"{statistics.median(ratios):.2f}x (two processes on this host: {host:.2f}x)"
    print_figure(what, figure, ">= 1.8x")


def figure_of_issue(library: runtime.Library) -> None:
    """Print what one instruction of eight elements takes, less an empty loop of the same length."""
    x = np.zeros(8, dtype=np.float32)

    def seconds(is_empty: int) -> float:
        attrs = {"instructions": _ISSUES, "is_empty": is_empty}
        return median_seconds(lambda: library.run("IssueLoop", [x], attrs))

    nanoseconds = (seconds(0) - seconds(1)) / _ISSUES * 1e9
    print_figure("an instruction of 8 floats, no observer", f"{nanoseconds:.0f} ns", "<= 100 ns")


def figure_of_bits(what: str, call: Callable[[], torch.Tensor]) -> None:
    """Print whether every SIMD target of this host gives the same bits."""
    import opkit.emulator._emulator as emulator

    results = {}
    for target in emulator.lane_targets():
        emulator.set_lane_target(target)
        results[target] = call().numpy().tobytes()
    emulator.set_lane_target("auto")
    answer = "yes" if len(set(results.values())) == 1 else "no"
    print_figure(f"same bits, {what}", f"{answer} ({', '.join(results)})", "yes")


def main() -> None:
    """Print the table."""
    cores = os.sched_getaffinity(0)
    with tempfile.TemporaryDirectory() as name:
        build(_ROOT / "examples" / "gelu_custom", Path(name))
        norm = build(_ROOT / "examples" / "rmsnorm", Path(name))
        issue_loop = build(_ROOT / "benchmarks" / "issue_loop", Path(name))
        pin_to_one_core()
        torch.set_num_threads(1)
        runtime.configure(threads=1)
        torch.manual_seed(0)
        x = torch.randn(1 << 20, dtype=torch.float16)
        rows = torch.randn(2048, 4096, dtype=torch.float16)
        gamma = torch.randn(4096, dtype=torch.float16)
        long = torch.randn(1 << 24, dtype=torch.float16)
        tuned = torch.ops.gelu_custom_tuned.gelu_custom_tuned

        def rmsnorm() -> torch.Tensor:
            return torch.from_numpy(norm.run("Rmsnorm", [rows.numpy(), gamma.numpy()])[0])

        functional = torch.nn.functional

        print_head()
        figure_beside_torch(
            "GELU 1 Mi float16, emulated / torch gelu tanh",
            lambda: tuned(x),
            lambda: functional.gelu(x, approximate="tanh"),
            "<= 1.0, goal 0.5",
        )
        figure_beside_torch(
            "RMSNorm 2048x4096 float16, emulated / torch layer_norm",
            rmsnorm,
            lambda: functional.layer_norm(rows, (4096,), gamma),
            "<= 3, goal 1",
        )
        figure_of_two_threads(lambda: tuned(long), cores)
        figure_of_issue(issue_loop)
        figure_of_bits("GELU", lambda: tuned(x))
        figure_of_bits("RMSNorm", rmsnorm)


if __name__ == "__main__":
    main()
