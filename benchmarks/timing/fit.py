"""Fit what must be fitted of the model's constants to published rows, from documented or guessed
starting values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from published import Model

Numbers = dict[str, float]


@dataclass(frozen=True)
class Parameter:
    """One fitted constant; it may stand for several keys that share a value."""

    keys: tuple[str, ...]
    start: float
    """Where it stays when no row tells otherwise."""
    spread: float
    """How far the start is trusted: standard deviation of its logarithm."""
    published: float = 0
    """What a published row of `family` says by itself. It is not fitted; where that family is left
    out, the start stands in."""
    family: str = ""


PARAMETERS = (
    Parameter(("timing.hbm.bytes_per_second",), 1.6e12, 0.05),
    Parameter(("timing.hbm.burst_overhead_bytes",), 60, 0.5),
    Parameter(("timing.mte2.bytes_per_cycle",), 38, 0.05),
    Parameter(("timing.mte2.startup_cycles",), 230, 0.1),
    Parameter(("timing.mte2.l2_hit_startup_cycles",), 115, 0.5),
    Parameter(("timing.mte2.instruction_cycles",), 14, 0.5),
    Parameter(("timing.mte2.burst_cycles",), 3.5, 0.1),
    Parameter(("timing.mte3.startup_cycles",), 120, 0.5),
    Parameter(("timing.mte3.posted_bytes",), 8192, 0.5),
    Parameter(("timing.l2.same_address_cycles",), 0.13, 0.5),
    Parameter(("timing.launch.entry_cycles",), 1800, 0.2),
    Parameter(
        ("timing.scalar.load_cycles", "timing.scalar.store_cycles"),
        *(10, 0.3),
        published=34 / 3,
        family="add",
    ),
    Parameter(("timing.scalar.vector_issue_cycles", "timing.scalar.copy_issue_cycles"), 4, 0.5),
    Parameter(("timing.vector.read_write_conflict_cycles",), 0.8, 0.5),
    Parameter(("timing.fixpipe.to_gm_elements_per_cycle",), 20.3, 0.1),
    Parameter(("timing.matmul.step_cycles",), 160, 0.2),
    Parameter(("timing.matmul.copy_cycles",), 120, 0.2),
    Parameter(("timing.matmul.message_cycles",), 5000, 0.3),
    Parameter(("timing.cross_core.signal_cycles",), 500, 0.7),
)

_WEIGHTS = {"task": 1.0, "core": 0.7, "V": 1.0, "M": 1.0, "S": 0.3, "FIX": 0.1}
_PIPE_WEIGHT = 0.3
_STEP = 0.03


def numbers_of(values: Sequence[float]) -> Numbers:
    """Return the chip's numbers for one value a parameter."""
    return {
        key: value
        for parameter, value in zip(PARAMETERS, values, strict=True)
        for key in parameter.keys
    }


@dataclass(frozen=True)
class Fit:
    """Constants that fit some rows, and how the rows depend on them there."""

    models: tuple[Model, ...]
    logs: np.ndarray
    residuals: tuple[np.ndarray, ...]
    """By model."""
    jacobians: tuple[np.ndarray, ...]
    """By model: quantities x parameters."""

    @property
    def numbers(self) -> Numbers:
        """The fitted constants, by key."""
        return numbers_of(np.exp(self.logs).tolist())

    def without(self, family: str) -> Numbers:
        """Return the constants that the other families give: one more step from here."""
        kept = [i for i, model in enumerate(self.models) if model.row.family != family]
        values = np.exp(self.logs + self._step(kept)).tolist()
        for index, parameter in enumerate(PARAMETERS):
            if parameter.published and parameter.family == family:
                values[index] = parameter.start
        return numbers_of(values)

    def next_logs(self) -> np.ndarray:
        """Return the logarithms of better values."""
        return self.logs + np.clip(self._step(range(len(self.models))), -0.5, 0.5)

    def _step(self, kept: Sequence[int]) -> np.ndarray:
        starts = _starts()
        trust = _PRIOR / np.array([parameter.spread for parameter in PARAMETERS])
        jacobian = np.vstack([*(self.jacobians[i] for i in kept), np.diag(trust)])
        target = np.concatenate([*(-self.residuals[i] for i in kept), trust * (starts - self.logs)])
        is_free = [not parameter.published for parameter in PARAMETERS]
        step = np.zeros(len(PARAMETERS))
        step[is_free] = np.linalg.lstsq(jacobian[:, is_free], target, rcond=None)[0]
        return step


def _starts() -> np.ndarray:
    return np.log([parameter.published or parameter.start for parameter in PARAMETERS])


def fit(models: Sequence[Model], *, rounds: int = 1) -> Fit:
    """Return the constants that make the least squares of the models' logarithmic errors.

    Gauss-Newton with numeric derivatives; what a parameter's start is trusted counts as one more
    observation, so a constant that no row depends on keeps it.
    """
    found = _at(models, _starts())
    for _ in range(rounds):
        found = _at(models, found.next_logs())
    return found


def _at(models: Sequence[Model], logs: np.ndarray) -> Fit:
    residuals = [_residuals(model, logs) for model in models]
    jacobians = [np.empty((len(found), len(logs))) for found in residuals]
    for index in range(len(logs)):
        moved = logs.copy()
        moved[index] += _STEP
        for model, base, jacobian in zip(models, residuals, jacobians, strict=True):
            jacobian[:, index] = (_residuals(model, moved) - base) / _STEP
    return Fit(tuple(models), logs, tuple(residuals), tuple(jacobians))


_PRIOR = 0.3
"""Weight of a starting value's trust against a relative error of one. What documents say counts as
a row does: else a family that alone tells of a constant decides it, and leaving it out shows."""


def _residuals(model: Model, logs: np.ndarray) -> np.ndarray:
    predicted = model.predict(numbers_of(np.exp(logs).tolist()))
    return np.array(
        [
            _WEIGHTS.get(quantity, _PIPE_WEIGHT) * math.log(predicted[quantity] / measured)
            for quantity, measured in model.row.measured.items()
        ]
    )


Errors = dict[tuple[str, str], float]
"""Relative, by row and quantity."""


def errors(models: Sequence[Model], numbers: Mapping[str, float]) -> Errors:
    """Return how far the model with these numbers is from what was measured."""
    return {
        (model.row.row, quantity): value / model.row.measured[quantity] - 1
        for model in models
        for quantity, value in model.predict(numbers).items()
    }


def left_out_errors(found: Fit) -> Errors:
    """Return each row's errors with constants from which all rows of its family were left out."""
    result: Errors = {}
    for family in dict.fromkeys(model.row.family for model in found.models):
        members = [model for model in found.models if model.row.family == family]
        result |= errors(members, found.without(family))
    return result
