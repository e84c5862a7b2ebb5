"""Every row of the two articles' tables: the article's figure, opkit's, and how opkit's was had.

    python benchmarks/articles.py [operators rmsnorm memory cache sparse precision cores mixes] [--mixes N] [--write]

`modelled` is a time of the default chip's timing model, `counted` follows from bytes and blocks alone, `measured` was
timed on this machine. What cannot be compared says why. `--write` puts the page into docs/articles.md.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "examples" / "articles"))

import operators as article_operators  # noqa: E402

from opkit import compiler as oc  # noqa: E402
from opkit.bfloat16 import bfloat16_to_float32, to_bfloat16  # noqa: E402
from opkit.chips import DEFAULT_CHIP, find_chip  # noqa: E402
from opkit.emulator import library_path  # noqa: E402
from opkit.optimisers import (  # noqa: E402
    IncrementalKVCacheManager,
    SparseMatMulOptimizer,
    random_mix,
)
from opkit.optimisers.native import native  # noqa: E402
from opkit.profiling import Profile, Timeline  # noqa: E402

CHIP = find_chip(DEFAULT_CHIP)
GENERATOR = np.random.default_rng(0)


@dataclass(frozen=True)
class Row:
    """One figure of an article beside ours."""

    what: str
    article: str
    ours: str
    how: str


@dataclass(frozen=True)
class Table:
    """One table of an article."""

    title: str
    rows: list[Row]
    note: str = ""

    def __str__(self) -> str:
        lines = [f"## {self.title}", "", "| row | article | opkit | how |", "|---|---|---|---|"]
        lines += [f"| {row.what} | {row.article} | {row.ours} | {row.how} |" for row in self.rows]
        return "\n".join([*lines, *(["", self.note] if self.note else []), ""])


def timed(function: Callable[[], object]) -> list[Timeline]:
    """Return the timelines of a call's launches."""
    with Profile(event_limit=0) as session:
        function()
    return list(session.timelines)


def total_us(function: Callable[[], object]) -> float:
    """Return the modelled time of all of a call's launches."""
    return sum(timeline.task_us for timeline in timed(function))


def operators() -> list[Table]:
    article = {
        "VectorAdd": (1200, 400),
        "MatMul": (15600, 5200),
        "Conv2D": (8900, 2800),
        "LayerNorm": (1500, 600),
        "GELU": (85, 28),
    }
    rows = []
    for operator in article_operators.OPERATORS:
        arrays = operator.make(GENERATOR)
        times = [total_us(lambda k=k, o=operator, a=arrays: o.run(k, a)) for k in operator.kernels]
        naive, optimised = article[operator.name]
        rows.append(
            Row(
                f"{operator.name} {operator.size}",
                f"{naive} / {optimised} us = {operator.article_gain:.1f} x",
                f"{times[0]:.1f} / {times[-1]:.1f} us = {times[0] / times[-1]:.1f} x",
                "modelled",
            )
        )
    note = (
        "The article's times are of an Ascend 310P and of shapes that it names in part: the convolution here has 64"
        " filters of 3 x 3. Kernels: `examples/articles`."
    )
    return [Table("001: operators, naive / optimised", rows, note)]


def _reference_rms_norm(tokens: int) -> float:
    """The model's own sequence of operators, each a kernel: to float32, power, mean, add, rsqrt, two products."""
    specs = (oc.TensorSpec("x", (tokens, 4096), "float16"),)
    wide = oc.TensorSpec("x", (tokens, 4096), "float32")
    narrow = oc.TensorSpec("x", (tokens, 1), "float32")
    half = oc.TensorSpec("w", (4096,), "float16")
    steps: tuple[tuple[Callable[..., Any], tuple[oc.TensorSpec, ...]], ...] = (
        (lambda x: x.astype("float32"), specs),
        (lambda x: x * x, (wide,)),
        (lambda x: x.mean(axis=-1, keepdims=True), (wide,)),
        (lambda x: x + 1e-6, (narrow,)),
        (lambda x: x.apply("rsqrt"), (narrow,)),
        (lambda x, r: x * r, (wide, oc.TensorSpec("r", (tokens, 1), "float32"))),
        (lambda x: x.astype("float16"), (wide,)),
        (lambda x, w: x * w, (*specs, half)),
    )
    total = 0.0
    for function, given in steps:
        program = oc.compile(function, *given)
        total += total_us(lambda p=program: p(*oc.random_arrays(p.graph, {})))
    return total


def rms_norm() -> list[Table]:
    rows = []
    for tokens in (1, 2048):
        operator = article_operators.rms_norm_operator(tokens)
        arrays = operator.make(GENERATOR)
        times = {
            "operators one by one": _reference_rms_norm(tokens),
            **{
                k: total_us(lambda k=k, o=operator, a=arrays: o.run(k, a)) for k in operator.kernels
            },
        }
        published = (("112 us, 8900", "48 us, 20800", "35 us, 28500"), ("-", "-", "-"))[tokens > 1]
        held = (4096 * (2 + 4 + 4 + 4 + 2 + 2), 4096 * 2 * 2, 4096 * 2 * 2)
        for (name, taken), figure, bytes_held in zip(times.items(), published, held, strict=True):
            rows.append(
                Row(
                    f"{name}, {tokens} x 4096",
                    figure + (" tokens/s" if tokens == 1 else ""),
                    f"{taken:.1f} us, {tokens / taken * 1e6:.0f} tokens/s, {bytes_held * tokens / 1024:.0f} KiB of activations",
                    "modelled; bytes counted",
                )
            )
    rows.append(
        Row(
            "memory",
            "1.1, 0.7, 0.6 MB",
            "above",
            "another quantity: the article does not say what it holds",
        )
    )
    rows.append(Row("power", "45, 32, 28 W", "-", "not comparable: the model knows no power"))
    return [Table("001: RMSNorm of Llama-7B in three versions", rows)]


def _allocation_us(is_cached: bool) -> float:
    library = ctypes.CDLL(str(library_path()))
    library.opkit_memory_allocate.restype = ctypes.c_void_p
    library.opkit_memory_allocate.argtypes = [ctypes.c_int32, ctypes.c_uint64, ctypes.c_uint64]
    library.opkit_memory_free.argtypes = [ctypes.c_void_p]
    times = []
    for _ in range(300):
        if not is_cached:
            library.opkit_memory_release_cache(0)
        begin = time.perf_counter()
        pointer = library.opkit_memory_allocate(0, 4 << 20, 0)
        times.append(time.perf_counter() - begin)
        library.opkit_memory_free(pointer)
    return float(np.median(times)) * 1e6


def _choice_us() -> float:
    library = ctypes.CDLL(str(library_path()))
    library.opkit_registry_candidates.restype = ctypes.c_size_t
    rows = (ctypes.c_void_p * 32)()
    number = library.opkit_registry_id(b"aten::add.out")
    times = []
    for _ in range(2000):
        begin = time.perf_counter()
        library.opkit_registry_candidates(number, 0, None, rows, ctypes.c_size_t(32))
        times.append(time.perf_counter() - begin)
    return float(np.median(times)) * 1e6


def _hidden_share() -> float:
    """Copies of 2.9 MB, 120 us each by the modelled engines, beside kernels of 150 us."""
    cache = IncrementalKVCacheManager(40, 128, initial_tokens=8192, block_tokens=256)
    rows = np.zeros((256, 40, 128), np.float16)
    sequence = cache.add_sequence()
    before = native().copy_pipeline_statistics()
    for position in range(0, 8192, 256):
        native().note_compute(150.0)
        cache.update_kv_cache(sequence, rows, rows, position)
    after = native().copy_pipeline_statistics()
    return (after["hidden_us"] - before["hidden_us"]) / (after["copy_us"] - before["copy_us"])


def memory() -> list[Table]:
    uncached, cached = _allocation_us(False), _allocation_us(True)
    guess = "modelled, with a guessed speed of the copy engines (td/mm/memory_manager.h)"
    rows = [
        Row(
            "allocation, 4 MiB",
            "45.2 -> 8.7 us, 80.8 % less",
            f"{uncached:.1f} -> {cached:.1f} us, {1 - cached / uncached:.1%} less",
            "measured: without and with cached blocks",
        ),
        Row(
            "dispatch",
            "12.3 -> 3.1 us",
            f"{_choice_us():.1f} us",
            "measured: the registry's choice, called by ctypes; there is no first version to compare with",
        ),
        Row("copies hidden", "120 -> < 5 us, 95.8 %", f"{_hidden_share():.1%}", guess),
        Row(
            "ResNet50, latency",
            "156.7 -> 89.3 ms",
            "-",
            "not comparable: the article states neither batch nor data type",
        ),
        Row("ResNet50, throughput", "638 -> 1120 FPS", "-", "not comparable, as above"),
        Row(
            "copies between host and device",
            "87 % fewer",
            "100 % fewer",
            "counted: the emulated device reads the host's memory where it lies; a chip on a bus does not",
        ),
        Row(
            "throughput by dynamic choice",
            "+ 23 %",
            "-",
            "not comparable: the article does not name the operators",
        ),
    ]
    return [Table("002: memory and dispatch", rows)]


def _step_us(tokens: int, width: int = 5120) -> float:
    """Keys and values of so many tokens and the query of one: products with weights."""
    specs = (
        oc.TensorSpec("x", (tokens, width), "float16"),
        oc.TensorSpec("w", (width, width), "float16"),
    )
    program = oc.compile(lambda x, w: x @ w, *specs)
    arrays = oc.random_arrays(program.graph, {})
    return total_us(lambda: program(*arrays))


def cache() -> list[Table]:
    heads, width, length = 40, 128, 2048
    manager = IncrementalKVCacheManager(heads, width, initial_tokens=length, block_tokens=16)
    rows_of = GENERATOR.normal(size=(length, heads, width)).astype(np.float16)
    sequence = manager.add_sequence()
    manager.update_kv_cache(sequence, rows_of[:-1], rows_of[:-1], 0)
    before = manager.statistics
    manager.update_kv_cache(sequence, rows_of[-1:], rows_of[-1:], length - 1)
    copied = manager.statistics.new_bytes - before.new_bytes + manager.statistics.moved_bytes
    attended = total_us(lambda: manager.attention([sequence], rows_of[:1]))
    one, all_tokens = _step_us(1), _step_us(length)
    with_cache = 3 * one + attended
    without = one + 2 * all_tokens + attended
    lengths = np.random.default_rng(1).integers(64, 2048, 400)
    budget = 16 * 2048 // 16
    taken = np.cumsum((lengths + 15) // 16)
    fitting = int(np.searchsorted(taken, budget, side="right"))
    used = float(((lengths[:16] + 15) // 16).sum()) / budget
    rows = [
        Row(
            "step of one layer at 2048 positions",
            "58 -> 32 ms (all layers)",
            f"{without:.0f} -> {with_cache:.0f} us, {1 - with_cache / without:.1%} less",
            "modelled: keys and values of all tokens computed again / of the new one; projections of 5120 and attention over the cache",
        ),
        Row(
            "bytes copied in that step", "new rows only", f"{copied} = 2 x 40 x 128 x 2", "counted"
        ),
        Row("the attention in it", "-", f"{attended:.1f} us", "modelled, 40 heads of 128"),
        Row(
            "memory of 16 requests",
            "18.7 -> 12.3 GB, 34.2 % less",
            f"{1 - used:.1%} less",
            "counted: blocks of 16 tokens against 2048 for each; lengths even from 64 to 2047. The article's figure has weights in it",
        ),
        Row(
            "requests in the memory of 16 x 2048",
            "16 -> 28",
            f"16 -> {fitting}",
            "counted, as above",
        ),
        Row(
            "first token",
            "245 -> 198 ms",
            "-",
            "not comparable: it needs the whole model; prompts that share blocks skip those tokens",
        ),
    ]
    return [Table("002: cache of keys and values, LLaMA-13B", rows)]


def _in_blocks(density: float, size: int = 2048) -> np.ndarray:
    is_there = np.zeros((size // 64) ** 2, bool)
    is_there[GENERATOR.permutation(is_there.size)[: round(density * is_there.size)]] = True
    blocks = np.kron(is_there.reshape(size // 64, -1), np.ones((64, 64), bool))
    return np.where(blocks, GENERATOR.normal(size=(size, size)) + 4, 0).astype(np.float16)


def _scattered(density: float, size: int = 2048) -> np.ndarray:
    is_there = GENERATOR.random((size, size)) < density
    return np.where(is_there, GENERATOR.normal(size=(size, size)) + 4, 0).astype(np.float16)


def sparse() -> list[Table]:
    optimizer = SparseMatMulOptimizer()
    b = GENERATOR.normal(size=(2048, 2048)).astype(np.float16)
    whole = timed(lambda: optimizer.sparse_matmul(_in_blocks(1.0), b, strategy="dense"))[0]
    square = (
        oc.TensorSpec("x", (2048, 2048), "float16"),
        oc.TensorSpec("y", (2048, 2048), "float16"),
    )
    program = oc.compile(lambda x, y: x @ y, *square)
    compiled_us = total_us(lambda: program(*oc.random_arrays(program.graph, {})))
    rows, lower = [], []
    for density, gain in ((0.05, 4.43), (0.10, 3.14), (0.20, 2.05), (0.30, 1.61)):
        a = _in_blocks(density)
        optimizer.costs(a, 2048)  # launched once a shape, before what is timed
        launched = timed(lambda a=a: optimizer.sparse_matmul(a, b))
        taken = sum(timeline.task_us for timeline in launched)
        rows.append(
            Row(
                f"{density:.0%}, blocks of 64",
                f"{gain} x",
                f"{whole.task_us / taken:.2f} x ({optimizer.choose(a, 2048)}, {taken:.1f} us; cores {_core_us(launched[0]):.1f} us)",
                "modelled",
            )
        )
        spread = _scattered(density)
        chosen = optimizer.choose(spread, 2048)
        direct = optimizer.costs(spread, 2048).direct_us
        lower.append(
            Row(
                f"{density:.0%}, scattered",
                f"{gain} x",
                f"{1.0 if chosen == 'dense' else whole.task_us / direct:.2f} x ({chosen}); directly {whole.task_us / direct:.2f} x",
                "modelled",
            )
        )
    costs = optimizer.costs(_scattered(0.01), 2048)
    thin = timed(lambda: optimizer.sparse_matmul(_scattered(0.01), b, strategy="direct"))[0]
    pipes = {pipe.pipe: pipe.mean_us for pipe in thin.pipes()}
    launch = whole.task_us - _core_us(whole)
    note = (
        f"Dense: {whole.task_us:.1f} us (the compiler's product: {compiled_us:.1f} us), of which {launch:.1f} us are the launch on all cores. That launch and the first read of"
        f" b from HBM ({2048 * 2048 * 2 / CHIP.number('timing.hbm.bytes_per_second') * 1e6:.1f} us) are in every product, so at 5 %"
        f" {whole.task_us / (launch + 2048 * 2048 * 2 / CHIP.number('timing.hbm.bytes_per_second') * 1e6 + 1863 / 1800):.1f} x is the most that any"
        f" kernel could gain. Scattered elements fill every block, and one by one they go through the vector cores: at 1 % MTE2"
        f" reads rows of b for {pipes['MTE2']:.0f} us of {_core_us(thin):.0f}, V adds for {pipes['V']:.0f}. The model's thresholds for this"
        f" shape: direct below {costs.thresholds.direct_below:.1%} of the elements, blocks below {costs.thresholds.blocks_below:.0%} of the blocks;"
        " the article's are 10 and 30 % of the elements."
    )
    return [Table("002: sparse products, 2048 x 2048 float16, over dense", rows + lower, note)]


def _core_us(timeline: Timeline) -> float:
    return max(core.cycles for core in timeline.cores) / CHIP.number("clock.mhz")


def precision() -> list[Table]:
    m, k, n = 512, 1024, 4096
    x, w = GENERATOR.normal(size=(m, k)) * 0.5, GENERATOR.normal(size=(k, n)) * 0.05
    exact = x @ w
    published = {
        "float32": ("base", "base"),
        "bfloat16": ("-42 %", "< 0.1 %"),
        "float16": ("-55 %", "0.2-0.5 %"),
        "int8": ("-68 %", "0.5-1.0 %"),
    }
    times, rows = {}, []
    for dtype, (faster, loss) in published.items():
        specs = (oc.TensorSpec("x", (m, k), dtype), oc.TensorSpec("w", (k, n), dtype))
        program = oc.compile(lambda x, w: x @ w, *specs)
        (left, x_scale), (right, w_scale) = _converted(x, dtype), _converted(w, dtype)
        results: list[Any] = []
        times[dtype] = total_us(lambda p=program, a=left, b=right, r=results: r.append(p(a, b)))
        result = results[0][0] if isinstance(results[0], (tuple, list)) else results[0]
        wide = _widened(np.asarray(result), dtype) * x_scale * w_scale
        error = float(np.linalg.norm(wide - exact) / np.linalg.norm(exact))
        rows.append(
            Row(
                f"{dtype}, {m} x {k} x {n}",
                f"{faster}, loss {loss}",
                f"{times[dtype]:.1f} us ({times[dtype] / times['float32'] - 1:+.0%}), {left.itemsize / 4 - 1:+.0%} memory, error {error:.3%}",
                "modelled: one product of BERT-Large's size; error of the product, not of the model",
            )
        )
    return [
        Table(
            "002: precision",
            rows,
            "The article's loss is of a task; opkit has no BERT and no data to measure one.",
        )
    ]


def _converted(values: np.ndarray, dtype: str) -> tuple[np.ndarray, float]:
    if dtype == "int8":
        scale = float(np.abs(values).max() / 127)
        return np.rint(values / scale).astype(np.int8), scale
    if dtype == "bfloat16":
        return to_bfloat16(values), 1.0
    return values.astype(dtype), 1.0


def _widened(result: np.ndarray, dtype: str) -> np.ndarray:
    if dtype == "bfloat16" and result.dtype == np.uint16:
        return bfloat16_to_float32(result).astype(np.float64)
    return result.astype(np.float64)


def cores() -> list[Table]:
    counts = np.minimum((np.random.default_rng(3).pareto(1.6, 2048) * 24).astype(int) + 4, 1024)
    # Heavy rows come together, as they do in sorted vocabularies and banded matrices.
    counts = counts[np.argsort(counts + np.random.default_rng(4).normal(size=2048) * 400)]
    a = np.zeros((2048, 2048), np.float16)
    for row, count in enumerate(counts):
        a[row, GENERATOR.permutation(2048)[:count]] = 1
    b = GENERATOR.normal(size=(2048, 512)).astype(np.float16)
    optimizer = SparseMatMulOptimizer()
    rows = []
    for number, even, clever in ((8, 89, 96), (16, 82, 94), (32, 73, 91), (64, 61, 87)):
        shares = []
        for is_even in (True, False):
            (timeline,) = timed(lambda e=is_even, c=number: optimizer.direct_on(a, b, c, is_even=e))
            cycles = [core.cycles for core in timeline.cores]
            shares.append(float(np.mean(cycles) / max(cycles)))
        rows.append(
            Row(
                f"{number} cores",
                f"{even} / {clever} %",
                f"{shares[0]:.0%} / {shares[1]:.0%}",
                "modelled: mean time of the blocks over the longest"
                + ("; 64 blocks on the chip's 48 vector cores" if number == 64 else ""),
            )
        )
    return [
        Table(
            "002: cores, even / clever",
            rows,
            f"Rows of a sparse 2048 x 2048 matrix with {counts.min()} to {counts.max()} elements, times 2048 x 512, by `sparse_direct`.",
        )
    ]


def mixes(count: int) -> list[Table]:
    begin = time.perf_counter()
    wrong = refused = shared = moved = evicted = 0
    for seed in range(count):
        report = random_mix(seed)
        if report.wrong:
            wrong += 1
            print(f"seed {seed}: {report.wrong}", file=sys.stderr)
        shared += report.shared_tokens
        moved += report.moved_bytes
        evicted += report.evicted_blocks
        refused += report.refused
    seconds = time.perf_counter() - begin
    ours = f"{wrong} differ, leak or lose a block ({shared} tokens shared, {moved} bytes copied on write, {evicted} blocks evicted, {refused} updates refused)"
    return [
        Table(
            "Paged cache against a plain one",
            [
                Row(
                    f"{count} random mixes of requests",
                    "-",
                    ours,
                    f"compared step by step; {seconds:.0f} s",
                )
            ],
        )
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*")
    parser.add_argument("--mixes", type=int, default=10_000)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    parts: dict[str, Callable[[], Sequence[Table]]] = {
        "operators": operators,
        "rmsnorm": rms_norm,
        "memory": memory,
        "cache": cache,
        "sparse": sparse,
        "precision": precision,
        "cores": cores,
        "mixes": lambda: mixes(given.mixes),
    }
    page = [
        f"# The articles' tables\n\nOf the {CHIP.name}, by `python benchmarks/articles.py --write`.\n"
    ]
    print(page[0], flush=True)
    for name in given.what or parts:
        for table in parts[name]():
            page.append(str(table))
            print(table, flush=True)
    if given.write:
        # Between marks, which docs/generate.py copies into the Chinese page.
        page = [page[0], "<!-- tables: begin -->", *page[1:], "<!-- tables: end -->\n"]
        (ROOT / "docs" / "articles.md").write_text("\n".join(page), encoding="utf-8")


if __name__ == "__main__":
    main()
