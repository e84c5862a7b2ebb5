"""Loops: as many kernels as the body has, however often it runs; NumPy's results, with tails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opkit import pypto


def array(*shape: int) -> Any:
    return np.random.default_rng(shape[0]).normal(size=shape).astype(np.float32)


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def kernels(program: Any) -> int:
    assert program.last.runs_in == "kernels", program.last.reason
    return len(program.last.compiled.stages.fused.groups)


@pypto.jit
def by_rows(x, out, tile):
    rows, columns = x.shape
    for i in pypto.loop(pypto.ceildiv(rows, tile), name="rows", idx_name="i"):
        there = (rows - i * tile).min(tile)
        part = pypto.view(x, [tile, columns], [i * tile, 0], valid_shape=[there, columns])
        powers = pypto.exp(part - pypto.amax(part, -1, True))
        pypto.assemble(powers / pypto.sum(powers, -1, True), [i * tile, 0], out)


@pypto.jit
def by_columns(x, out, tile):
    rows, columns = x.shape
    for j in pypto.loop(pypto.ceildiv(columns, tile)):
        there = (columns - j * tile).min(tile)
        part = pypto.view(x, [rows, tile], [0, j * tile], valid_shape=[rows, there])
        # The number differs from round to round.
        largest = pypto.amax(part, 0, True) * (j + 1)
        pypto.assemble(part * 2 + largest, [0, j * tile], out)


@pypto.jit
def product(a, b, out, tile):
    rows, inner = a.shape
    columns = b.shape[1]
    for i in pypto.loop(0, rows, tile):
        for j in pypto.loop(0, columns, tile):
            total = pypto.zeros([min(tile, rows - i), min(tile, columns - j)])
            for k in pypto.loop(0, inner, tile):
                total += pypto.matmul(a[i : i + tile, k : k + tile], b[k : k + tile, j : j + tile])
            pypto.assemble(total, [i, j], out)


@pypto.jit
def length_of_columns(x, out, tile):
    total = pypto.zeros([1, x.shape[1]])
    for i in pypto.loop(pypto.ceildiv(x.shape[0], tile)):
        there = (x.shape[0] - i * tile).min(tile)
        part = pypto.view(x, [tile, x.shape[1]], [i * tile, 0], valid_shape=[there, x.shape[1]])
        total[:] = total + pypto.sum(part * part, 0, True)
        if pypto.is_loop_end(i):
            out[:] = pypto.sqrt(total)


@pypto.jit
def attention(q, k, v, out, tile):
    """One head at a time, keys in blocks, the maximum and the sum as they go."""
    heads, rows, width = q.shape
    length = k.shape[1]
    for h in pypto.loop(heads):
        query = pypto.reshape(pypto.view(q, [1, rows, width], [h, 0, 0]), [rows, width])
        for j in pypto.loop(pypto.ceildiv(length, tile)):
            keys, values = (x[h, j * tile : (j + 1) * tile] for x in (k, v))
            scores = pypto.matmul(query, keys, b_trans=True) * width**-0.5
            largest = pypto.amax(scores, -1, True)
            if pypto.is_loop_begin(j):
                top = largest
                powers = pypto.exp(scores - top)
                total = pypto.sum(powers, -1, True)
                result = pypto.matmul(powers, values)
            else:
                now = pypto.maximum(top, largest)
                less, powers = pypto.exp(top - now), pypto.exp(scores - now)
                total = total * less + pypto.sum(powers, -1, True)
                result = result * less + pypto.matmul(powers, values)
                top = now
            if pypto.is_loop_end(j):
                pypto.assemble(pypto.reshape(result / total, [1, rows, width]), [h, 0, 0], out)


def run(program: Any, expected: Any, *arguments: Any) -> int:
    """Run a program that writes to an argument of its last ones; return how many kernels it is."""
    out = np.full(expected.shape, np.nan, np.float32)
    program(*arguments[:-1], out, arguments[-1])
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)
    return kernels(program)


def columns_of(x: Any, tile: int) -> Any:
    parts = [x[:, at : at + tile] for at in range(0, x.shape[1], tile)]
    return np.concatenate([p * 2 + p.max(0) * (j + 1) for j, p in enumerate(parts)], 1)


CASES = {
    "rows": lambda n: (by_rows, softmax(array(n, 40)), array(n, 40), 16),
    "columns": lambda n: (by_columns, columns_of(array(12, n), 16), array(12, n), 16),
    "sums": lambda n: (
        *(length_of_columns, np.sqrt((array(n, 40) ** 2).sum(0, keepdims=True))),
        *(array(n, 40), 16),
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("tail", [0, 1, 13])
@pytest.mark.parametrize("case", CASES)
def test_more_rounds_are_not_more_kernels(case: str, tail: int) -> None:
    counts = {run(*CASES[case](16 * rounds + tail)) for rounds in (5, 40)}
    assert len(counts) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "columns", "inner"), [(128, 160, 128), (144, 130, 200)])
def test_a_sum_of_products_is_one_product(rows: int, columns: int, inner: int) -> None:
    a, b = array(rows, inner), array(inner, columns)
    few = run(product, a @ b, a, b, 32)
    a, b = array(rows + 128, inner), array(inner, columns)
    assert run(product, a @ b, a, b, 32) == few


@pytest.mark.slow
@pytest.mark.parametrize("length", [64, 72])
def test_heads_are_computed_at_once(length: int) -> None:
    counts = set()
    for heads in (4, 9):
        q, k, v = array(heads, 24, 32), array(heads, length, 32), array(heads, length, 32) + 1
        expected = softmax(q @ k.transpose(0, 2, 1) / np.sqrt(32)) @ v
        counts.add(run(attention, expected, q, k, v, 32))
    assert len(counts) == 1


def test_tiles_that_overlap_or_leave_gaps() -> None:
    @pypto.jit
    def program(x, out, step):
        for i in pypto.loop(8):
            window = pypto.view(x, [12, 16], [i * step, 0])
            pypto.assemble(pypto.sum(window, 0, True), [i, 0], out)

    for step in (5, 12, 15):
        x = array(12 + 7 * step, 16)
        expected = np.stack([x[i * step : i * step + 12].sum(0) for i in range(8)])
        run(program, expected, x, step)


def test_rounds_write_several_tiles_and_skip_some() -> None:
    @pypto.jit
    def program(x, out, tile):
        for i in pypto.loop(x.shape[0] // tile):
            part = pypto.view(x, [tile, 16], [i * tile, 0])
            pypto.assemble(part + 1, [2 * i * tile, 0], out)
            if i != 4:
                pypto.assemble(pypto.exp(part), [(2 * i + 1) * tile, 0], out)

    x = array(96, 16)
    out = np.zeros((192, 16), np.float32)
    program(x, out, 8)
    expected = np.stack([(x + 1).reshape(12, 8, 16), np.exp(x).reshape(12, 8, 16)], 1)
    expected[4, 1] = 0
    np.testing.assert_allclose(out, expected.reshape(192, 16), rtol=1e-5)


def test_what_a_loop_carries_on_stays_in_order() -> None:
    @pypto.jit
    def program(x, out, tile):
        state = pypto.zeros([tile, 16])
        for i in pypto.loop(x.shape[0] // tile):
            state = pypto.tanh(state + pypto.view(x, [tile, 16], [i * tile, 0]))
            pypto.assemble(state, [i * tile, 0], out)

    x = array(48, 16)
    state, expected = np.zeros((8, 16), np.float32), np.zeros_like(x)
    for i in range(6):
        state = expected[8 * i : 8 * i + 8] = np.tanh(state + x[8 * i : 8 * i + 8])
    run(program, expected, x, 8)


def test_rounds_that_read_what_earlier_ones_wrote() -> None:
    @pypto.frontend.jit
    def program(x, out, tile):
        out[0:tile] = x[0:tile]
        for i in pypto.loop(1, x.shape[0] // tile):
            before = out[(i - 1) * tile : i * tile]
            out[i * tile : (i + 1) * tile] = before * 0.5 + x[i * tile : (i + 1) * tile]

    x = array(64, 16)
    expected = x.copy()
    for i in range(1, 8):
        expected[8 * i : 8 * i + 8] += 0.5 * expected[8 * i - 8 : 8 * i]
    run(program, expected, x, 8)


def test_what_is_of_many_different_operators_runs_in_numpy_and_says_so() -> None:
    @pypto.jit
    def triangle(x: Any) -> Any:
        # Every round of another shape: there would be a kernel for each.
        total = x[0:1, 0:1]
        for width in range(1, 160):
            total = total + pypto.tanh(x[0:2, 0:width] * 2.0).sum(-1, keepdim=True)[0:1]
        return total

    x = array(2, 160)
    result = triangle(x)
    assert triangle.last.runs_in == "numpy"
    assert "different operators" in triangle.last.reason
    parts = [np.tanh(x[:1, :width] * 2).sum() for width in range(1, 160)]
    np.testing.assert_allclose(result, x[:1, :1] + sum(parts), rtol=1e-5)


def test_rounds_that_hand_on_a_value_are_kernels_however_many_they_are() -> None:
    @pypto.jit
    def decay(x: Any, given: Any) -> Any:
        for _ in range(300):
            x = x * 0.9 + given
        return x

    x, given = array(8, 64), array(9, 64)[:8]
    expected = x.astype(float)
    for _ in range(300):
        expected = expected * 0.9 + given
    np.testing.assert_allclose(decay(x, given), expected, rtol=1e-4, atol=1e-4)
    assert 1 < kernels(decay) < 20
    assert len(decay.last.compiled._alike) <= 4
