"""What `opkit compile --target triton` writes, on the GPU of this machine: right, and how fast.

    python benchmarks/triton_target.py [right times] [--graphs N [--first SEED]]

`right` compares the patterns and random programs with NumPy, operator by operator. `times` gives
a pattern's share of the rate at which torch copies a large tensor, counting the bytes of its inputs
and outputs once, and products and attention beside torch's own. Needs torch, triton and a GPU.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from compiler import PATTERNS
from table import print_figure, print_head

from opkit import compiler as oc
from opkit.compiler.codegen.triton.worker import load_module
from opkit.compiler.tracing.fuzzing import random_graph
from opkit.errors import OpkitError

S = oc.TensorSpec
ROWS = 16384


def shrunk(specs: tuple[oc.TensorSpec, ...], rows: Any) -> tuple[oc.TensorSpec, ...]:
    """Return a pattern's inputs with another number of rows."""
    return tuple(
        S(each.name, (rows, *each.shape[1:]), each.dtype) if len(each.shape) > 1 else each
        for each in specs
    )


def right(count: int, first: int) -> None:
    wrong: dict[str, str] = {}
    for name, (function, specs) in PATTERNS.items():
        program = oc.compile(function, *shrunk(specs, oc.dimension("M")), target="triton")
        _verify(name, program, oc.random_arrays(program.graph, {"M": 37}), wrong)
    print_figure("patterns that differ from NumPy", f"{len(wrong)} of {len(PATTERNS)}", "0")
    failed = dict(wrong)
    refused = 0
    wrong.clear()
    for seed in range(first, first + count):
        graph = random_graph(seed, products=seed % 3 == 0)
        try:
            program = oc.compile(graph, target="triton")
        except OpkitError:
            refused += 1
            continue
        _verify(f"seed {seed}", program, oc.random_arrays(graph, {}, seed), wrong)
    print_figure(
        f"random programs, seeds {first} to {first + count - 1}, that differ from NumPy",
        f"{len(wrong)} of {count - refused} ({refused} have no Triton)",
        "0",
    )
    for name, text in {**failed, **wrong}.items():
        print(f"\n{name}: {text}")


def _verify(name: str, program: Any, arrays: list[Any], wrong: dict[str, str]) -> None:
    try:
        found = oc.verify(program, arrays)
    except OpkitError as err:
        wrong[name] = str(err)
        return
    if found is not None:
        wrong[name] = str(found)


def times() -> None:
    import torch
    from triton.testing import do_bench

    def median_us(call: Callable[[], Any]) -> float:
        return 1e3 * float(do_bench(call, warmup=20, rep=60, return_mode="median"))

    print(f"\n{torch.cuda.get_device_name()}, torch {torch.__version__}\n")
    print_head()
    # 512 MiB: many times what the caches hold.
    filled = torch.empty(1 << 28, dtype=torch.float16, device="cuda")
    copy = torch.empty_like(filled)
    rate = 4 * filled.numel() / median_us(lambda: copy.copy_(filled))
    print_figure("torch's copy of 512 MiB", f"{rate / 1e6:.2f} TB/s", "")
    shares = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (function, specs) in PATTERNS.items():
            call, tensors = _loaded(Path(folder), function, shrunk(specs, ROWS))
            moved = sum(each.numel() * each.element_size() for each in tensors)
            results = call(*tensors)
            for each in results if isinstance(results, tuple) else (results,):
                moved += each.numel() * each.element_size()
            taken = median_us(lambda call=call, tensors=tensors: call(*tensors))  # type: ignore[misc]
            shares.append(moved / taken / rate)
            print_figure(name, f"{shares[-1]:.0%} of the copy's rate", f"{taken:.1f} us")
        print_figure("median of the patterns", f"{statistics.median(shares):.0%}", "80 %")
        for name, (function, specs, own) in _beside_torch().items():
            call, tensors = _loaded(Path(folder), function, specs)
            taken, of_torch = (
                median_us(lambda each=each, tensors=tensors: each(*tensors))  # type: ignore[misc]
                for each in (call, own)
            )
            print_figure(
                f"{name}, torch's time over it",
                f"{of_torch / taken:.2f}",
                f"0.7 ({taken:.1f} us, torch {of_torch:.1f} us)",
            )


def _loaded(
    folder: Path, function: Callable[..., Any], specs: tuple[oc.TensorSpec, ...]
) -> tuple[Callable[..., Any], list[Any]]:
    import torch

    program = oc.compile(function, *specs, target="triton", name="program")
    module = load_module(folder, program.source)
    tensors = [
        torch.randn(tuple(each.shape), device="cuda").to(getattr(torch, each.dtype))
        for each in specs
    ]
    return module.program, tensors


def _beside_torch() -> dict[str, tuple[Any, tuple[oc.TensorSpec, ...], Callable[..., Any]]]:
    import torch
    from torch.nn import functional

    half = "float16"
    square = (S("x", (4096, 4096), half), S("y", (4096, 4096), half))
    heads = tuple(S(name, (1, 32, 4096, 128), half) for name in "qkv")
    single = (S("x", (2048, 2048), "float32"), S("y", (2048, 2048), "float32"))
    return {
        "product of 4096 cubed, float16": (lambda x, y: x @ y, square, torch.matmul),
        "the same, y transposed": (
            lambda x, y: x @ y.T,
            square,
            lambda x, y: torch.matmul(x, y.T),
        ),
        "the same, with bias and GELU": (
            lambda x, y, b: (x @ y + b).apply("gelu", approximate="tanh"),
            (*square, S("b", (4096,), half)),
            lambda x, y, b: functional.gelu(torch.addmm(b, x, y), approximate="tanh"),
        ),
        "product of 2048 cubed, float32": (lambda x, y: x @ y, single, torch.matmul),
        "attention, 32 heads of 4096 x 128": (
            lambda q, k, v: q.apply("attention", k, v),
            heads,
            functional.scaled_dot_product_attention,
        ),
        "the same, causal": (
            lambda q, k, v: q.apply("attention", k, v, causal=True),
            heads,
            lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("parts", nargs="*", choices=["right", "times", []])
    parser.add_argument("--graphs", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    if "right" in options.parts or not options.parts:
        print_head()
        right(options.graphs, options.first)
    if "times" in options.parts or not options.parts:
        times()


if __name__ == "__main__":
    main()
