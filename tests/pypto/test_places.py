"""Functions that order an axis, and that pick and put elements at places: as the documents say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opkit import pypto
from opkit.compiler import GraphError

X = np.random.default_rng(8).permutation(60).astype(np.float32).reshape(5, 12)


def run(function: Any, *arguments: Any) -> Any:
    """Run a program in kernels and return its result."""
    program = pypto.jit(function)
    result = program(*arguments)
    assert program.last.runs_in == "kernels", program.last.reason
    return result


def test_gathered_elements_are_those_of_the_documents_example() -> None:
    x = np.arange(15, dtype=np.int32).reshape(3, 5)
    index = np.array([[0, 1, 2, 0], [1, 2, 0, 1], [2, 2, 1, 0]], np.int64)
    expected = [[0, 6, 12, 3], [5, 11, 2, 8], [10, 11, 7, 3]]
    np.testing.assert_array_equal(run(lambda x, i: pypto.gather(x, 0, i), x, index), expected)


@pytest.mark.slow
def test_the_largest_come_with_their_places() -> None:
    found = run(lambda x: pypto.topk(x, 3, -1, True, pypto.TopKAlgo.MERGE_SORT), X)
    order = np.argsort(-X, axis=-1)[:, :3]
    np.testing.assert_array_equal(found.indices, order)
    np.testing.assert_array_equal(found.values, np.take_along_axis(X, order, -1))


@pytest.mark.slow
def test_orders_and_extremes_have_places() -> None:
    down, most = run(lambda x: (pypto.argsort(x), pypto.argmax(x, 0, True)), X)
    np.testing.assert_array_equal(down, np.argsort(-X, axis=-1))
    np.testing.assert_array_equal(most, X.argmax(0)[None])


@pytest.mark.slow
def test_scatter_writes_at_places_in_the_documents_way() -> None:
    x, places = np.zeros((3, 5), np.float32), np.array([[1, 2], [0, 1]])
    expected = [[2, 0, 0, 0, 0], [2, 2, 0, 0, 0], [0, 2, 0, 0, 0]]
    np.testing.assert_array_equal(
        run(lambda x, i: pypto.scatter(x, 0, i, 2.0), x, places), expected
    )
    np.testing.assert_array_equal(x, 0)
    run(lambda x, i: pypto.scatter_(x, 0, i, 2.0, reduce="add"), x, places)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.slow
def test_rows_of_a_cache_are_updated_in_place() -> None:
    cache, source = np.zeros((2, 6, 1, 3), np.float32), np.arange(12, dtype=np.float32)
    places = np.array([[1, 8], [4, 11]], np.int64)

    def update(cache: Any, places: Any, source: Any) -> None:
        cache[:] = pypto.scatter_update(cache, -2, places, source)

    run(update, cache, places, source.reshape(2, 2, 1, 3))
    expected = np.zeros((12, 3), np.float32)
    expected[places.reshape(-1)] = source.reshape(4, 3)
    np.testing.assert_array_equal(cache.reshape(12, 3), expected)


@pytest.mark.slow
def test_rows_are_added_by_index() -> None:
    x, source = np.zeros((2, 3), np.int32), np.ones((3, 3), np.int32)
    index = np.array([0, 1, 0], np.int32)
    added = run(lambda x, i, s: pypto.index_add(x, 0, i, s, alpha=2), x, index, source)
    np.testing.assert_array_equal(added, [[4, 4, 4], [2, 2, 2]])
    run(lambda x, i, j, s: pypto.index_put_(x, (i, j), s, True), x, index, index, source[:, 0])
    np.testing.assert_array_equal(x, [[2, 0, 0], [0, 1, 0]])
    np.testing.assert_array_equal(
        run(lambda x, i: pypto.index_select(x, 1, i), X, index), X[:, index]
    )


@pytest.mark.slow
def test_parts_of_triangles_and_pairs() -> None:
    def program(x: Any) -> Any:
        return pypto.tril(x, 1), pypto.triu(x), *pypto.interleave(x, x * 2)

    low, high, first, second = run(program, X)
    np.testing.assert_array_equal(low, np.tril(X, 1))
    np.testing.assert_array_equal(high, np.triu(X))
    both = np.stack([X, X * 2], -1).reshape(5, 24)
    np.testing.assert_array_equal(np.concatenate([first, second], 1), both)
    np.testing.assert_array_equal(
        run(lambda i: pypto.one_hot(i, 5), np.array([0, 2, 4])), np.eye(5)[[0, 2, 4]]
    )


def test_what_a_scatter_cannot_is_said_at_its_line() -> None:
    with pytest.raises(GraphError, match='no reduce="multiply"') as error:
        pypto.jit(lambda x, i: pypto.scatter(x, 0, i, x, reduce="multiply"))(
            X, np.zeros((5, 12), np.int32)
        )
    assert error.value.location is not None and error.value.location.file == __file__
    with pytest.raises(GraphError, match="7 indices along axis 0"):
        pypto.jit(lambda x, i: pypto.gather(x, 1, i))(X, np.zeros((7, 1), np.int32))


@pytest.mark.slow
def test_sums_are_added_in_place() -> None:
    @pypto.jit
    def program(x, y):
        pypto.axpy_(x, y, alpha=2.0)
        pypto.atomic_add(y, [0, 0], x)

    x, y = X.copy(), np.ones((5, 12), np.float32)
    program(x, y)
    np.testing.assert_array_equal(x, X + 3)
