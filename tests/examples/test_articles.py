"""The kernels of article 001's table: right, clean, and as much faster as the article says."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from opkit.profiling import Profile
from opkit.sanitizer import Check

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "articles"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("article_operators", FOLDER / "operators.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


operators = load()
ALL = [*operators.OPERATORS, operators.rms_norm_operator(1), operators.rms_norm_operator(200)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("operator", ALL, ids=lambda operator: f"{operator.name} {operator.size}")
def test_the_last_version_is_as_much_faster_as_the_article_says(operator: Any) -> None:
    arrays = operator.make(np.random.default_rng(0))
    expected = operator.reference(*(x.astype(np.float64) for x in arrays[:-1]))
    times = []
    for kernel in operator.kernels:
        arrays[-1][...] = np.nan
        with Profile(event_limit=0) as session:
            result = operator.run(kernel, arrays)
        times.append(session.timelines[0].task_us)
        assert np.abs(result - expected).max() <= 2e-3 * np.abs(expected).max()
    if operator.name != "RMSNorm":
        assert times[0] / times[-1] >= operator.article_gain


@pytest.mark.slow
@pytest.mark.parametrize("operator", ALL, ids=lambda operator: f"{operator.name} {operator.size}")
def test_no_check_has_anything_to_say(operator: Any) -> None:
    arrays = operator.make(np.random.default_rng(0))
    for kernel in operator.kernels:
        with Check(()) as checks:
            operator.run(kernel, arrays)
        assert not checks.findings
