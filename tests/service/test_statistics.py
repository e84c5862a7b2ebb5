"""Intervals hold what they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from opkit.service.serving.experiments import Experiment
from opkit.service.serving.statistics import (
    RunningMean,
    sequence_half_width,
    wilson_interval,
)


def test_the_running_mean_is_numpys() -> None:
    values = np.random.default_rng(0).normal(3, 2, 1000)
    running = RunningMean()
    for value in values:
        running.add(float(value))
    assert running.mean == pytest.approx(values.mean())
    assert running.deviation == pytest.approx(values.std(ddof=1))


def test_wilsons_interval_is_that_of_the_literature() -> None:
    # Newcombe 1998, Statistics in Medicine 17: 81 of 263 gives 0.2553 to 0.3662.
    found = wilson_interval(81, 263)
    assert (found.low, found.high) == (
        pytest.approx(0.2553, abs=1e-4),
        pytest.approx(0.3662, abs=1e-4),
    )
    assert wilson_interval(0, 10).low == 0
    assert wilson_interval(10, 10).high == 1
    assert (wilson_interval(0, 0).low, wilson_interval(0, 0).high) == (0, 1)


def test_the_sequence_holds_at_every_look_in_19_of_20_experiments() -> None:
    random = np.random.default_rng(1)
    wrong = 0
    for _ in range(200):
        values = random.normal(0, 1, 1000)
        counts = np.arange(1, 1001)
        means = np.cumsum(values) / counts
        wrong += any(abs(means[n - 1]) > sequence_half_width(n, 1.0) for n in range(10, 1001, 10))
    assert wrong <= 20
    assert sequence_half_width(1, 1.0) == math.inf


def fill(experiment: Experiment, label: str, mean_us: float, count: int, failures: int = 0) -> None:
    random = np.random.default_rng(2)
    for value in random.lognormal(math.log(mean_us * 1e-6), 0.3, count):
        experiment.add(label, float(value), failed=False)
    for _ in range(failures):
        experiment.add(label, 0.0, failed=True)


def test_the_faster_version_is_found_with_its_ratio() -> None:
    experiment = Experiment("v1", {"v2": 0.5})
    fill(experiment, "v1", 100, 2000)
    fill(experiment, "v2", 80, 2000)
    (verdict,) = experiment.verdicts()
    assert verdict.better == "v2"
    assert verdict.latency_ratio.low < 0.8 < verdict.latency_ratio.high < 1
    assert "v2 is faster: 0.8" in verdict.text


def test_equal_versions_are_not_decided() -> None:
    experiment = Experiment("v1", {"v2": 0.5})
    fill(experiment, "v1", 100, 500)
    fill(experiment, "v2", 100, 500)
    (verdict,) = experiment.verdicts()
    assert (verdict.better, verdict.text[:11]) == ("", "not decided")


def test_a_faster_version_that_fails_more_often_is_worse() -> None:
    experiment = Experiment("v1", {"v2": 0.5})
    fill(experiment, "v1", 100, 1000)
    fill(experiment, "v2", 50, 1000, failures=100)
    (verdict,) = experiment.verdicts()
    assert verdict.better == "v1"
    assert "fails more often" in verdict.text
    assert experiment.to_json()["arms"][1]["failures"] == 100


def test_nothing_measured_is_said_so() -> None:
    experiment = Experiment("v1", {"v2": 0.1})
    (verdict,) = experiment.verdicts()
    assert verdict.better == ""
    assert experiment.to_json()["arms"][0]["latency_us"] is None
