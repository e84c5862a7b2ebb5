"""Products of matrices on cube cores, under every check."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkit import compiler as oc
from opkit.chips import DEFAULT_CHIP, find_chip
from opkit.compiler import TensorSpec as Spec
from opkit.compiler.codegen.cube import ProductShape, cut_product
from opkit.profiling import Profile

Run = Callable[..., tuple[np.ndarray, ...]]

H = "float16"
M = oc.dimension("M")

CASES: dict[str, tuple[Callable[..., Any], tuple[oc.TensorSpec, ...]]] = {
    "a bias and an activation": (
        lambda x, y, b: (x @ y + b).apply("gelu", approximate="tanh"),
        (Spec("x", (300, 70), H), Spec("y", (70, 530), H), Spec("b", (530,), H)),
    ),
    "a bias of 32 bits, a single row": (
        lambda x, y, b: (x @ y.T + b).apply("silu").astype(H),
        (
            Spec("x", (2, 1, 300), "bfloat16"),
            Spec("y", (131, 300), "bfloat16"),
            Spec("b", (1, 131), "float32"),
        ),
    ),
    "a choice by a comparison of the sums": (
        lambda x, y, b: (x @ y + b > 0.5).apply("where", x @ y + b, 0.1 * (x @ y + b)),
        (Spec("x", (300, 70), H), Spec("y", (70, 530), H), Spec("b", (530,), H)),
    ),
    "a residual, both matrices transposed": (
        lambda x, y, r: (x.T @ y.T) * 0.5 + r,
        (Spec("x", (128, 177), H), Spec("y", (200, 128), H), Spec("r", (177, 200), H)),
    ),
    "batches, one number a row": (
        lambda x, y, s: (x @ y) * s,
        (Spec("x", (3, 65, 70), H), Spec("y", (3, 70, 130), H), Spec("s", (3, 65, 1), H)),
    ),
    "sums dequantised": (
        lambda x, y, s: (x @ y).astype("float32") * s,
        (Spec("x", (100, 128), "int8"), Spec("y", (128, 64), "int8"), Spec("s", (64,), "float32")),
    ),
    "two results of one product": (
        lambda x, y: ((x @ y).apply("relu"), (x @ y) * 2.0),
        (Spec("x", (33, 300), "bfloat16"), Spec("y", (300, 70), "bfloat16")),
    ),
    "a single row by a single column": (
        lambda x, y: (x @ y).apply("relu"),
        (Spec("x", (1, 130), H), Spec("y", (130, 1), H)),
    ),
    "a product of 32-bit fractions and its activation": (
        lambda x, y, b: (x @ y + b).apply("silu"),
        (
            Spec("x", (100, 128), "float32"),
            Spec("y", (128, 64), "float32"),
            Spec("b", (64,), "float32"),
        ),
    ),
    "a transposed matrix for all batches": (
        lambda x, y: x @ y.T,
        (Spec("x", (3, 100, 70), "float32"), Spec("y", (130, 70), "float32")),
    ),
    "whole numbers": (
        lambda x, y: x @ y,
        (Spec("x", (33, 300), "int8"), Spec("y", (300, 65), "int8")),
    ),
    "whole numbers along K, longer than a chunk": (
        lambda x, y: x @ y.T,
        (Spec("x", (33, 1130), "int8"), Spec("y", (65, 1130), "int8")),
    ),
    "sums along K dequantised": (
        lambda x, y, s: ((x @ y.T).astype("float32") * s).apply("relu").astype(H),
        (Spec("x", (1, 200), "int8"), Spec("y", (130, 200), "int8"), Spec("s", (130,), "float32")),
    ),
    "a left matrix by columns, alone": (
        lambda x, y: x.T @ y,
        (Spec("x", (90, 33), H), Spec("y", (90, 530), H)),
    ),
    "attention": (
        lambda q, k, v: (q @ k.transpose(0, 2, 1) * 0.125).apply("softmax") @ v,
        tuple(Spec(name, (4, 96, 64), H) for name in "qkv"),
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CASES)
def test_a_product_gives_what_numpy_gives_and_is_clean(name: str, run_program: Run) -> None:
    function, specs = CASES[name]
    run_program(function, *specs, limit=None if "float32" not in specs[0].dtype else 2e-5)


@pytest.mark.parametrize(
    "name", [name for name in CASES if "alone" not in name and CASES[name][1][0].dtype == H][:3]
)
def test_what_follows_a_product_element_by_element_is_part_of_its_kernel(name: str) -> None:
    function, specs = CASES[name]
    (group,) = oc.compile(function, *specs).stages.fused.groups
    assert group.kind == "matmul" and len(group.nodes) > 1


def test_sums_begin_with_a_bias_that_more_follows() -> None:
    specs = (Spec("x", (64, 64), H), Spec("y", (64, 64), H))

    def bias(function: Callable[..., Any], shape: tuple[int, ...], dtype: str = H) -> str | None:
        products = oc.compile(function, *specs, Spec("b", shape, dtype)).stages.products
        return next(iter(products.values())).bias

    def activated(x: Any, y: Any, b: Any) -> Any:
        return (x @ y + b).apply("relu")

    assert bias(activated, (64,)) == bias(activated, (1, 64)) == "b"
    assert bias(activated, (64,), "float32") == "b"
    # Neither numbers of rows, nor of all elements, nor what the bias table does not convert.
    assert bias(activated, (64, 1)) is None and bias(activated, (64, 64)) is None
    assert bias(activated, (64,), "bfloat16") is None
    # The product, or the sum, is read as it is, too.
    assert bias(lambda x, y, b: (x @ y + b).apply("relu") * (x @ y), (64,)) is None
    assert bias(lambda x, y, b: ((x @ y + b).apply("relu"), x @ y + b), (64,)) is None


def test_vector_cores_are_done_soon_after_the_last_product() -> None:
    """The first part of the last block was half of it, and they added the bias: 5,400 cycles."""
    specs = (Spec("x", (1024, 512), H), Spec("y", (512, 1024), H), Spec("b", (1024,), H))
    kernel = oc.compile(lambda x, y, b: (x @ y + b).apply("gelu", approximate="tanh"), *specs)
    with Profile(event_limit=0) as session:
        kernel(*oc.random_arrays(kernel.graph, {}))
    (timeline,) = session.timelines
    ends = {
        kind: max(core.end_cycle for core in timeline.cores if core.kind == kind)
        for kind in ("aic", "aiv")
    }
    assert ends["aiv"] - ends["aic"] < 4000


def test_a_part_leaves_l0c_while_its_last_product_is_written() -> None:
    """It waited for the whole of that product: unit flags tell block of L0C by block."""
    kernel = oc.compile(lambda x, y: x @ y, Spec("x", (128, 256), H), Spec("y", (256, 128), H))
    with Profile() as session:
        kernel(*oc.random_arrays(kernel.graph, {}))
    (timeline,) = session.timelines

    def spans(pipe: str) -> list[tuple[float, float]]:
        events = [e for e in timeline.events if timeline.lines[e.line].pipe == pipe and e.core == 0]
        return sorted((event.start_cycle, event.end_cycle) for event in events)

    assert spans("FIX")[-1][0] < spans("M")[-1][1]


def test_whole_numbers_along_k_need_no_matmul_object() -> None:
    specs = (Spec("x", (64, 64), "int8"), Spec("y", (64, 64), "int8"))
    ways: dict[bool, Callable[..., Any]] = {False: lambda x, y: x @ y.T, True: lambda x, y: x @ y}
    for uses_object, function in ways.items():
        (product,) = oc.compile(function, *specs).stages.products.values()
        assert product.uses_object == uses_object


def test_one_kernel_serves_every_number_of_rows(run_program: Run) -> None:
    for rows in (1, 40, 300):
        run_program(
            lambda x, y, b: (x @ y + b).apply("relu"),
            *(Spec("x", (M, 128), H), Spec("y", (128, 96), H), Spec("b", (96,), H)),
            M=rows,
        )


def test_a_product_that_is_read_as_it_is_keeps_a_kernel_of_its_own() -> None:
    specs = (Spec("x", (33, 64), H), Spec("y", (64, 48), H))
    groups = oc.compile(lambda x, y: ((x @ y).apply("relu"), x @ y), *specs).stages.fused.groups
    assert [group.kind for group in groups] == ["matmul", "vector"]
    assert "read as it is" in groups[1].why


def test_a_reduction_of_a_product_says_why_it_is_apart() -> None:
    specs = (Spec("x", (33, 64), H), Spec("y", (64, 48), H))
    groups = oc.compile(lambda x, y: (x @ y).sum(axis=-1), *specs).stages.fused.groups
    assert [group.kind for group in groups if group.kind != "view"] == ["matmul", "vector"]
    assert "no whole row" in groups[1].why


def test_rows_further_apart_than_an_instruction_can_say_are_copied_one_by_one(
    run_program: Run,
) -> None:
    run_program(lambda x, y: x @ y, Spec("x", (3, 16), H), Spec("y", (16, 65_600), H))


@pytest.mark.parametrize("shape", [(1, 16, 16), (300, 530, 70), (2048, 2048, 2048), (4096, 48, 90)])
def test_blocks_cover_a_result_once_and_fit_the_cube(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    chip = find_chip(DEFAULT_CHIP)
    cut = cut_product(ProductShape(2, m, n, k, False, False), chip)
    assert 4 * cut.most_rows * cut.most_columns <= chip.count("memory.l0c_bytes")
    hits = np.zeros((2, m, n), np.int8)
    for core in range(cut.cores):
        for index in cut.blocks_of(core):
            batch, row, column, rows, columns = cut.block(index)
            hits[batch, row : row + rows, column : column + columns] += 1
    assert (hits == 1).all()


@pytest.mark.parametrize(
    ("shape", "cores"),
    [((16, 48, 16), 1), ((64, 128, 64), 1), ((4096, 4096, 4096), 24)],
    ids=["tiny", "small", "large"],
)
def test_a_product_takes_as_many_cores_as_it_is_worth(
    shape: tuple[int, int, int], cores: int
) -> None:
    """Each core adds to the launch: eight for 64 x 128 took 4.8 us, and one takes 2.8."""
    m, n, k = shape
    assert cut_product(ProductShape(1, m, n, k, True, True), find_chip(DEFAULT_CHIP)).cores == cores


def test_cores_that_share_rows_begin_at_both_ends_of_a_long_k() -> None:
    """When all began at its first elements they read the same lines of memory in step: 45.3 us."""
    kernel = oc.compile(lambda x, y: x @ y, Spec("x", (512, 8192), H), Spec("y", (8192, 512), H))
    arrays = [np.ones(shape, np.float16) for shape in ((512, 8192), (8192, 512))]
    with Profile(event_limit=0) as session:
        result = kernel(*arrays)
    np.testing.assert_array_equal(result, np.float16(8192))
    assert sum(timeline.task_us for timeline in session.timelines) < 44


def test_a_finding_in_a_product_names_the_program() -> None:
    kernel = oc.compile(lambda x, y: x @ y, Spec("x", (64, 64), H), Spec("y", (64, 64), H))
    (text,) = (each.source(with_lines=True) for each in kernel.stages.products.values())
    assert f'"{Path(__file__)}"' in text.split("Mmad(")[0].rsplit("#line", 1)[1]
