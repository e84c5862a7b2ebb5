"""Figures of the device `npu`.

    python benchmarks/device.py --opinfo 10 [--names softmax conv2d] [--samples 2] [--json FILE]
    python benchmarks/device.py --iterations 10000
    python benchmarks/device.py --imports

`--opinfo N`: PyTorch's own list of operators (op_db of the installed wheel), each N-th of them,
against the CPU. For each type that the chip has and the CPU supports, the first samples run on both
devices; what the CPU refuses is no sample. Prints the pass rate, the share of samples and of calls
that kernels served, and every failure. A pass on the CPU fallback counts as fallback.
`--iterations N`: device memory after N training steps beside that before them.
`--imports`: what `import torch` takes with the device named, beside without it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import torch

TYPES = (
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int8,
    torch.int32,
    torch.int64,
    torch.bool,
)
TOLERANCE = {torch.float32: 1e-4, torch.float16: 4e-3, torch.bfloat16: 4e-2}
# Their results are of chance, or memory that nobody wrote.
NO_REFERENCE = re.compile(
    r"empty|rand|normal|bernoulli|multinomial|dropout|uniform|exponential|cauchy|geometric|"
    r"log_normal|poisson|new_empty|resize|rrelu|jiterator"
)


def to_device(value: Any, device: str) -> Any:
    def move(x: torch.Tensor) -> torch.Tensor:
        return x.detach().to(device).requires_grad_(x.requires_grad)

    return torch.utils._pytree.tree_map_only(torch.Tensor, move, value)


def call(op: Any, sample: Any, device: str) -> Any:
    inputs = to_device(sample.input, device)
    # Its numbers stay with the host on any device.
    args = sample.args if op.name == "tensor_split" else to_device(sample.args, device)
    kwargs = dict(to_device(sample.kwargs, device))
    if "device" in kwargs:
        kwargs["device"] = device
    return op(inputs, *args, **kwargs)


def difference(actual: Any, expected: Any) -> str | None:
    ours, theirs = (
        [x for x in torch.utils._pytree.tree_leaves(value) if isinstance(x, torch.Tensor)]
        for value in (actual, expected)
    )
    if len(ours) != len(theirs):
        return f"{len(ours)} tensors instead of {len(theirs)}"
    for mine, other in zip(ours, theirs, strict=True):
        if mine.device.type != "npu" and other.numel() and mine.device.type != "cpu":
            return f"a result on {mine.device}"
        tolerance = TOLERANCE.get(other.dtype, 0)
        try:
            torch.testing.assert_close(
                mine.detach().cpu(), other.detach(), rtol=tolerance, atol=tolerance, equal_nan=True
            )
        except AssertionError as error:
            return " ".join(str(error).split())[:160]
    return None


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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--opinfo", type=int, default=0, metavar="N", help="each n-th operator")
    parser.add_argument("--names", nargs="*", default=[], help="only operators of these names")
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--iterations", type=int, default=0)
    parser.add_argument("--imports", action="store_true")
    options = parser.parse_args()
    if options.imports:
        compare_imports()
    if not options.opinfo and not options.iterations:
        return
    from opkit.torch_npu.build import kernel_library
    from opkit.torch_npu.native import load

    load().opkit_npu_kernels(str(kernel_library()).encode())
    if options.iterations:
        iterate(options.iterations)
    if options.opinfo:
        run_operators(options)


def run_operators(options: argparse.Namespace) -> None:
    from torch.testing._internal.common_methods_invocations import op_db

    warnings.simplefilter("ignore")
    begin = time.monotonic()
    passed, failures, native_tests = 0, [], 0
    reasons: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    taken = [op for op in op_db if not options.names or op.name in options.names]
    taken = taken[:: options.opinfo]
    done = 0
    for op in taken:
        if time.monotonic() - begin > options.seconds:
            break
        done += 1
        if NO_REFERENCE.search(op.name):
            continue
        for dtype in TYPES:
            if not op.supports_dtype(dtype, "cpu"):
                continue
            try:
                samples = list(
                    enumerate(itertools.islice(op.sample_inputs("cpu", dtype), options.samples))
                )
            except Exception:  # what PyTorch cannot make for the CPU is no sample
                continue
            for index, sample in samples:
                try:
                    expected = call(op, sample, "cpu")
                except Exception:
                    continue
                torch.npu.reset_fallbacks()
                try:
                    wrong = difference(call(op, sample, "npu"), expected)
                except Exception as error:
                    wrong = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
                rows = torch.npu.kernel_calls()
                natives = sum(row.native for row in rows)
                cpus = sum(row.fallback for row in rows)
                calls["native"] += natives
                calls["cpu"] += cpus
                native_tests += cpus == 0
                for row in rows:
                    for why, count in row.reasons.items():
                        reasons[f"{row.operator}: {why}"] += count
                if wrong is None:
                    passed += 1
                else:
                    failures.append(f"{op.formatted_name} {dtype} sample {index}: {wrong}")
    tests = passed + len(failures)
    for failure in failures:
        print(failure)
    print(f"operators: {done} of {len(op_db)}; samples: {tests}")
    print(f"passed: {100 * passed / max(tests, 1):.2f} %")
    print(f"samples that only kernels served: {100 * native_tests / max(tests, 1):.1f} %")
    all_calls = max(sum(calls.values()), 1)
    print(f"calls that kernels served: {100 * calls['native'] / all_calls:.1f} %")
    for why, count in reasons.most_common(25):
        print(f"  {count:6} on the CPU  {why}")
    if options.json:
        figures = {"samples": tests, "passed": passed, "native": native_tests, "failures": failures}
        options.json.write_text(json.dumps({**figures, "calls": dict(calls)}, indent=1))


if __name__ == "__main__":
    main()
