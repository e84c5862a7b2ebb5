"""The target `triton`: the same programs as Triton kernels, by Triton's interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkit import compiler as oc
from opkit.compiler import TensorSpec as Spec
from opkit.compiler.codegen.triton.worker import load_module
from opkit.compiler.ir.graph import GraphError
from opkit.compiler.tracing.fuzzing import random_graph
from opkit.errors import OpkitError, SetupError
from opkit.triton.front import triton_ir

H, B, F = "float16", "bfloat16", "float32"
M = oc.dimension("M")

CASES: dict[str, tuple[Callable[..., Any], tuple[oc.TensorSpec, ...]]] = {
    "rows normalised, of any number": (
        lambda x, w, b: x.apply("layer_norm", w, b).apply("silu"),
        (Spec("x", (M, 130), H), Spec("w", (130,), H), Spec("b", (130,), H)),
    ),
    "rows of any length": (lambda x: x.apply("softmax"), (Spec("x", (3, M), H),)),
    "columns reduced, brain floats": (
        lambda x: (x - x.mean(axis=0, keepdims=True)).max(axis=0),
        (Spec("x", (70, 33), B),),
    ),
    "rows too long to hold": (
        lambda x: (x.max(axis=-1), x.min(axis=-1), x - x.sum(axis=-1, keepdims=True) * 0.01),
        (Spec("x", (2, 9001), F),),
    ),
    "a product and what follows it": (
        lambda x, y, b: (x @ y.T + b).apply("gelu"),
        (Spec("x", (3, 40, 70), F), Spec("y", (50, 70), F), Spec("b", (50,), F)),
    ),
    "products in batches, of brain floats": (
        lambda x, y: x.apply("matmul", y, transpose_a=True),
        (Spec("x", (2, 3, 37, 20), B), Spec("y", (3, 37, 17), B)),
    ),
    "products of whole numbers": (
        lambda x, y: (x @ y).astype(F) * 0.5,
        (Spec("x", (40, 70), "int8"), Spec("y", (70, 30), "int8")),
    ),
    "attention with a mask": (
        lambda q, k, v, m: q.apply("attention", k, v, m, scale=0.3),
        (
            *(Spec("q", (2, 50, 24), H), Spec("k", (2, 70, 24), H), Spec("v", (2, 70, 40), H)),
            Spec("m", (50, 70), F),
        ),
    ),
    "attention, rows before heads": (
        lambda q, k, v: q.apply("attention", k, v, turned="qkvy", causal=True),
        tuple(Spec(name, (2, 50, 3, 16), B) for name in "qkv"),
    ),
    "whole numbers and truths": (
        lambda x, y: (x * y + 7, (x > y).apply("where", x, y), x & 15, (x > y).max(axis=0)),
        (Spec("x", (5, 300), "int8"), Spec("y", (300,), "int8")),
    ),
    "types": (
        lambda x: ((x * 100).astype("int8"), (x * 50).astype("uint8"), x.astype("bool")),
        (Spec("x", (7, 33), F),),
    ),
    "whole parts": (
        lambda x: (x * 3.5).apply("round") + (x * 5).apply("trunc") + x.apply("floor"),
        (Spec("x", (7, 33), F),),
    ),
    "elements moved": (
        lambda x: x.builder.apply(
            "concat", x.transpose(1, 0)[2:, ::3], x.transpose(1, 0)[:2, ::3] * 2.0, axis=0
        ).apply("pad", widths=((1, 2), (0, 3)), value=float("-inf")),
        (Spec("x", (12, 9), F),),
    ),
    "a lookup": (
        lambda t, i: t.apply("take", i) * 2.0,
        (Spec("t", (40, 16), H), Spec("i", (3, 7), "int32")),
    ),
    "order": (
        lambda x: (
            *(x.apply("sort", axis=0), x.apply("argsort", descending=True, count=5)),
            *(x.topk(3)[0], x.apply("argmax"), x.apply("argmin", axis=0)),
        ),
        (Spec("x", (9, 30), F),),
    ),
    "sums along an axis": (
        lambda x, y: (x.apply("cumsum", axis=1), y.sum(axis=-1)),
        (Spec("x", (9, 30), F), Spec("y", (9, M), "int32")),
    ),
    "float64": (
        lambda x: x * 0.1 + x.apply("exp") - x.max(axis=-1, keepdims=True),
        (Spec("x", (4, M), "float64"),),
    ),
    "int64": (lambda x: x * x - 3, (Spec("x", (4, 5), "int64"),)),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", CASES)
def test_a_program_gives_what_numpy_gives(name: str) -> None:
    function, specs = CASES[name]
    program = oc.compile(function, *specs, target="triton", name="program")
    arrays = oc.random_arrays(program.graph, {"M": 2100 if name == "rows of any length" else 19})
    if name == "a lookup":
        arrays[1] = np.abs(arrays[1]) % 40
    assert oc.verify(program, arrays) is None


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_random_programs_give_what_numpy_gives(seed: int) -> None:
    graph = random_graph(seed, products=seed % 3 == 0)
    program = oc.compile(graph, target="triton")
    assert oc.verify(program, oc.random_arrays(graph, {}, seed)) is None


@pytest.mark.torch
def test_what_is_no_number_is_the_largest_and_the_smallest_of_its_row() -> None:
    program = oc.compile(
        lambda x: (x.max(axis=-1), x.min(axis=-1), x.apply("maximum", 0.0)),
        Spec("x", (2, 40), F),
        target="triton",
    )
    x = np.arange(80, dtype=np.float32).reshape(2, 40)
    x[1, 3] = np.nan
    largest, smallest, above = program(x)
    np.testing.assert_array_equal(largest, [39, np.nan])
    np.testing.assert_array_equal(smallest, [0, np.nan])
    np.testing.assert_array_equal(above, x)


@pytest.mark.torch
@pytest.mark.slow
def test_the_file_runs_by_itself(tmp_path: Path) -> None:
    program = oc.compile(
        lambda x, w: (x @ w) * x.builder.attribute("scale", "float", 2.0),
        *(Spec("x", (M, 24), F), Spec("w", (24, 8), F)),
        target="triton",
        name="scaled",
    )
    (tmp_path / "scaled.py").write_text(program.source)
    script = (
        "import torch, scaled\n"
        "x, w = torch.arange(72.0).reshape(3, 24), torch.ones(24, 8)\n"
        "print(scaled.scaled(x, w).sum().item(), scaled.scaled(x, w, scale=3.0).sum().item())\n"
        "try:\n    scaled.scaled(x.half(), w)\n"
        "except ValueError as err:\n    print(err)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    total = float(np.arange(72).sum() * 8)
    assert done.stdout.splitlines() == [
        f"{2 * total} {3 * total}",
        "x is torch.float16[3, 24], expected torch.float32[3, 24]",
    ], done.stderr


def test_names_that_python_or_the_kernel_takes_get_others() -> None:
    program = oc.compile(
        lambda a, b, c: a * b + c,
        *(Spec("lambda", (4, 5)), Spec("rows", (4, 5)), Spec("tl", (4, 5))),
        target="triton",
        name="class",
    )
    compile(program.source, "class.py", "exec")


@pytest.mark.torch
def test_tensors_may_have_the_names_of_a_kernels_own_values() -> None:
    program = oc.compile(
        lambda query, key, value: query.apply("attention", key, value),
        *(Spec(name, (2, 40, 16), F) for name in ("query", "key", "value")),
        target="triton",
    )
    assert oc.verify(program, oc.random_arrays(program.graph, {})) is None


@pytest.mark.torch
@pytest.mark.parametrize("name", CASES)
def test_tritons_front_end_takes_every_kernel(name: str, tmp_path: Path) -> None:
    # Its interpreter runs what it refuses: values that change their shape in a loop, for one.
    function, specs = CASES[name]
    program = oc.compile(function, *specs, target="triton", name="program")
    module = load_module(tmp_path, program.source)
    tensors = program.fused.graph.tensors
    for each in program.functions.values():
        kernel = getattr(module, f"{each.name.removeprefix('run_')}_kernel", None)
        if kernel is None:
            continue
        kernel = kernel.fn if len(each.schedules) > 1 else kernel
        for schedule in each.schedules:
            types = [
                *(_pointer(tensors[tensor].dtype) for tensor in (*each.inputs, *each.outputs)),
                *("i32" for _ in each.sizes),
                *("fp32" for _ in each.scalars),
                *("constexpr" for _ in schedule.constants),
            ]
            signature = dict(zip(kernel.arg_names, types, strict=True))
            constants = {
                (kernel.arg_names.index(key),): value for key, value in schedule.constants.items()
            }
            assert "tt.store" in triton_ir(kernel, signature, constants)
    # A GPU takes 65,535 programs along the other axes.
    assert "tl.program_id(1)" not in program.source


def _pointer(dtype: str) -> str:
    if dtype.startswith("uint"):
        return f"*u{dtype[4:]}"
    named = {"bool": "i1", "bfloat16": "bf16"}
    return "*" + named.get(dtype, dtype.replace("float", "fp").replace("int", "i"))


def test_what_has_no_triton_is_an_error_at_its_line() -> None:
    with pytest.raises(GraphError, match=r"test_triton\.py:\d+: random_uniform has no Triton"):
        oc.compile(lambda x: x.apply("dropout", 3, p=0.5), Spec("x", (4, 5), F), target="triton")
    with pytest.raises(GraphError, match="does not multiply int32 by int32"):
        oc.compile(
            lambda x, y: x @ y,
            *(Spec("x", (4, 5), "int32"), Spec("y", (5, 4), "int32")),
            target="triton",
        )


@pytest.mark.torch
def test_an_index_beyond_its_table_is_an_error() -> None:
    program = oc.compile(
        lambda t, i: t.apply("take", i),
        *(Spec("t", (4, 2), F), Spec("i", (3,), "int32")),
        target="triton",
    )
    table = np.arange(8, dtype=np.float32).reshape(4, 2)
    np.testing.assert_array_equal(program(table, np.array([0, -1, 3], np.int32)), table[[0, 3, 3]])
    with pytest.raises(OpkitError, match="failed: IndexError"):
        program(table, np.array([0, 4, 1], np.int32))


@pytest.mark.torch
def test_a_failing_function_is_named_and_the_next_call_runs() -> None:
    from opkit.compiler.codegen.triton.process import TritonProcess

    source = (
        "DEVICE = 'cpu'\ndef bad(x):\n    return x[9]\n"
        "def good(x):\n    print('noise')\n    return x\n"
    )
    x = np.ones(3, np.float32)
    with pytest.raises(OpkitError, match=r"bad failed: IndexError.*\nline 3: return x\[9\]"):
        TritonProcess.shared().call(source, "bad", [(x, F)], [])
    (result,) = TritonProcess.shared().call(source, "good", [(x, F)], [])
    np.testing.assert_array_equal(result, x)


@pytest.mark.torch
@pytest.mark.slow
def test_a_process_that_ended_is_begun_again() -> None:
    from opkit.compiler.codegen.triton.process import TritonProcess

    x = np.ones(3, np.float32)
    source = "import os\nDEVICE = 'cpu'\ndef end(x):\n    os._exit(3)\ndef same(x):\n    return x\n"
    with pytest.raises(OpkitError, match="ended while in end"):
        TritonProcess.shared().call(source, "end", [(x, F)], [])
    (result,) = TritonProcess.shared().call(source, "same", [(x, F)], [])
    np.testing.assert_array_equal(result, x)


def test_without_triton_the_file_is_written_and_running_it_says_what_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from opkit.compiler.codegen.triton import process

    program = oc.compile(lambda x: x + 1.0, Spec("x", (4,), F), target="triton")
    assert "@triton.jit" in program.source
    monkeypatch.setattr(process.TritonProcess, "_shared", None)
    monkeypatch.setattr(process.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SetupError, match="by torch, which is not installed"):
        program(np.ones(4, np.float32))
