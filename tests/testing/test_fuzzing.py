"""Random cases, shrunk to the smallest that still fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkit.errors import UsageError
from opkit.schema import OpSpec
from opkit.testing import (
    Case,
    CaseResult,
    FuzzBudget,
    FuzzResult,
    Source,
    find_standard,
    fuzz,
    load_golden,
    read_budget,
    run_case,
)

Array = np.ndarray[Any, Any]


@pytest.fixture
def hunt(
    scale: OpSpec, fake_library: Callable[..., Any], write_golden: Callable[[str], Path]
) -> Callable[..., FuzzResult]:
    golden = load_golden(write_golden("def scale(x, *, factor): return factor * x"))
    float32 = OpSpec(
        op=scale.op,
        name=scale.name,
        inputs=(narrowed(scale.inputs[0]),),
        outputs=(narrowed(scale.outputs[0]),),
        attrs=scale.attrs,
        source=scale.source,
    )

    def run_it(kernel: Callable[[Array], list[Array]], **options: Any) -> FuzzResult:
        library = fake_library(kernel)

        def run(case: Case) -> CaseResult:
            return run_case(library, case, float32, golden, find_standard("ecosystem"))

        return fuzz(float32, run, **{"budget": FuzzBudget(cases=100), **options})

    return run_it


def narrowed(tensor: Any) -> Any:
    from dataclasses import replace

    return replace(tensor, dtypes=tensor.dtypes[1:2], formats=("ND",))


def test_a_right_kernel_survives(hunt: Callable[..., FuzzResult]) -> None:
    result = hunt(lambda x: [2 * x])
    assert result.failure is None
    assert result.runs >= 50


def test_a_wrong_tail_shrinks_to_the_shortest_tail(hunt: Callable[..., FuzzResult]) -> None:
    def wrong(x: Array) -> list[Array]:
        y = 2 * x
        if x.size > 37:
            y.reshape(-1)[-1] = 1e9
        return [y]

    result = hunt(wrong)
    assert result.failure is not None
    assert result.failure.case.shape == (38,)


def test_a_wrong_value_shrinks_to_one_simple_number(hunt: Callable[..., FuzzResult]) -> None:
    result = hunt(lambda x: [np.where(x > 100, 0, 2 * x).astype(np.float32)])
    assert result.failure is not None
    case = result.failure.case
    assert case.shape == (1,)
    source = case.sources[0]
    assert isinstance(source, Source) and source.values is not None
    (value,) = source.values
    assert value > 100 and float(f"{value:.1g}") == value


def test_a_time_budget_ends(hunt: Callable[..., FuzzResult]) -> None:
    assert hunt(lambda x: [2 * x], budget=FuzzBudget(seconds=0.2)).runs > 0


def test_an_operator_that_refuses_everything_is_no_success(
    hunt: Callable[..., FuzzResult],
) -> None:
    def refuse(x: Array) -> list[Array]:
        raise UsageError("no")

    with pytest.raises(UsageError, match="refused all"):
        hunt(refuse)


def test_budgets_are_cases_seconds_or_minutes() -> None:
    assert read_budget("200") == FuzzBudget(cases=200)
    assert read_budget("30s") == FuzzBudget(seconds=30)
    assert read_budget("1.5m") == FuzzBudget(seconds=90)
    for wrong in ("", "s", "-3", "0", "1.5", "5h", "infs"):
        with pytest.raises(UsageError, match="no budget"):
            read_budget(wrong)
