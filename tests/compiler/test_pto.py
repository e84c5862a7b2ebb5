"""Tile programs by the names of the PTO instruction set."""

from __future__ import annotations

import numpy as np
import pytest

from opkit import compiler as oc
from opkit.compiler import TensorSpec as Spec
from opkit.compiler.frontends import pto
from opkit.errors import UsageError
from opkit.sanitizer import Check


def softmax() -> pto.Program:
    p = pto.Program("softmax")
    x = p.input("x", (64, 100), "float32")
    y = p.output("y", (64, 100), "float32")
    with p.for_loop(4) as i:
        tile = p.load(x, (16 * i, 0), (16, 100))
        weights = p.rowexpandexpdif(tile, p.rowmax(tile))
        p.barrier()
        p.store(y, p.TROWEXPANDDIV(weights, p.trowsum(weights)), (16 * i, 0))
    return p


def product() -> pto.Program:
    """A product whose sums run along K in a register."""
    p = pto.Program("product")
    a, b = p.input("a", (32, 64), "float16"), p.input("b", (64, 48), "float16")
    y = p.output("y", (32, 48), "float16")
    sums = p.expands(0.0, (32, 48), "float16")
    with p.for_loop(0, 64, 32) as k:
        p.matmul_acc(sums, p.load(a, (0, k), (32, 32)), p.load(b, (k, 0), (32, 48)), into=sums)
        p.sync("M", "FIX")
        with p.if_cond(k >= 32):
            p.store(y, p.relu(sums))
    return p


def check(p: pto.Program, *arrays: np.ndarray, limit: float) -> np.ndarray:
    with Check(()) as checks:
        (result,) = (p.compile()(*arrays),)
    assert not checks.findings
    (expected,) = p.run(*arrays).values()
    np.testing.assert_allclose(result, expected, rtol=limit, atol=limit)
    return expected


def test_a_loop_over_tiles_gives_what_numpy_gives() -> None:
    x = np.random.default_rng(0).normal(size=(64, 100)).astype(np.float32)
    expected = check(softmax(), x, limit=1e-6)
    np.testing.assert_allclose(expected.sum(axis=1), 1.0)


def test_sums_along_a_loop_are_written_into_one_register() -> None:
    random = np.random.default_rng(0)
    a, b = (random.normal(size=s).astype(np.float16) for s in ((32, 64), (64, 48)))
    expected = check(product(), a, b, limit=2e-2)
    np.testing.assert_allclose(expected, np.maximum(a.astype(float) @ b.astype(float), 0))


def test_a_program_prints_as_text_with_its_loops() -> None:
    text = str(softmax())
    assert "pto.for %i0 = 0 to 4 step 1 {" in text
    assert (
        "%t0 = pto.tload @x {offsets = [16 * %i0, 0], shape = [16, 100]} : 16x100xfloat32" in text
    )
    assert "pto.barrier" in text
    assert "pto.if %i0 >= 32 {" in str(product())


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("adds", (2.0,), lambda x: x + 2),
        ("cmps", (0.0, "gt"), lambda x: x > 0),
        ("trans", (), lambda x: x.T),
        ("colsum", (), lambda x: x.sum(axis=0, keepdims=True)),
        ("extract", ((1, 2), (3, 4)), lambda x: x[1:4, 2:6]),
        ("fillpad", ((8, 8), 1.5), lambda x: np.pad(x, ((0, 3), (0, 1)), constant_values=1.5)),
        ("quant", (10.0, 3, "int8"), lambda x: np.clip(np.rint(x * 10) + 3, -128, 127)),
    ],
)
def test_instructions_compute_what_the_specification_says(name, settings, expected) -> None:
    x = np.random.default_rng(1).normal(size=(5, 7)).astype(np.float32)
    p = pto.Program("one")
    tile = p.op(name, p.load(p.input("x", x.shape)), *settings)
    p.store(p.output("y", tile.shape, tile.dtype), tile)
    (got,) = p.run(x).values()
    np.testing.assert_allclose(got, expected(x), rtol=1e-6)
    np.testing.assert_allclose(p.compile()(x), got, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p, t: p.rowsumm(t), 'there is no instruction "rowsumm"'),
        (lambda p, t: p.img2col(t), "TIMG2COL is an instruction of the specification"),
        (lambda p, t: p.add(t), "TADD takes 2 tiles"),
        (lambda p, t: p.add(t, p.expands(0.0, (3, 3))), "do not broadcast"),
        (lambda p, t: p.adds(t, 1.0, into=p.expands(0.0, (3, 3))), "into is"),
        (lambda p, t: p.if_cond(True).__enter__(), "no condition of indices"),
    ],
)
def test_a_mistake_is_an_error_at_its_line(call, message) -> None:
    p = pto.Program("wrong")
    tile = p.load(p.input("x", (4, 4)))
    with pytest.raises(UsageError, match=message) as raised:
        call(p, tile)
    assert raised.value.location is None or raised.value.location.file == __file__


def test_an_output_with_a_gap_is_an_error() -> None:
    p = pto.Program("gap")
    x, y = p.input("x", (8, 8)), p.output("y", (8, 8))
    p.store(y, p.load(x, (0, 0), (4, 8)))
    with pytest.raises(UsageError, match="nothing writes"):
        p.graph()


def norm(x, w, r):
    scaled = x.apply("rms_norm", w)
    return (scaled > r).apply("where", scaled, 0.5) @ x.T


def test_a_graph_becomes_a_tile_program_with_the_same_results() -> None:
    specs = (Spec("x", (12, 40)), Spec("w", (40,)), Spec("r", (12, 1)))
    graph = oc.trace(norm, specs)
    tiles = pto.tile_program(graph)
    for name in (
        "pto.trowsum",
        "pto.trowexpandmul",
        "pto.tcolexpandmul",
        "pto.tsel",
        "pto.tmatmul",
    ):
        assert name in str(tiles)
    x, w, r = oc.random_arrays(graph, {})
    wanted = oc.run_graph(graph, {"x": x, "w": w, "r": r})[graph.outputs[0][1]]
    (got,) = tiles.run(x, w.reshape(1, 40), r).values()
    np.testing.assert_allclose(got, wanted, rtol=1e-9)


def test_what_is_no_tile_operation_says_so_at_its_line() -> None:
    with pytest.raises(UsageError, match="floor is no tile operation") as raised:
        pto.tile_program(oc.trace(lambda x: x.apply("floor"), (Spec("x", (4, 4)),)))
    assert raised.value.location.file == __file__
    with pytest.raises(UsageError, match="matrices of fixed size"):
        pto.tile_program(oc.trace(lambda x: x * 2.0, (Spec("x", (2, 4, 4)),)))
