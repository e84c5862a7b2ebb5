"""A call of a generated torch operator at one element, beside a bare Python custom operator.

    python benchmarks/torch_calls.py

Needs torch. The bare operator, made by torch.library.custom_op, computes nothing: it returns an
empty tensor, and so does its backward. The shortest of many short rounds counts, so that what else
the machine does is left out.
"""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from table import print_figure, print_head

_ROOT = Path(__file__).resolve().parent.parent
_CALLS, _ROUNDS = 20, 2000


@torch.library.custom_op("opkit_benchmark::bare", mutates_args=())
def bare(x: torch.Tensor) -> torch.Tensor:
    """Compute nothing."""
    return torch.empty_like(x)


@torch.library.custom_op("opkit_benchmark::bare_grad", mutates_args=())
def bare_grad(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Compute nothing."""
    return torch.empty_like(x)


def _backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
    return bare_grad(grad, ctx.saved_tensors[0])


def _save(ctx: Any, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:
    ctx.save_for_backward(*inputs)


bare.register_autograd(_backward, setup_context=_save)


def microseconds(call: Callable[[], object]) -> float:
    """Return what a call takes, from the fastest round."""
    best = float("inf")
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        for _ in range(_CALLS):
            call()
        best = min(best, time.perf_counter() - start)
    return best / _CALLS * 1e6


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "gelu_custom")
        source = _ROOT / "examples" / "gelu_custom"
        shutil.copytree(source, project, ignore=shutil.ignore_patterns("build"))
        command = [sys.executable, "-m", "opkit", "build", "-q", str(project)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        sys.path.insert(0, str(project))
        operators = importlib.import_module("gelu_custom._torch").operators
        torch.set_num_threads(1)
        x = torch.randn(1, dtype=torch.float16)
        upstream, leaf = torch.ones_like(x), x.clone().requires_grad_()

        def both_ways(operator: Callable[..., Any]) -> Callable[[], None]:
            def call() -> None:
                leaf.grad = None
                operator(leaf).backward(upstream)

            return call

        ours = operators.gelu_custom
        print_head()
        with torch.no_grad():
            pair = microseconds(lambda: ours(x)), microseconds(lambda: bare(x))
        print_figure("forward", f"{pair[0]:.1f} us (bare {pair[1]:.1f} us)", "<= 10 us")
        pair = microseconds(both_ways(ours)), microseconds(both_ways(bare))
        print_figure(
            "forward and backward", f"{pair[0]:.1f} us (bare {pair[1]:.1f} us)", "<= 60 us"
        )


if __name__ == "__main__":
    main()
