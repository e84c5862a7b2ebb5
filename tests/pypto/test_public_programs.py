"""What programs of the public project do: parts of tiles, sizes and elements as numbers, casts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkit import pypto
from opkit.compiler import GraphError


def array(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


# Parts of tiles


def test_what_is_computed_of_a_view_sees_its_valid_shape_only() -> None:
    @pypto.jit
    def by_tiles(x, out):
        for i in pypto.loop(pypto.ceildiv(x.shape[0], 4)):
            there = (x.shape[0] - i * 4).min(4)
            tile = pypto.view(x, [4, 32], [i * 4, 0], valid_shape=[there, 32])
            powers = pypto.exp(tile - pypto.amax(tile, 0, True))
            assert powers.shape == (4, 32) and powers.valid_shape == (there, 32)
            pypto.assemble(powers / pypto.sum(powers, 0, True), [i * 4, 0], out)

    x = array(10, 32)
    out = np.zeros_like(x)
    by_tiles(x, out)
    for start in (0, 4, 8):
        powers = np.exp(x[start : start + 4])
        np.testing.assert_allclose(out[start : start + 4], powers / powers.sum(0), rtol=1e-5)


def test_a_partial_product_is_of_what_is_there() -> None:
    @pypto.jit
    def product(a, b, rows, inner):
        left = pypto.view(a, [16, 32], [0, 0], valid_shape=[rows, inner])
        whole = pypto.matmul(left, b, pypto.DT_FP32)
        tile = pypto.tensor([16, 64], pypto.DT_FP32)
        pypto.assemble(whole, [0, 0], tile)
        return pypto.reshape(tile + 1.0, [16 * 64])

    a, b = array(16, 32), array(32, 64)
    found = product(a, b, 9, 20)
    expected = np.zeros((16, 64), np.float32)
    expected[:9] = a[:9, :20] @ b[:20] + 1
    np.testing.assert_allclose(found, expected.reshape(-1), rtol=1e-4, atol=1e-4)


def test_slices_without_an_end_are_assembled() -> None:
    @pypto.jit
    def tiles(x, row, out, lines, solid, wide):
        for i in pypto.loop(2):
            pypto.set_vec_tile_shapes(1, 1, 2, 2, 4)
            out[i * 4 :, 0:] = pypto.view(x, [4, 8], [i * 4, 0]) + 1.0
            wide[i * 4 :, :] = pypto.view(x, [4, 8], [i * 4, 0])
            lines[i * 8 :] = row
            solid[i, 2 * i :, :] = pypto.view(x, [2, 8], [i, 0])

    x, row = array(12, 8), array(8)
    out, lines, solid, wide = (np.zeros(shape) for shape in ((12, 8), 24, (2, 6, 8), (9, 20)))
    results = [each.astype(np.float32) for each in (out, lines, solid, wide)]
    tiles(x, row, *results)
    wide[:8, :8] = x[:8]
    out[:8], lines[:8], lines[8:16] = x[:8] + np.float32(1), row, row
    solid[0, :2], solid[1, 2:4] = x[:2], x[1:3]
    for found, expected in zip(results, (out, lines, solid, wide), strict=True):
        np.testing.assert_array_equal(found, expected)

    @pypto.jit
    def smaller(x, out):
        out[:, 0:8] = pypto.view(x, [4, 8], [0, 0])

    with pytest.raises(GraphError, match=r"\(4, 8\) elements are written to a part of \(12, 8\)"):
        smaller(x, results[0])


def test_a_view_wider_than_its_tensor_has_what_is_there() -> None:
    @pypto.jit
    def wide(x, out):
        for i in pypto.loop(2):
            tile = pypto.view(x, [8, 64], [i * 8, 0])
            assert tile.shape == (8, 64) and tile.valid_shape == (min(8, 10 - i * 8), 24)
            out[i * 8 :, :] = pypto.exp(tile)

    x = array(10, 24)
    out = np.zeros_like(x)
    wide(x, out)
    np.testing.assert_allclose(out, np.exp(x), rtol=1e-5)


def test_parts_of_tiles_beside_whole_ones() -> None:
    @pypto.jit
    def joined(x, y):
        tile = pypto.tensor([8, 16], pypto.DT_FP32)
        pypto.assemble(pypto.view(x, [8, 8], [0, 0], [5, 8]), [0, 0], tile)
        pypto.assemble(y, [0, 8], tile)
        return tile

    x, y = array(8, 8), array(8, 8) + 1
    expected = np.concatenate([np.where(np.arange(8)[:, None] < 5, x, 0), y], axis=1)
    np.testing.assert_array_equal(joined(x, y), expected)


@pytest.mark.slow
def test_another_shape_in_place_is_the_same_memory() -> None:
    @pypto.frontend.jit
    def program(x, out):
        rows = pypto.reshape(out, [8, 4], inplace=True)
        rows[2:4, :] = x
        out[3, 4:] = pypto.full([4], 7.0, pypto.DT_FP32, valid_shape=[2])
        again = out.reshape([8, 4], inplace=True)
        again[0:1] = again[2:3] * 2

    x, out = array(2, 4), np.ones((4, 8), np.float32)
    expected = out.copy()
    expected[1] = x.reshape(-1)
    expected[0, :4] = 2 * x[0]
    expected[3, 4:6] = 7
    program(x, out)
    np.testing.assert_array_equal(out, expected)


def test_order_is_of_what_is_there() -> None:
    @pypto.jit
    def largest(x):
        return pypto.topk(pypto.view(x, [1, 16], [0, 0], valid_shape=[1, 5]), 3, -1, True)

    x = -1 - np.abs(array(1, 16))
    values, places = largest(x)
    order = np.argsort(-x[0, :5])[:3]
    np.testing.assert_array_equal(values[0], x[0, order])
    np.testing.assert_array_equal(places[0], order)


def test_another_number_behind_what_is_there() -> None:
    padded = pypto.jit(lambda x: pypto.fillpad(pypto.view(x, [4, 8], [2, 0], [2, 8]), value=-1))
    x = array(4, 8)
    np.testing.assert_array_equal(padded(x), np.pad(x[2:], ((0, 2), (0, 0)), constant_values=-1))


def test_a_tile_that_is_written_in_part_is_still_refused() -> None:
    @pypto.jit
    def half(x):
        tile = pypto.tensor([8, 8], pypto.DT_FP32)
        pypto.assemble(x, [0, 0], tile)
        return tile + 1

    with pytest.raises(GraphError, match="nothing has been written there"):
        half(array(4, 8))


# Sizes and elements


def test_elements_of_whole_numbers_decide_what_a_program_does() -> None:
    @pypto.frontend.jit
    def pages(cache, table: pypto.Tensor([pypto.DYNAMIC], pypto.DT_INT32), lengths, out):
        for i in pypto.loop(out.shape[0] // 4):
            if lengths[i] > 0:
                page = table[i].max(0)
                there = lengths[i].min(4)
                tile = pypto.view(cache, [4, 8], [page * 4, 0], valid_shape=[there, 8])
                pypto.assemble(tile * 2, [i * 4, 0], out)

    cache = array(12, 8)
    for table, lengths in (([2, 0], [4, 3]), ([1, -1], [0, 9])):
        out = np.zeros((8, 8), np.float32)
        pages(cache, np.array(table, np.int32), np.array(lengths, np.int64), out)
        expected = np.zeros_like(out)
        for i, (page, length) in enumerate(zip(table, lengths, strict=True)):
            page, length = max(page, 0), min(length, 4)
            expected[i * 4 : i * 4 + length] = 2 * cache[page * 4 : page * 4 + length]
        np.testing.assert_array_equal(out, expected)
    before = pages.last
    pages(cache, np.array([1, 1], np.int32), np.array([0, 9], np.int64), np.zeros((8, 8), "f4"))
    assert pages.last is not before
    pages(cache, np.array([1, -1], np.int32), np.array([0, 9], np.int64), np.zeros((8, 8), "f4"))
    assert pages.last is before


def test_indices_know_their_loop() -> None:
    ends = [pypto.is_loop_end(i) for i in pypto.loop(1, 8, 3)]
    assert ends == [False, False, True]
    assert [pypto.is_loop_begin(i) for i in pypto.loop(1, 8, 3)] == [True, False, False]
    size = pypto.SymbolicScalar("n", 10)
    assert (size + 3).min(11) == 11 and (7 // size).max(2) == 2 and size.concrete() == 10
    with pytest.raises(GraphError, match=r'"x"\) has no value'):
        pypto.SymbolicScalar("x")
    with pytest.raises(GraphError, match=r"takes an index that pypto\.loop gave"):
        pypto.is_loop_end(3)


# Casts


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("CAST_NONE", np.trunc),
        ("CAST_RINT", np.rint),
        ("CAST_ROUND", lambda x: np.trunc(x + np.copysign(0.5, x))),
        ("CAST_FLOOR", np.floor),
        ("CAST_CEIL", np.ceil),
        ("CAST_TRUNC", np.trunc),
    ],
)
def test_fractions_become_whole_numbers_as_the_mode_says(mode: str, expected: Any) -> None:
    x = np.array([-2.5, -1.5, -0.5, -0.25, 0.5, 1.5, 2.5, 7.75] * 4, np.float32)
    cast = pypto.jit(lambda x: pypto.cast(x, pypto.DT_INT32, pypto.CastMode[mode]))
    np.testing.assert_array_equal(cast(x), expected(x).astype(np.int32))


def test_what_a_narrow_type_does_not_hold_wraps_or_stops_at_its_end() -> None:
    x = np.array([300.0, -300.0, 50.0] * 32, np.float16)
    wrapped = pypto.jit(lambda x: pypto.cast(x, pypto.DT_INT8))
    stopped = pypto.jit(lambda x: pypto.cast(x, pypto.DT_INT8, satmode=pypto.SaturationMode.ON))
    assert wrapped(x)[:3].tolist() == [44, -44, 50]
    assert stopped(x)[:3].tolist() == [127, -128, 50]
    unsigned = pypto.jit(lambda x: pypto.cast(x, pypto.DT_UINT16))
    assert unsigned(np.array([70000.0, -1.0, 3.0] * 32, np.float32))[:3].tolist() == [
        4464,
        65535,
        3,
    ]


def test_a_rounding_that_is_not_there_is_refused() -> None:
    narrow = pypto.jit(lambda x: pypto.cast(x, pypto.DT_BF16, pypto.CastMode.CAST_FLOOR))
    with pytest.raises(GraphError, match="float32 to bfloat16 to the nearest, not by CAST_FLOOR"):
        narrow(array(4, 32))


def test_data_types_compare_as_programs_write_it() -> None:
    seen = []

    @pypto.jit
    def program(x):
        seen.extend([x.dtype == pypto.DT_FP16, x.dtype == pypto.DataType.DT_FP32, x.dim])
        return x.exp().sum(-1, True)

    x = array(4, 32)
    np.testing.assert_allclose(program(x), np.exp(x).sum(-1, keepdims=True), rtol=1e-5)
    assert seen == [False, True, 2]
    with pytest.raises(GraphError, match="DT_FP8E4M3 is no data type that opkit has"):
        pypto.jit(lambda x: pypto.cast(x, pypto.DT_FP8E4M3))(x)
    with pytest.raises(AttributeError, match=r"opkit has no pypto.Tensor.to"):
        pypto.jit(lambda x: x.to("float16"))(x)


def test_precision_and_base_are_taken_by_place() -> None:
    high = pypto.PrecisionType.HIGH_PRECISION
    both = pypto.jit(
        lambda x, y: (
            pypto.div(x, y, high),
            pypto.log(y, pypto.LogBaseType.LOG_2, high),
            pypto.concat([x, y], -1),
        )
    )
    x, y = array(4, 32), np.exp(array(4, 32))
    quotient, power, joined = both(x, y)
    np.testing.assert_allclose(quotient, x / y, rtol=1e-5)
    np.testing.assert_allclose(power, np.log2(y), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(joined, np.concatenate([x, y], -1))


# Settings, and what is experimental


def test_settings_are_given_back_and_change_nothing() -> None:
    seen = {}

    @pypto.options(pass_options={"enable_slice": True})
    @pypto.frontend.jit(new_ir=True, pass_options={"cube_l1_reuse": 2})
    def program(x: pypto.Tensor([pypto.DYNAMIC, ...], pypto.DT_FP32), out: pypto.tensor()):
        pypto.set_vec_tile_shapes(8, 32)
        seen.update(pypto.get_pass_options(), tiles=pypto.get_vec_tile_shapes())
        out[:] = x + 1

    x, out = array(4, 32), np.zeros((4, 32), np.float32)
    program(x, out)
    np.testing.assert_array_equal(out, x + 1)
    assert seen == {"enable_slice": True, "tiles": [8, 32]}
    assert "enable_slice" not in pypto.get_pass_options()
    with pypto.options(host_options={"a": 1}):
        assert pypto.get_host_options() == {"a": 1}
    assert pypto.get_host_options() == {}
    with pytest.raises(GraphError, match='options has no "passes"'):
        pypto.options(passes={})


def test_goldens_are_compared_where_verification_is_on(recwarn: Any) -> None:
    @pypto.jit
    def program(x, y, out):
        out[:] = pypto.ceil_div(x, y)

    x, y = np.array([[7, -7, 8]], np.int32), np.array([[2, 2, 4]], np.int32)
    out = np.zeros((1, 3), np.int32)
    wrong = np.array([[4, -3, 5]], np.int32)
    pypto.set_verify_golden_data(goldens=[None, None, wrong])
    program(x, y, out)
    np.testing.assert_array_equal(out, [[4, -3, 2]])
    assert not recwarn.list
    with pypto.options(verify_options={"enable_pass_verify": True}):
        with pytest.warns(pypto.PyptoWarning, match=r"out: 1 of 3 .* first \[0, 2\]: 2.0 for 5.0"):
            program(x, y, out)
        # Said once for the program that runs next.
        program(x, y, out)
        pypto.set_verify_options(pass_verify_error_tol=[1.0, 0.0])
        pypto.set_verify_golden_data([x, y, out], [None, None, wrong])
        program(x, y, out)
    assert not recwarn.list


def test_equal_compares_elements_and_shapes_are_lists_too() -> None:
    @pypto.jit
    def program(x, y, same, other):
        assert x.shape == [2, 8] and x.shape == (2, 8) and x.shape != [8, 2]
        assert x.shape + [1] == [2, 8, 1] and [3] + x.shape == [3, 2, 8]  # noqa: RUF005
        # It was Python's own, which compares places: no element was equal.
        same[:] = x == 0.5
        other[:] = x != y
        assert (x == None) is False  # noqa: E711

    x = array(2, 8)
    x[0, 3] = 0.5
    y = x.copy()
    y[1, 2] = 7
    same, other = np.zeros((2, 2, 8), np.bool_)
    program(x, y, same, other)
    np.testing.assert_array_equal(same, x == 0.5)
    np.testing.assert_array_equal(other, x != y)


def test_rows_of_a_paged_cache() -> None:
    @pypto.jit
    def rows(cache, places, table):
        experimental = pypto.experimental
        return (
            experimental.gather_in_ub(cache, places, table, 2, -2),
            experimental.gather_in_l1(cache, places, table, 2, 3, True, True),
        )

    cache = np.arange(24, dtype=np.float32).reshape(6, 4)
    whole, first = rows(cache, np.array([[0, 4, 3]], np.int32), np.array([[0, 2, 1]], np.int32))
    np.testing.assert_array_equal(whole, cache[[0, 2, 5]])
    np.testing.assert_array_equal(first, cache[[0, 2, 5], :3])


def test_softmax_by_blocks_is_softmax() -> None:
    @pypto.jit
    def attention(scores, values):
        state: Any = None
        for start in (0, 16):
            block = pypto.view(scores, [16, 8], [start, 0])
            powers, largest, total = pypto.experimental.online_softmax(block, 0.5)
            part = pypto.matmul(
                pypto.view(values, [4, 16], [0, start]),
                pypto.cast(powers, pypto.DT_FP32),
                pypto.DT_FP32,
            )
            now = (largest, total, part)
            state = now if state is None else pypto.experimental.online_softmax_update(*state, *now)
        return state[2] / state[1]

    scores, values = array(32, 8), array(4, 32)
    powers = np.exp(0.5 * scores)
    np.testing.assert_allclose(
        attention(scores, values), values @ (powers / powers.sum(0)), rtol=0.03, atol=0.03
    )


def test_names_below_pypto_are_lent_too(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from pypto.experimental import gather_in_ub\nimport pypto\n"
        "print(gather_in_ub is pypto.experimental.gather_in_ub, pypto.platform.npuarch)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "opkit", "run", str(program)], capture_output=True, text=True
    )
    assert done.stdout.split() == ["True", "DAV_2201"], done.stderr
