"""Random programs: every kernel under every check and against float64."""

from __future__ import annotations

import pytest

from opkit import compiler as oc
from opkit.compiler.tracing.fuzzing import random_graph
from opkit.compiler.tracing.fuzzing_types import numbers_of_all_sizes, random_typed_graph
from opkit.sanitizer import Check


def check_seed(seed: int, *, products: bool = False) -> None:
    graph = random_graph(seed, products=products)
    program = oc.compile(graph)
    with Check(()) as checks:
        difference = oc.verify(program, oc.random_arrays(graph, {}, seed))
    assert difference is None, str(difference)
    assert not checks.findings, checks.findings[0]


@pytest.mark.sampled(2)
# 25 once had outputs that every core wrote, whatever its share; 309 a mean along an axis of
# extent 1; 671 reduces what is the same for all rows.
@pytest.mark.parametrize("seed", [3, 25, 41, 309, 671])
def test_a_random_program_is_right_and_clean(seed: int) -> None:
    check_seed(seed)


# Several mixed kernels, one of them with thirty operators after its product. In 39 comparisons read
# whole repeats of an output of which only rows are written.
@pytest.mark.parametrize(
    "seed", [39, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1002, 1013))]
)
def test_a_random_program_with_products_is_right_and_clean(seed: int) -> None:
    check_seed(seed, products=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1040))
def test_more_random_programs_are_right_and_clean(seed: int) -> None:
    check_seed(seed)


def check_types(seed: int) -> None:
    graph, sizes = random_typed_graph(seed, named=seed % 2 == 1)
    arrays = numbers_of_all_sizes(graph, oc.random_arrays(graph, sizes, seed), seed)
    program = oc.compile(graph)
    with Check(()) as checks:
        difference = oc.verify(program, arrays)
    assert difference is None, str(difference)
    assert not checks.findings, checks.findings[0]


@pytest.mark.sampled(2)
# 63 copies one number for each batch.
@pytest.mark.parametrize("seed", [0, 1, 2, 63])
def test_a_random_program_of_many_types_is_right_and_clean(seed: int) -> None:
    check_types(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1030))
def test_more_random_programs_of_many_types_are_right_and_clean(seed: int) -> None:
    check_types(seed)
