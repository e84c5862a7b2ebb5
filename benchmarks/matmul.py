"""How fast the emulated cube multiplies, beside torch on the same core.

    python benchmarks/matmul.py [fp16 bf16 int8 threads fused]

Needs torch. The kernels of `matmul.cpp` go by tiles of 128 x 256 x 64 through L1, L0A, L0B, L0C.
Halves are compared with torch.mm of floats, since torch has no fast product of halves on a CPU,
bfloat16 with torch.mm of bfloat16, int8 with torch._int_mm. One thread pinned to one core, both
sides in turn, by processor time, but for the figure of two threads.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from measure import compare, host_scaling, median_seconds, pin_to_one_core
from table import print_figure, print_head

from opkit import emulator
from opkit.emulator import _emulator
from opkit.toolchain import find_compiler

_SOURCE = Path(__file__).with_suffix(".cpp")
_SIZES = (512, 1024, 2048)
_BLOCKS = 8
_KINDS = {"fp16": 0, "bf16": 1, "int8": 2}
_ROUNDS = {512: 21, 1024: 11, 2048: 5}


@dataclass(frozen=True)
class Case:
    """One multiplication: our arguments and torch's."""

    kind: str
    size: int
    a: np.ndarray
    b: np.ndarray
    """By rows of k; int8 by rows of n."""
    c: np.ndarray
    left: torch.Tensor
    right: torch.Tensor

    @property
    def numbers(self) -> np.ndarray:
        return np.array([self.size, self.size, self.size, _KINDS[self.kind]], np.int32)

    def theirs(self) -> torch.Tensor:
        if self.kind == "int8":
            return torch._int_mm(self.left, self.right)
        return torch.mm(self.left, self.right)

    def gigaflops(self, seconds: float) -> float:
        return 2 * self.size**3 / seconds / 1e9


def case_of(kind: str, size: int) -> Case:
    generator = np.random.default_rng(0)
    if kind == "int8":
        a, b = (generator.integers(-128, 128, (size, size), dtype=np.int8) for _ in range(2))
        c = np.zeros((size, size), np.int32)
        return Case(kind, size, a, b, c, torch.from_numpy(a), torch.from_numpy(b).T)
    floats = [generator.uniform(-1, 1, (size, size)).astype(np.float32) for _ in range(2)]
    c = np.zeros((size, size), np.float32)
    if kind == "fp16":
        a, b = (values.astype(np.float16) for values in floats)
        left, right = (torch.from_numpy(values.astype(np.float32)) for values in (a, b))
        return Case(kind, size, a, b, c, left, right)
    left, right = (torch.from_numpy(values).bfloat16() for values in floats)
    a, b = (values.view(torch.int16).numpy().view(np.uint16) for values in (left, right))
    return Case(kind, size, a, b, c, left, right)


def build(folder: Path, *options: str) -> Path:
    library = folder / f"matmul{len(options)}.so"
    command = [
        *(*find_compiler().argv, "-std=c++17", "-O2", "-shared", "-fPIC", "-fvisibility=hidden"),
        *(
            "-fno-gnu-unique",
            "-D__NPU_ARCH__=2201",
            *options,
            "-isystem",
            str(emulator.include_dir()),
        ),
        *(str(_SOURCE), "-o", str(library)),
        *("-L", str(emulator.library_path().parent), "-lopkit_emulator"),
    ]
    subprocess.run(command, check=True)
    return library


def launcher(library: Path, case: Case, kernel: str = "product") -> Callable[[], object]:
    arguments = [case.a, case.b, case.c, case.numbers]
    return lambda: _emulator.Kernel(str(library), kernel).launch(arguments, _BLOCKS, 0)


def check(case: Case) -> None:
    """Raise unless our last result is torch's, up to the rounding of sums."""
    expected = case.theirs().float().numpy()
    tolerance = {"fp16": 1e-3, "bf16": 0.5, "int8": 0}[case.kind]  # torch rounds C to bfloat16
    np.testing.assert_allclose(case.c, expected, rtol=1e-2 if tolerance else 0, atol=tolerance)


def figure(library: Path, kind: str, size: int) -> None:
    """Print our share of torch's rate."""
    case = case_of(kind, size)
    call = launcher(library, case)
    call()
    check(case)
    pair = compare(call, case.theirs, rounds=_ROUNDS[size], clock=time.process_time)
    rates = f"{case.gigaflops(pair.first_seconds):.0f} / {case.gigaflops(pair.second_seconds):.0f}"
    what = f"{kind} {size}^3, GFLOP/s / torch's"
    print_figure(what, f"{1 / pair.ratio:.2f} ({rates})", ">= 0.6, goal 0.9")


def figure_of_two_threads(library: Path, cores: set[int]) -> None:
    """Print how much faster two host threads are than one, each with a core to itself."""
    what = "two host threads / one, fp16 1024^3"
    if len(cores) < 2:
        print_figure(what, "not measured: this host gives one core", ">= 1.8x")
        return
    os.sched_setaffinity(0, set(sorted(cores)[-2:]))
    call = launcher(library, case_of("fp16", 1024))
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(5):
        for threads in (1, 2):
            configure(threads)
            seconds[threads].append(median_seconds(call, rounds=3))
    configure(1)
    gain = statistics.median(one / two for one, two in zip(seconds[1], seconds[2], strict=True))
    print_figure(what, f"{gain:.2f}x (two processes: {host_scaling():.2f}x)", ">= 1.8x")
    pin_to_one_core()


def figure_of_the_cube(library: Path, fused: Path) -> None:
    """Print what part of a fused kernel's time its cube core takes."""
    case = case_of("fp16", 1024)
    pair = compare(
        launcher(library, case), launcher(fused, case, "fused"), rounds=11, clock=time.process_time
    )
    times = f"{pair.first_seconds * 1e3:.1f} of {pair.second_seconds * 1e3:.1f} ms"
    print_figure(
        "matmul + leaky relu 1024^3, share of the cube", f"{pair.ratio:.2f} ({times})", "-"
    )


def configure(threads: int) -> None:
    _emulator.configure(**{**_emulator.configuration(), "threads": threads})


def main(wanted: list[str]) -> int:
    cores = os.sched_getaffinity(0)
    torch.set_num_threads(1)
    pin_to_one_core()
    configure(1)
    print(f"lanes: {_emulator.lane_target()}; torch {torch.__version__}")
    print_head()
    with tempfile.TemporaryDirectory() as folder:
        library = build(Path(folder))
        for kind in _KINDS:
            for size in _SIZES if not wanted or kind in wanted else ():
                figure(library, kind, size)
        if not wanted or "threads" in wanted:
            figure_of_two_threads(library, cores)
        if not wanted or "fused" in wanted:
            figure_of_the_cube(library, build(Path(folder), "-DFUSED"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
