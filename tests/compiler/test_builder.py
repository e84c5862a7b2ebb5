"""Tracing, and its errors at the user's line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from opkit import compiler as oc
from opkit.chips import find_chip

SPEC = oc.TensorSpec("x", (4, 8))


def line_of(error: pytest.ExceptionInfo[oc.GraphError]) -> str:
    location = error.value.location
    assert location is not None and location.file == __file__
    with open(__file__, encoding="utf-8") as file:  # noqa: PTH123
        return file.read().splitlines()[location.line - 1]


def test_every_node_knows_its_line() -> None:
    graph = oc.trace(lambda x: x.apply("exp"), [SPEC])
    location = graph.nodes[0].location
    assert location is not None and location.file == __file__


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x + 1 if x else x, "cannot branch"),
        (lambda x: [part + 1 for part in x], "a loop over"),
        (lambda x: x.apply("exq"), "there is no operator"),
        (lambda x: x.reshape(3, 5), "32 elements"),
        (lambda x: x[9], "not within 4"),
        (lambda x: x.sum(axis=2), "axis is 2, expected an axis from -2 to 1"),
        (lambda x: x.apply("cast", dtype="flaot16"), 'no data type "flaot16"'),
        (lambda x: x @ x, "do not multiply"),
        (lambda x: x + "a", "is no tensor and no number"),
    ],
)
def test_what_cannot_be_traced_is_an_error_at_its_line(function: Any, message: str) -> None:
    with pytest.raises(oc.GraphError, match=message) as error:
        oc.trace(function, [SPEC])
    assert "lambda x" in line_of(error)


def test_a_program_without_a_tensor_as_result_is_refused() -> None:
    with pytest.raises(oc.GraphError, match="expected a tensor"):
        oc.trace(lambda x: 3, [SPEC])


def test_the_articles_example_comes_out_literally() -> None:
    cut = oc.split(1024, cores=4, width=128)
    assert (cut.tile, cut.tiles) == (64, 16)
    assert [list(cut.tiles_of(core)) for core in range(4)] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8, 9, 10, 11],
        [12, 13, 14, 15],
    ]


def test_a_tensor_that_the_vector_unit_does_not_compute_is_told_at_its_line() -> None:
    with pytest.raises(oc.GraphError, match="int64"):
        oc.compile(lambda x: x + 1, oc.TensorSpec("x", (4,), "int64"))


def test_buffers_that_overflow_are_told_at_the_line_with_what_fits() -> None:
    def many(count: int) -> oc.Stages:
        graph = oc.trace(lambda x: tuple(x * float(i + 2) for i in range(count)), [SPEC])
        return oc.compile_stages(graph, find_chip("Ascend910B2"))

    with pytest.raises(oc.GraphError, match=r"takes .* of the 196608 bytes of UB") as error:
        many(95)
    assert "tuple(x * float(i + 2)" in line_of(error)
    help_text = error.value.help
    assert help_text is not None
    fits = int(help_text.split()[1])
    many(fits)
    with pytest.raises(oc.GraphError, match="bytes of UB"):
        many(fits + 1)


def test_no_module_hides_a_name_of_the_package() -> None:
    # Reading a module sets it on its package: `split` was a module once that had been read.
    modules = {path.stem for path in Path(oc.__file__).parent.iterdir()}
    assert modules & set(oc.__all__) == set()
