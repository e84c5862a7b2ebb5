"""What the compiler's kernels take in the model, how long compiling takes, and whether random programs are right.

    python benchmarks/compiler.py [patterns tuned product attention compile host random] [--graphs N [--first SEED]]

Modelled times are of the default chip. The bound of a pattern is the largest of the bytes that HBM moves at its rate,
all bytes at the rate of L2, and the cycles of its vector instructions on all cores; a share is the bound over the
modelled time of the whole launch.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from table import print_figure, print_head

from opkit import compiler as oc
from opkit.chips import DEFAULT_CHIP, find_chip
from opkit.compiler.tracing.fuzzing import random_graph
from opkit.profiling import Profile, Timeline, ceilings
from opkit.sanitizer import Check

S = oc.TensorSpec
F, W = "float16", "float32"
CHIP = find_chip(DEFAULT_CHIP)
N = 4096


def _full(*names: str, dtype: str = F) -> tuple[oc.TensorSpec, ...]:
    return tuple(S(name, (N, N), dtype) for name in names)


def _vector(*names: str) -> tuple[oc.TensorSpec, ...]:
    return tuple(S(name, (N,), F) for name in names)


def _rotary(x: Any, cos: Any, sin: Any) -> Any:
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return a * cos - b * sin, b * cos + a * sin


def _adam(p: Any, g: Any, m: Any, v: Any) -> Any:
    m = m * 0.9 + g * 0.1
    v = v * 0.999 + g * g * 0.001
    return p - m / (v.apply("sqrt") + 1e-8) * 1e-3, m, v


def _momentum(p: Any, g: Any, m: Any) -> Any:
    m = m * 0.9 + g
    return p - m * 0.01, m


def _huber(x: Any, y: Any) -> Any:
    d = (x - y).apply("abs")
    return d.apply("less", 1.0).apply("where", d * d * 0.5, d - 0.5)


PATTERNS: dict[str, tuple[Callable[..., Any], tuple[oc.TensorSpec, ...]]] = {
    "gelu tanh": (lambda x: x.apply("gelu", approximate="tanh"), _full("x")),
    "gelu erf": (lambda x: x.apply("gelu"), _full("x")),
    "silu": (lambda x: x.apply("silu"), _full("x")),
    "mish": (lambda x: x.apply("mish"), _full("x")),
    "tanh": (lambda x: x.apply("tanh"), _full("x")),
    "softplus": (lambda x: x.apply("softplus"), _full("x")),
    "hardswish": (lambda x: x.apply("hardswish"), _full("x")),
    "leaky relu": (lambda x: x.apply("leaky_relu"), _full("x")),
    "bias, gelu": (
        lambda x, b: (x + b).apply("gelu", approximate="tanh"),
        _full("x") + _vector("b"),
    ),
    "residual, bias, relu": (
        lambda x, r, b: (x + b + r).apply("relu"),
        _full("x", "r") + _vector("b"),
    ),
    "layer norm": (lambda x, w, b: x.apply("layer_norm", w, b), _full("x") + _vector("w", "b")),
    "layer norm, residual, silu": (
        lambda x, r, w, b: (x + r).apply("layer_norm", w, b).apply("silu"),
        _full("x", "r") + _vector("w", "b"),
    ),
    "rms norm": (lambda x, w: x.apply("rms_norm", w), _full("x") + _vector("w")),
    "softmax": (lambda x: x.apply("softmax"), _full("x")),
    "log softmax": (lambda x: x.apply("log_softmax"), _full("x")),
    "huber loss, a value an element": (_huber, _full("x", "y")),
    "squared error, a value a row": (
        lambda x, y: ((x - y) * (x - y)).mean(axis=-1),
        _full("x", "y"),
    ),
    "sgd with momentum": (_momentum, _full("p", "g", "m", dtype=W)),
    "adam": (_adam, _full("p", "g", "m", "v", dtype=W)),
    "swiglu": (lambda x, g: g.apply("silu") * x, _full("x", "g")),
    "geglu": (lambda x, g: g.apply("gelu", approximate="tanh") * x, _full("x", "g")),
}


def profiled(program: oc.Compiled, arrays: list[np.ndarray]) -> tuple[Timeline, ...]:
    """Return the timelines of one call."""
    with Profile(event_limit=0) as session:
        program(*arrays)
    return session.timelines


def bound_us(timelines: tuple[Timeline, ...]) -> float:
    """Return the largest of HBM's bytes at its rate, all bytes at L2's, and vector cycles on all
    cores. What L2 holds does not wait for HBM: a bound that counted it there was above the time."""
    rates = {each.name: each.bytes_per_second for each in ceilings(CHIP)}
    hertz = CHIP.number("clock.mhz") * 1e6
    total = 0.0
    for timeline in timelines:
        moved = timeline.gm_read_bytes + timeline.gm_write_bytes
        vector = sum(
            line.cycles - line.conflict_cycles for line in timeline.lines if line.pipe == "V"
        )
        seconds = vector / CHIP.count("cores.aiv") / hertz
        of_hbm = (timeline.hbm_read_bytes + timeline.hbm_write_bytes) / (rates["HBM"] or 1)
        total += max(of_hbm, moved / (rates["L2"] or 1), seconds) * 1e6
    return total


def patterns() -> None:
    shares = []
    for name, (function, specs) in PATTERNS.items():
        program = oc.compile(function, *specs)
        arrays = oc.random_arrays(program.graph, {})
        timelines = profiled(program, arrays)
        taken = sum(timeline.task_us for timeline in timelines)
        share = bound_us(timelines) / taken
        shares.append(share)
        kernels = f"{len(timelines)} kernel{'s' if len(timelines) > 1 else ''}"
        print_figure(name, f"{share:.0%} of its bound", f"{taken:.1f} us, {kernels}")
    print_figure(
        "median of the patterns", f"{statistics.median(shares):.0%}", "goal 85 %, to reach 70 %"
    )


def tuned() -> None:
    """Our kernel over the one tuned by hand, in the examples."""
    examples = Path(__file__).parents[1] / "examples"
    rows = {
        "GELU 16 Mi": (
            "gelu_custom",
            ("GELUCustomTuned",),
            PATTERNS["gelu tanh"][0],
            (S("x", (N, N), F),),
        ),
        "RMSNorm 2048 x 4096": (
            "rmsnorm",
            ("Rmsnorm",),
            PATTERNS["rms norm"][0],
            (S("x", (2048, N), F), S("w", (N,), F)),
        ),
    }
    from opkit import runtime, toolchain

    for label, (folder, operators, function, specs) in rows.items():
        program = oc.compile(function, *specs)
        arrays = oc.random_arrays(program.graph, {})
        ours = sum(timeline.task_us for timeline in profiled(program, arrays))
        with tempfile.TemporaryDirectory() as name:
            toolchain.build(toolchain.load_project(examples / folder), out=Path(name))
            library = runtime.open(Path(name))
            times = {}
            for operator in operators:
                with Profile(event_limit=0) as session:
                    library.run(operator, arrays)
                times[operator] = sum(t.task_us for t in session.timelines)
        best = min(times, key=times.__getitem__)
        print_figure(
            f"{label} float16, generated / {best}",
            f"{ours / times[best]:.2f}",
            f"{ours:.1f} us, {times[best]:.1f} us",
        )


def _peak_us(operations: float) -> float:
    rate = CHIP.count("cores.aic") * CHIP.number("timing.cube.macs_per_cycle.fp16")
    return operations / 2 / rate / CHIP.number("clock.mhz")


def product() -> None:
    matrices = (S("x", (2048, 2048), F), S("y", (2048, 2048), F))
    ideal = _peak_us(2 * 2048.0**3)
    for label, function, specs in (
        ("product of 2048^3", lambda x, y: x @ y, matrices),
        (
            "the same, with bias and GELU",
            lambda x, y, b: (x @ y + b).apply("gelu", approximate="tanh"),
            (*matrices, S("b", (2048,), F)),
        ),
    ):
        program = oc.compile(function, *specs)
        timelines = profiled(program, oc.random_arrays(program.graph, {}))
        taken = sum(timeline.task_us for timeline in timelines)
        print_figure(
            label,
            f"{ideal / taken:.0%} of the cube's peak",
            f"{taken:.1f} us, {len(timelines)} kernel{'s' if len(timelines) > 1 else ''}",
        )


def attention() -> None:
    heads, length, width = 16, 2048, 128
    specs = tuple(S(name, (heads, length, width), F) for name in "qkv")

    def spelled(q: Any, k: Any, v: Any) -> Any:
        return (q @ k.transpose(0, 2, 1) * width**-0.5).apply("softmax") @ v

    def causal(q: Any, k: Any, v: Any) -> Any:
        return q.apply("attention", k, v, causal=True)

    for label, function, share in (("", spelled, 1.0), (", causal", causal, 0.5)):
        compiled = oc.compile(function, *specs)
        timelines = profiled(compiled, oc.random_arrays(compiled.graph, {}))
        taken = sum(timeline.task_us for timeline in timelines)
        ideal = share * _peak_us(4.0 * heads * length * length * width)
        kernels = f"{len(timelines)} kernel{'s' if len(timelines) > 1 else ''}"
        print_figure(
            f"attention, 16 heads of 2048 x 128{label}",
            f"{ideal / taken:.0%} of the cube's peak",
            f"{taken:.1f} us, {kernels}",
        )


_COLD = """
import os, time
import numpy
from opkit import compiler as oc

def program(x):
    return x.apply("gelu", approximate="tanh") + {salt}

def seconds():
    return sum(os.times()[:4])

spec = oc.TensorSpec("x", (4096, 4096), "float16")
for _ in range(2):
    begin, cpu = time.perf_counter(), seconds()
    oc.compile(program, spec).load()
    print(time.perf_counter() - begin, seconds() - cpu)
"""


def compile_times() -> None:
    cold, cached = [], []
    for salt in range(3):
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "XDG_CACHE_HOME": cache}
            done = subprocess.run(
                [sys.executable, "-c", _COLD.format(salt=salt + 0.5)],
                capture_output=True,
                text=True,
                check=True,
                env=environment,
            )
        _, processor, again, _ = map(float, done.stdout.split())
        cold.append(processor)
        cached.append(again)
    print_figure(
        "trace to loaded kernel, nothing cached, processor time",
        f"{statistics.median(cold):.2f} s",
        "to reach 1.0 s",
    )
    print_figure("the same again", f"{statistics.median(cached) * 1e3:.1f} ms", "to reach 10 ms")


_HOST = """
import os, statistics, sys, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import numpy, torch
from opkit import compiler as oc
torch.set_num_threads(1)
S, F = oc.TensorSpec, torch.nn.functional
square = (1024, 1024)
vectors = [S(name, (1024,)) for name in "wb"]
ROWS = {
    "GELU": (lambda x: x.apply("gelu"), [S("x", square)], F.gelu),
    "layer norm": (
        lambda x, w, b: x.apply("layer_norm", w, b),
        [S("x", square), *vectors],
        lambda x, w, b: F.layer_norm(x, (1024,), w, b),
    ),
    "softmax": (lambda x: x.apply("softmax"), [S("x", square)], lambda x: F.softmax(x, -1)),
    "matmul": (lambda x, y: x @ y, [S("x", (512, 512)), S("y", (512, 512))], torch.matmul),
}

def seconds(call):
    call()
    times = []
    for _ in range(7):
        begin = time.process_time()
        call()
        times.append(time.process_time() - begin)
    return statistics.median(times)

for name, (function, specs, own) in ROWS.items():
    found = []
    for target in ("ascendc", "cpp"):
        program = oc.compile(function, *specs, target=target)
        arrays = oc.random_arrays(program.graph, {})
        found.append(seconds(lambda: program(*arrays)))
    tensors = [torch.from_numpy(array) for array in arrays]
    found.append(seconds(lambda: own(*tensors)))
    print(name, *found, sep="\\t")
"""


def host_times() -> None:
    """Processor time of the emulated kernels and of the C++ target over torch's own, on one core."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", _HOST], capture_output=True, text=True, check=True, env=environment
    )
    goals = {"GELU": "0.8", "layer norm": "2", "softmax": "1.5"}
    for line in done.stdout.splitlines():
        name, *times = line.split("\t")
        emulated, native, torch_s = map(float, times)
        took = f"{emulated * 1e3:.1f} ms, C++ {native * 1e3:.1f} ms, torch {torch_s * 1e3:.1f} ms"
        if name == "matmul":
            print_figure(
                "matmul 512^3 float32: rate on one core, emulated / torch",
                f"{torch_s / emulated:.2f} (C++ target {torch_s / native:.2f})",
                f"{took}; to reach 0.6",
            )
            continue
        print_figure(
            f"{name} of 1024 x 1024 float32: host time on one core, emulated / torch",
            f"{emulated / torch_s:.2f} (C++ target {native / torch_s:.2f})",
            f"{took}; to reach {goals[name]}",
        )


def random_programs(count: int, first: int) -> None:
    wrong = findings = crashes = 0
    begin = time.perf_counter()
    for seed in range(first, first + count):
        try:
            # Every third multiplies by matrices.
            graph = random_graph(seed, products=seed % 3 == 0)
            program = oc.compile(graph)
            with Check(()) as checks:
                difference = oc.verify(program, oc.random_arrays(graph, {}, seed))
        except Exception as error:
            crashes += 1
            print(f"seed {seed}: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        wrong += difference is not None
        findings += bool(checks.findings)
        if checks.findings:
            print(f"seed {seed}: {checks.findings[0]}", file=sys.stderr)
        if difference is not None:
            print(f"seed {seed}: {difference}", file=sys.stderr)
    print_figure(
        f"{count} random programs: wrong, with findings, not compiled",
        f"{wrong}, {findings}, {crashes}",
        f"{time.perf_counter() - begin:.0f} s",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*")
    parser.add_argument("--graphs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the first random program's seed")
    given = parser.parse_args()
    parts: dict[str, Callable[[], None]] = {
        "tuned": tuned,
        "patterns": patterns,
        "product": product,
        "attention": attention,
        "compile": compile_times,
        "host": host_times,
        "random": lambda: random_programs(given.graphs, given.first),
    }
    print_head()
    for name in given.what or parts:
        parts[name]()


if __name__ == "__main__":
    main()
