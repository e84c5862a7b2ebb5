"""What a layer of BERT-base becomes, its modelled time, and what compiling and calling it cost.

    python benchmarks/graph.py [layer eager llama compile call int8 resnet linear mixed]
        [--small] [--batch 1]

Modelled times are of the configured chip, all launches together; "apart" is a launch for each node
that does work. Host times are of this machine and move with its load.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from graph_layers import BertLayer, LlamaLayer, Resnet, llama_operations
from table import print_figure, print_head
from torch import nn

from opkit import graph
from opkit.chips import DEFAULT_CHIP, find_chip
from opkit.graph.backend import opkit, watching
from opkit.profiling import Profile

WIDTH, HEADS, INNER, LENGTH = 768, 12, 3072, 128
WIDE = 4096


def _model(small: bool) -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    scale = 8 if small else 1
    model = BertLayer(WIDTH // scale, HEADS // min(scale, 4), INNER // scale).eval()
    return model, torch.randn(1, LENGTH, WIDTH // scale)


def layer(small: bool) -> None:
    """Kernels of a layer, modelled time fused and apart, share of the nodes compiled."""
    model, x = _model(small)
    for training in (False, True):
        label = "forward and backward" if training else "forward"
        found = graph.explain(model.half(), (x.half(),), training=training)
        kernels = sum(len(segment.kernels) for segment in found.segments)
        fused = sum(segment.fused_us for segment in found.segments)
        apart = sum(segment.apart_us or 0.0 for segment in found.segments)
        goal = "<= 10" if not training else "-"
        print_figure(f"kernels of a BERT-base layer, {label}", str(kernels), goal)
        print_figure(
            f"modelled time fused / apart, {label}",
            f"{fused / apart:.2f} ({fused:.1f} us, {apart:.1f} us)",
            "<= 0.5" if not training else "-",
        )
        print_figure(f"nodes compiled, {label}", f"{found.share:.0%}", ">= 95 %")
        memory = [(segment.arena_bytes, segment.unshared_bytes) for segment in found.segments]
        shared, alone = (sum(each) for each in zip(*memory, strict=True))
        print_figure(f"memory in between, shared / not, {label}", f"{shared / alone:.2f}", "-")


def eager(small: bool) -> None:
    """The layer's forward in float16 on npu, compiled beside eager: all launches of the model."""
    model, x = _model(small)
    model, x = model.half().to("npu"), x.half().to("npu")
    compiled = torch.compile(model)
    times, counts = [], []
    with torch.no_grad():
        for call in (compiled, model):
            call(x)  # compiles, and loads what there is to load
            with Profile(event_limit=0) as session:
                call(x)
            times.append(sum(timeline.task_us for timeline in session.timelines))
            counts.append(len(session.timelines))
    print_figure(
        "modelled time fused / eager on npu, forward",
        f"{times[0] / times[1]:.2f} ({times[0]:.1f} us in {counts[0]} kernels, {times[1]:.1f} us in"
        f" {counts[1]})",
        "<= 0.5",
    )


def llama(small: bool) -> None:
    """A layer in Llama's shape in float16: its operations a second over the cubes' peak."""
    torch.manual_seed(0)
    scale = 8 if small else 1
    width, heads, inner, length = 4096 // scale, 32 // scale, 11008 // scale, 512
    model = LlamaLayer(width, heads, inner).half().eval()
    angles = torch.randn(length, width // heads)
    inputs = (torch.randn(1, length, width).half(), angles.cos().half(), angles.sin().half())
    found = graph.explain(model, inputs, one_by_one=False)
    us = sum(segment.fused_us for segment in found.segments)
    chip = find_chip(DEFAULT_CHIP)
    cycles = llama_operations(width, inner, length) / (
        2 * chip.count("cores.aic") * chip.number("timing.cube.macs_per_cycle.fp16")
    )
    kernels = sum(len(segment.kernels) for segment in found.segments)
    print_figure(
        f"a Llama layer of {width}, {heads} heads, 1 x {length}: share of the cubes' peak",
        f"{cycles / chip.number('clock.mhz') / us:.0%} ({us:.0f} us in {kernels} kernels)",
        ">= 45 %, goal 60 %",
    )


_CHILD = """
import sys, time
sys.path.insert(0, {folder!r})
from graph import _model, opkit, torch, watching
model, x = _model({small})
compiled = torch.compile(model.half(), backend=opkit)
begin = time.perf_counter()
with watching() as graphs, torch.no_grad():
    compiled(x.half())
print(time.perf_counter() - begin, sum(graph.seconds for graph in graphs))
"""


def compile_time(small: bool) -> None:
    """The first call in a fresh process: with an empty cache, and again."""
    text = _CHILD.format(folder=str(Path(__file__).resolve().parent), small=small)
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "XDG_CACHE_HOME": cache, "OPKIT_NPU": "0"}
        for label, goal in (("cold", "<= 20 s"), ("from the cache", "<= 1 s")):
            run = subprocess.run(
                [sys.executable, "-c", text],
                env=environment,
                check=True,
                capture_output=True,
                text=True,
            )
            whole, ours = (float(word) for word in run.stdout.split())
            print_figure(
                f"compile of a BERT-base layer, {label}",
                f"{whole:.1f} s, {ours:.1f} s of it without torch's tracing",
                goal,
            )


def call(small: bool) -> None:
    """What a compiled call costs above its kernels: a program of one kernel on few elements."""
    x = torch.ones(32)
    compiled = torch.compile(lambda x: x * 2 + 1, backend=opkit)
    with watching() as graphs, torch.no_grad():
        compiled(x)
        (segment,) = graphs[0].segments
        result = torch.empty(32)
        addresses = ([x.data_ptr()], [result.data_ptr()], [], 0)

        def bare() -> None:
            segment.runner.run(*addresses)

        times = {
            name: _median_us(f) for name, f in (("call", lambda: compiled(x)), ("kernel", bare))
        }
    print_figure(
        "binding cost of a compiled call",
        f"{times['call'] - times['kernel']:.0f} us above the launch of {times['kernel']:.0f} us",
        "<= 30 us",
    )


def _median_us(function: Any) -> float:
    taken = []
    for _ in range(400):
        begin = time.perf_counter()
        function()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken[50:]) * 1e6


def _in_precisions(
    label: str,
    model: nn.Module,
    inputs: Sequence[torch.Tensor],
    calibration: list[tuple[torch.Tensor]],
    *,
    weight_only: bool = False,
) -> None:
    """Print a model's modelled time and its error over all inputs in each precision. The article's
    gain of int8, like its table, is over float32."""
    x = inputs[0]
    with torch.no_grad():
        wanted = torch.cat([model(each) for each in inputs]).numpy()
    ways: dict[str, dict[str, Any]] = {
        "float32": {"precision": "float32"},
        "float16": {"precision": "float16"},
        "int8": {"precision": "int8", "calibration": calibration},
    }
    if weight_only:
        only = graph.Quantisation(weight_only=True)
        ways["int8 weights"] = {"precision": "int8", "quantisation": only}
    times: dict[str, float] = {}
    for name, settings in ways.items():
        context = graph.build(model, (x,), **settings).create_context()
        with Profile(event_limit=0) as session:
            results = [context.run([x.numpy()])[0]]
        results += [context.run([each.numpy()])[0] for each in inputs[1:]]
        found = np.concatenate(results)
        times[name] = sum(timeline.task_us for timeline in session.timelines)
        error = abs(found - wanted).mean() / abs(wanted).mean()
        bases = [base for base in ("float32", "float16") if base in times]
        gains = [f"{times[base] / times[name]:.2f}" for base in bases]
        print_figure(
            f"{label} in {name}",
            f"{times[name]:.1f} us in {len(session.timelines)} kernels, gain over"
            f" {' / '.join(bases)} {' / '.join(gains)}, mean error {error:.2%}",
            ">= 1.8, <= 1 %" if name == "int8" else "-",
        )


def resnet(small: bool) -> None:
    """A model in resnet50's shape, trained a little on images of tiled patterns and noise, and
    calibrated with other images than the one that it is run on."""
    torch.manual_seed(0)
    model = Resnet((1, 1, 1, 1), 32, 10) if small else Resnet(classes=10)
    patterns = torch.randn(10, 3, 8, 8)

    def images(side: int, kinds: torch.Tensor) -> torch.Tensor:
        repeated = patterns[kinds].tile(1, 1, side // 8, side // 8)
        return repeated + torch.randn(repeated.shape)

    steps = torch.optim.SGD(model.parameters(), lr=0.005, momentum=0.9)
    for _ in range(20):
        kinds = torch.randint(10, (16,))
        steps.zero_grad()
        nn.functional.cross_entropy(model(images(64, kinds)), kinds).backward()
        steps.step()
    # So few steps leave the norms' running values behind the weights.
    for norm in model.modules():
        if isinstance(norm, nn.BatchNorm2d):
            norm.reset_running_stats()
            norm.momentum = None
    with torch.no_grad():
        for _ in range(4):
            model(images(64, torch.randint(10, (16,))))
    side = 64 if small else 224
    # Every kind is seen: ranges of those that are not would be cut off.
    calibration = [(images(side, torch.full((BATCH,), kind)),) for kind in range(10)]
    # The error of a single image says little: some have several times that of others.
    inputs = [images(side, torch.full((BATCH,), kind)) for kind in range(10)]
    label = f"resnet50's shape, {BATCH} x 3 x {side} x {side},"
    _in_precisions(label, model.eval(), inputs, calibration)


def int8(small: bool) -> None:
    """The layer in float32, float16, int8, and with int8 weights."""
    model, x = _model(small)
    x = torch.randn(BATCH, *x.shape[1:])
    _in_precisions("a BERT-base layer", model, [x], [(x,)], weight_only=True)


_ARTICLE = {
    "float32": "1, 1, 0",
    "bfloat16": "0.58, 0.50, < 0.1 %",
    "float16": "0.45, 0.50, 0.2-0.5 %",
    "int8": "0.32, 0.25, 0.5-1.0 %",
}
"""Latency and memory over float32's, and precision lost, of BERT-Large: article 002, at 3.3."""


def mixed(small: bool) -> None:
    """A layer of BERT-Large in each precision, beside the article's table of the whole model."""
    torch.manual_seed(0)
    scale = 8 if small else 1
    model = BertLayer(1024 // scale, 16 // min(scale, 4), 4096 // scale).eval()
    x = torch.randn(BATCH, LENGTH, 1024 // scale)
    with torch.no_grad():
        wanted = model(x).numpy()
    base: tuple[float, int] | None = None
    for name, article in (*_ARTICLE.items(), ("auto", "-")):
        settings: dict[str, Any] = {"precision": name}
        if name in ("int8", "auto"):
            settings["calibration"] = [(x,)]
        if name == "auto":
            settings["max_error"] = 0.01
        built = graph.build(model, (x,), **settings)
        with Profile(event_limit=0) as session:
            (found,) = built.create_context().run([x.numpy()])
        us = sum(timeline.task_us for timeline in session.timelines)
        size = sum(array.nbytes for array in built.constants)
        base = base or (us, size)
        lost = np.linalg.norm(found - wanted) / np.linalg.norm(wanted)
        print_figure(
            f"a BERT-Large layer in {name}: time and weights over float32's, error",
            f"{us / base[0]:.2f} ({us:.0f} us), {size / base[1]:.2f}, {lost:.2%}",
            article,
        )
    print(
        "\nThe article's rows are of a whole model on hardware, its loss that of a task's metric;"
        " these are of one layer in\nthe model of the chip, the error the norm of the difference."
        " bfloat16 and float16 are as fast\nas each other here. int8 halves weights and products:"
        " so few rows leave launches, softmax and\nGELU as they were."
    )


def linear(small: bool) -> None:
    """One wide linear layer, as models of language have: what int8 gains where products are all."""
    torch.manual_seed(0)
    width = WIDE // (8 if small else 1)
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)).eval()
    x = torch.randn(256, width)
    times = {}
    for name, calibration in (("float16", ()), ("int8", [(x,)])):
        built = graph.build(model, (x,), precision=name, calibration=calibration)
        with Profile(event_limit=0) as session:
            built.create_context().run([x.numpy()])
        # The last launch is the second product; int8's left side comes rounded from the first.
        times[name] = session.timelines[-1].task_us
    halves, eighths = times["float16"], times["int8"]
    print_figure(
        f"a product of 256 rows by {width} x {width}: int8's gain",
        f"{halves / eighths:.2f} ({halves:.1f} us, {eighths:.1f} us)",
        "-",
    )


PARTS = {"layer": layer, "eager": eager, "llama": llama, "compile": compile_time, "call": call}
PARTS |= {"int8": int8, "resnet": resnet, "linear": linear, "mixed": mixed}
BATCH = 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="all without any")
    parser.add_argument("--small", action="store_true", help="an eighth of the width")
    parser.add_argument(
        "--batch", type=int, default=1, help="of int8 and mixed: texts of 128 words"
    )
    options = parser.parse_args()
    global BATCH
    BATCH = options.batch
    print(f"{DEFAULT_CHIP}, torch {torch.__version__}\n")
    print_head()
    for name in options.parts or PARTS:
        torch._dynamo.reset()
        PARTS[name](options.small)


if __name__ == "__main__":
    main()
