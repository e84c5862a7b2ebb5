"""Figures of the device `npu`.

    python benchmarks/device.py --opinfo 10 [--names softmax conv2d] [--samples 2] [--json FILE]
    python benchmarks/device.py --layouts 3 | --outputs 3 | --errors 1 | --mutations 3 [--names ...]
    python benchmarks/device.py --modules 1
    python benchmarks/device.py --optimizers
    python benchmarks/device.py --iterations 10000
    python benchmarks/device.py --imports
    python benchmarks/device.py --calls

`--opinfo N`: PyTorch's own list of operators (op_db of the installed wheel), each N-th of them,
against the CPU. For each type that the chip has and the CPU supports, the first samples run on both
devices; what the CPU refuses is no sample. Prints the pass rate, the share of samples and of calls
that kernels served, and every failure. A pass on the CPU fallback counts as fallback.
`--layouts N`, `--outputs N`, `--errors N`, `--mutations N`: of each N-th operator, operands that
lie transposed, with strides, expanded, channels last; `out=` as it has to be and otherwise; what it
has to refuse; one of its tensors of another shape or type.
`--modules N`: each N-th of PyTorch's list of modules (module_db): outputs and gradients.
`--optimizers`: five steps of each of its optimizers (optim_db), plain, foreach and fused.
`--iterations N`: device memory after N training steps beside that before them.
`--imports`: what `import torch` takes with the device named, beside without it.
`--calls`: what an operator takes on one element, as Python calls it: by kernels, and on the CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from device_suites import (
    Tally,
    run_errors,
    run_layouts,
    run_modules,
    run_mutations,
    run_operators,
    run_optimizers,
    run_outputs,
)
from measure import median_seconds, pin_to_one_core
from table import print_figure, print_head

_SUITES = {
    "layouts": run_layouts,
    "outputs": run_outputs,
    "errors": run_errors,
    "mutations": run_mutations,
}


def iterate(steps: int) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 4))
    model.to("npu")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x = torch.randn(2, 4, device="npu")

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    for _ in range(10):
        step()
    before = torch.npu.memory_allocated(), torch.npu.memory_reserved()
    for _ in range(steps):
        step()
    after = torch.npu.memory_allocated(), torch.npu.memory_reserved()
    print(f"{steps} steps: allocated {before[0]} -> {after[0]} bytes")
    print(f"reserved {before[1]} -> {after[1]} bytes")


def compare_imports(runs: int = 7) -> None:
    code = "import time; t = time.process_time(); import torch; print(time.process_time() - t)"

    def least(named: str) -> float:
        argv = [sys.executable, "-c", code]
        env = {**os.environ, "OPKIT_NPU": named}
        return min(
            float(subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout)
            for _ in range(runs)
        )

    without, with_it = least("0"), least("1")
    print(f"import torch: {without:.3f} s of one core; with npu: {with_it:.3f} s")
    print(f"ratio: {with_it / without:.3f}")


def time_calls(rounds: int = 31, calls: int = 100) -> None:
    """Print the median time of a call on one element, pinned to a core, on one thread."""
    pin_to_one_core()
    torch.set_num_threads(1)
    x, matrix = torch.ones(1, device="npu"), torch.ones(1, 1, device="npu")
    wide = torch.ones(1, dtype=torch.float64, device="npu")
    native: dict[str, Callable[[], object]] = {
        "x + x": lambda: x + x,
        "x.add_(1)": lambda: x.add_(1),
        "exp": lambda: x.exp(),
        "gelu": lambda: torch.nn.functional.gelu(x),
        "sum": lambda: x.sum(),
        "softmax": lambda: x.softmax(0),
        "mm": lambda: matrix @ matrix,
        "clone": lambda: x.clone(),
        "half": lambda: x.half(),
    }
    fallback: dict[str, Callable[[], object]] = {
        "float64 x + x": lambda: wide + wide,
        "float64 exp": lambda: wide.exp(),
        "i0e": lambda: torch.special.i0e(x),
        "i0": lambda: torch.special.i0(x),
    }
    print_head()
    for kind, rows, limit in (("native", native, "15 us"), ("fallback", fallback, "20 us")):
        torch.npu.reset_fallbacks()
        found = {}
        for name, call in rows.items():
            taken = median_seconds(lambda f=call: [f() for _ in range(calls)], rounds=rounds)
            found[name] = 1e6 * taken / calls
            print_figure(f"{name} on one element, {kind}", f"{found[name]:.1f} us", limit)
        counted = torch.npu.kernel_calls()
        on_cpu = sum(row.fallback for row in counted)
        by_kernels = sum(row.native for row in counted)
        if by_kernels if kind == "fallback" else on_cpu:
            sys.exit(f"not all {kind}: {by_kernels} calls by kernels, {on_cpu} on the CPU")
        typical = statistics.median(found.values())
        print_figure(f"median operator, {kind}", f"{typical:.1f} us", limit)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--opinfo", type=int, default=0, metavar="N", help="each n-th operator")
    parser.add_argument("--names", nargs="*", default=[], help="only operators of these names")
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--modules", type=int, default=0, metavar="N", help="each n-th module")
    for name in _SUITES:
        parser.add_argument(f"--{name}", type=int, default=0, metavar="N")
    parser.add_argument("--optimizers", action="store_true")
    parser.add_argument("--iterations", type=int, default=0)
    parser.add_argument("--imports", action="store_true")
    parser.add_argument("--calls", action="store_true")
    options = parser.parse_args()
    if options.imports:
        compare_imports()
    suites = (
        *(getattr(options, name) for name in _SUITES),
        options.opinfo,
        options.modules,
        options.optimizers,
        options.iterations,
    )
    if not (any(suites) or options.calls):
        return
    from opkit.torch_npu.build import kernel_library
    from opkit.torch_npu.native import load

    load().opkit_npu_kernels(str(kernel_library()).encode())
    if options.calls:
        time_calls()
    if options.iterations:
        iterate(options.iterations)
    if options.opinfo:
        tally, done = run_operators(options.opinfo, options.names, options.samples, options.seconds)
        print(f"operators: {done}")
        report(tally, options.json)
    for name, run in _SUITES.items():
        if step := getattr(options, name):
            tally, done = run(step, options.names, options.seconds)
            print(f"{name}, operators: {done}")
            report(tally, options.json)
    if options.modules:
        report(run_modules(options.modules), options.json)
    if options.optimizers:
        report(run_optimizers(), options.json)


def report(tally: Tally, file: Path | None) -> None:
    tally.print()
    if file:
        figures = {"tests": tally.tests, "passed": tally.passed, "native": tally.native}
        found = {**figures, "failures": tally.failures, "calls": dict(tally.calls)}
        file.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
