"""What timing a launch costs: run times with the timing model and without, in turn.

    python benchmarks/profiling.py

Builds the examples and matrix products in a temporary folder. One thread pinned to one core, both
sides in turn, by processor time, but for the program, which has as many cores as the host gives.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from measure import compare, pin_to_one_core
from table import print_figure, print_head

from opkit import runtime
from opkit.profiling import Profile, profile_program
from opkit.toolchain import find_compiler

_ROOT = Path(__file__).resolve().parent.parent
_MATMUL = _ROOT / "benchmarks" / "matmul" / "matmul.asc"
_CUBES = _ROOT / "benchmarks" / "matmul.cpp"


def build(project: Path, folder: Path) -> runtime.Library:
    """Build a project into a folder and open it."""
    import shutil

    copy = folder / project.name
    shutil.copytree(project, copy, ignore=shutil.ignore_patterns("build"))
    command = [sys.executable, "-m", "opkit", "build", "-q", str(copy)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return runtime.open(copy / "build" / "opkit")


def figure(what: str, call: Callable[[], object], to_reach: str, *, rounds: int = 9) -> None:
    """Print the run time with the timing model over that without."""

    def timed() -> None:
        with Profile(event_limit=0):
            call()

    pair = compare(timed, call, rounds=rounds, clock=time.process_time)
    times = f"{pair.first_seconds * 1e3:.1f} ms / {pair.second_seconds * 1e3:.1f} ms"
    print_figure(f"profiled / not, {what}", f"{pair.ratio:.2f}x ({times})", to_reach)


def figure_of_matmul(folder: Path) -> None:
    """Print how long a program takes that multiplies 2048 x 2048 x 2048, advice included."""
    program = folder / "matmul"
    command = [sys.executable, "-m", "opkit", "cc", str(_MATMUL), "-o", str(program)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    start = time.perf_counter()
    (timeline,), _ = profile_program(program, [], quiet_stdout=True)
    seconds = time.perf_counter() - start
    what = f"matrix product of 2048 cubed, profiled ({timeline.task_us:.1f} us in the model)"
    print_figure(what, f"{seconds:.1f} s", "< 10 s on two cores")


def matrix_product(folder: Path, size: int) -> Callable[[], object]:
    """Return a call that multiplies matrices of halves on the emulated cubes of eight blocks."""
    from opkit import emulator
    from opkit.emulator import _emulator

    library = folder / "cubes.so"
    command = [
        *(*find_compiler().argv, "-std=c++17", "-O2", "-shared", "-fPIC", "-fvisibility=hidden"),
        *("-fno-gnu-unique", "-D__NPU_ARCH__=2201", "-isystem", emulator.include_dir()),
        *(_CUBES, "-o", library, "-L", emulator.library_path().parent, "-lopkit_emulator"),
    ]
    subprocess.run([str(part) for part in command], check=True)
    kernel = _emulator.Kernel(str(library), "product")
    random = np.random.default_rng(0)
    a, b = (random.uniform(-1, 1, (size, size)).astype(np.float16) for _ in range(2))
    c = np.zeros((size, size), np.float32)
    numbers = np.array([size, size, size, 0], np.int32)
    return lambda: kernel.launch([a, b, c, numbers], 8)


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        gelu = build(_ROOT / "examples" / "gelu_custom", folder)
        rmsnorm = build(_ROOT / "examples" / "rmsnorm", folder)
        issue_loop = build(_ROOT / "benchmarks" / "issue_loop", folder)
        product = matrix_product(folder, 2048)
        print_head()
        if _MATMUL.is_file():
            figure_of_matmul(folder)
        cores = os.sched_getaffinity(0)
        pin_to_one_core()
        runtime.configure(threads=1)
        random = np.random.default_rng(0)
        x = random.standard_normal(1 << 24).astype(np.float16)
        rows = random.standard_normal((2048, 4096)).astype(np.float16)
        gamma = random.standard_normal(4096).astype(np.float16)
        figure("GELU 16 Mi float16", lambda: gelu.run("GELUCustom", [x]), "<= 1.3x")
        figure(
            "RMSNorm 2048x4096 float16", lambda: rmsnorm.run("Rmsnorm", [rows, gamma]), "<= 1.3x"
        )
        figure("matrix product of 2048 cubed, float16", product, "<= 1.3x", rounds=5)
        small = np.zeros(64, dtype=np.float32)
        attrs = {"instructions": 1_000_000, "is_empty": 0}
        figure(
            "instructions of 64 floats",
            lambda: issue_loop.run("IssueLoop", [small], attrs),
            "<= 3x",
        )
        os.sched_setaffinity(0, cores)


if __name__ == "__main__":
    main()
