"""How fast the examples and generated operators run emulated, beside torch's own operators.

    python benchmarks/operators.py

Needs torch. Builds the examples, and operators from formulas, in a temporary folder. One thread
pinned to one core, but for the figure of two threads; torch's operator and ours take turns, both
from tensor to tensor.
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
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from measure import compare, host_scaling, median_seconds, pin_to_one_core
from table import print_figure, print_head

from opkit import runtime

_ROOT = Path(__file__).resolve().parent.parent
_ISSUES = 1_000_000

_SHIFTED = "x - max(x, axis=-1)"
_CENTRED = "(x - mean(x, axis=-1))"
_GENERATED = {
    "Softmax": ("x", f"exp({_SHIFTED})/sum(exp({_SHIFTED}), axis=-1)"),
    "LogSoftmax": ("x", f"{_SHIFTED} - log(sum(exp({_SHIFTED}), axis=-1))"),
    "LayerNorm": (
        "x gamma beta",
        f"{_CENTRED}/sqrt(mean({_CENTRED}**2, axis=-1) + 1e-5)*gamma + beta",
    ),
    "Relu": ("x", "relu(x)"),
    "Gelu": ("x", "0.5*x*(1 + tanh(sqrt(2/pi)*(x + 0.044715*x**3)))"),
}


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


def build_generated(folder: Path) -> None:
    """Generate a project of `_GENERATED`, all of float16, and load its torch operators."""
    half = ["float16"]
    prototype = [
        {
            "op": op,
            "input_desc": [{"name": name, "type": half} for name in inputs.split()],
            "output_desc": [{"name": "y", "type": half, "formula": formula}],
            "gradient": False,
        }
        for op, (inputs, formula) in _GENERATED.items()
    ]
    (folder / "generated.json").write_text(json.dumps(prototype), encoding="utf-8")
    command = [sys.executable, "-m", "opkit", "gen", "-q", "-i", "generated.json"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder)
    (folder / "built").mkdir()
    build(folder / "generated", folder / "built")


def figures_of_generated() -> None:
    """Print how long generated operators take on 1 Mi float16, beside torch's."""
    ours, functional = torch.ops.generated, torch.nn.functional
    rows = torch.randn(1024, 1024, dtype=torch.float16)
    gamma, beta = torch.randn(2, 1024, dtype=torch.float16)
    figures: tuple[tuple[str, Callable[[], object], Callable[[], object], str], ...] = (
        (
            "softmax",
            lambda: ours.softmax(rows),
            lambda: functional.softmax(rows, dim=-1),
            "<= 3",
        ),
        (
            "log-softmax",
            lambda: ours.log_softmax(rows),
            lambda: functional.log_softmax(rows, dim=-1),
            "<= 3",
        ),
        (
            "layer norm",
            lambda: ours.layer_norm(rows, gamma, beta),
            lambda: functional.layer_norm(rows, (1024,), gamma, beta),
            "<= 2",
        ),
        ("relu", lambda: ours.relu(rows), lambda: functional.relu(rows), ""),
        (
            "GELU",
            lambda: ours.gelu(rows),
            lambda: functional.gelu(rows, approximate="tanh"),
            "<= 1.0, goal 0.5",
        ),
    )
    for name, generated, torchs_own, to_reach in figures:
        figure_beside_torch(
            f"{name} 1024x1024 float16, generated and emulated / torch",
            generated,
            torchs_own,
            to_reach,
        )


def figure_beside_torch(
    what: str, ours: Callable[[], object], theirs: Callable[[], object], to_reach: str
) -> None:
    """Print the ratio of our processor time to torch's, both of one thread."""
    pair = compare(ours, theirs, rounds=41, clock=time.process_time)
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
        build_generated(Path(name))
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
        figures_of_generated()
        figure_of_two_threads(lambda: tuned(long), cores)
        figure_of_issue(issue_loop)
        figure_of_bits("GELU", lambda: tuned(x))
        figure_of_bits("RMSNorm", rmsnorm)


if __name__ == "__main__":
    main()
