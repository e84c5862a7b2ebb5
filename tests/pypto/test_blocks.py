"""Programs as blocks over declared tensors, as the public project's tests write them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from opkit import pypto
from opkit.compiler import GraphError
from opkit.pypto import blocks, runtime


@pytest.fixture(autouse=True)
def nothing_traced(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(blocks, "_traced_last", [])
    yield


def declared(*shape: int, dtype: str = "DT_FP32", count: int = 2) -> list:
    return [pypto.tensor(shape, getattr(pypto, dtype), f"T{n}") for n in range(count)]


def test_a_block_runs_on_data_in_the_order_of_its_tensors() -> None:
    x, y = declared(20, 7)
    assert isinstance(y, pypto.tensor) and not isinstance(3, pypto.tensor)
    with pypto.function("MAIN", x, y) as block:
        for begin in pypto.loop(0, 20, 16, name="rows", idx_name="row"):
            there = pypto.min(20 - begin, 16)
            tile = pypto.view(x, (16, 7), [begin, 0], valid_shape=[there, 7])
            tile.move(pypto.mul(tile, 2.0))
            pypto.assemble(tile, [begin, 0], y)
    given = np.arange(140, dtype=np.float32).reshape(20, 7)
    kept, result = given.copy(), np.zeros_like(given)
    runtime._device_init()
    runtime._device_run_once_data_from_host(given, result)
    runtime._device_fini()
    np.testing.assert_array_equal(result, 2 * kept)
    # As many elements are the tensor's, whatever axes the data have.
    flat = np.zeros(140, np.float32)
    runtime._device_run_once_data_from_host(given.reshape(2, 70), flat)
    np.testing.assert_array_equal(flat, 2 * kept.reshape(-1))
    # What is moved to a part of a tensor used to be written to the tensor: the input changed.
    np.testing.assert_array_equal(given, kept)
    assert block.program is not None and block.program.runs_in == "kernels"


def test_moving_to_an_argument_writes_it_and_the_last_block_is_what_runs() -> None:
    x, y = declared(4, 8)
    for factor in (2.0, 3.0):
        with pypto.function("SCALE", x, y) as block:
            for _ in block:
                y.move(x * factor)
    given, result = np.ones((4, 8), np.float32), np.zeros((4, 8), np.float32)
    runtime._device_run_once_data_from_host(given, result)
    np.testing.assert_array_equal(result, 3 * given)


def test_a_tensor_without_a_shape_takes_that_of_what_is_moved_to_it() -> None:
    x, y = declared(4, 8)
    with pypto.function("FULL", x, y):
        tile = pypto.tensor()
        tile.move(pypto.full((4, 8), 2.0, pypto.DT_FP32))
        other = pypto.tensor()
        other[:] = x + tile
        y[:] = other
    result = np.zeros((4, 8), np.float32)
    runtime._device_run_once_data_from_host(np.ones((4, 8), np.float32), result)
    np.testing.assert_array_equal(result, np.full((4, 8), 3, np.float32))


def test_a_block_that_ends_in_an_error_is_not_what_runs() -> None:
    x, y = declared(4, 8)
    with pytest.raises(ZeroDivisionError), pypto.function("BROKEN", x, y):
        y.move(x * (1 / 0))
    with pytest.raises(GraphError, match="no block was traced"):
        runtime._device_run_once_data_from_host(np.zeros((4, 8), np.float32))


def test_what_does_not_fit_is_refused_by_name() -> None:
    x, y = declared(4, 8)
    with pytest.raises(GraphError, match="argument 2 of the block is ndarray"):
        pypto.function("MAIN", x, np.zeros((4, 8), np.float32))
    with pytest.raises(GraphError, match='"T0" is used outside of the blocks that name it'):
        x + 1
    with pypto.function("IDLE", x, y):
        pypto.exp(x)
    data = [np.zeros((4, 8), np.float32) for _ in range(2)]
    with pytest.raises(GraphError, match="IDLE writes to none of its tensors"):
        runtime._device_run_once_data_from_host(*data)
    with pypto.function("MAIN", x, y):
        y.move(pypto.exp(x))
    with pytest.raises(GraphError, match="over 2 tensors, and 1 are given"):
        runtime._device_run_once_data_from_host(data[0])
    with pytest.raises(GraphError, match=r"declared as float32 \[4, 8\].*int32 \[4, 8\]"):
        runtime._device_run_once_data_from_host(data[0].astype(np.int32), data[1])
    with pytest.raises(AttributeError, match=r"no pypto\.runtime\._device_reset"):
        runtime._device_reset  # noqa: B018


def test_indices_that_are_not_there_put_nothing() -> None:
    x, y = declared(4, 5)
    index = pypto.tensor((3, 2), pypto.DT_INT64, "index")
    with pypto.function("SCATTER", x, index, y):
        tile = pypto.view(x, (4, 5), [0, 0])
        # Twelve places of which six are there: the others used to be taken for zeros.
        places = pypto.view(index, (4, 5), [0, 0], valid_shape=[3, 2])
        y.move(pypto.scatter(tile, 0, places, 2.0))
    given = np.arange(20, dtype=np.float32).reshape(4, 5)
    rows = np.array([[1, 2], [1, 3], [2, 3]])
    result = np.zeros_like(given)
    runtime._device_run_once_data_from_host(given, rows, result)
    expected = given.copy()
    np.put_along_axis(expected[:, :2], rows, 2.0, axis=0)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("left", [True, False])
def test_a_shift_by_no_count_is_as_torch_takes_it(left: bool) -> None:
    shift = pypto.bitwise_left_shift if left else pypto.bitwise_right_shift
    program = pypto.jit(lambda x, by: shift(x, by))
    x = np.array([[100, -100, 7, -7, 9, -9, 3, -3]], np.int16)
    by = np.array([[-1, -1, 16, 17, 2, 2, -100, 99]], np.int16)
    # Negative counts used to be taken by their lowest bits.
    signs = [0, -1, 0, -1, 9 >> 2, -9 >> 2, 0, -1]
    wanted = [0, 0, 0, 0, 36, -36, 0, 0] if left else signs
    assert program(x, by).tolist() == [wanted]
