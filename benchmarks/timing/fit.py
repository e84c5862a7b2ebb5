"""Fit what must be fitted of the model's constants to published rows, from documented or guessed
starting values."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from published import Model

Numbers = dict[str, float]
Errors = dict[tuple[str, str], float]
"""Relative, by row and quantity."""


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

    def concerns(self, kernel_class: str) -> bool:
        """Return whether a kernel of this kind can depend on it."""
        is_of_cube = self.keys[0].startswith(("timing.matmul.", "timing.fixpipe."))
        return kernel_class != "vector" or not is_of_cube


PARAMETERS = (
    Parameter(("timing.hbm.bytes_per_second",), 1.6e12, 0.1),
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
"""Fitted to the samples."""

LIBRARY_PARAMETERS = (
    Parameter(("timing.launch.all_cores_us",), 9.7, 0.2),
    Parameter(("timing.scalar.wake_cycles",), 120, 0.5),
    Parameter(("timing.mte2.partial_block_cycles",), 35, 1.0),
    Parameter(("timing.mte3.partial_block_cycles",), 60, 1.0),
)
"""Fitted to library operators, with the others as they are: no sample depends on them much."""

SAMPLES_ALONE: Numbers = {
    "timing.launch.all_cores_us": 9.7,
    "timing.scalar.wake_cycles": 0,
    "timing.mte2.partial_block_cycles": 0,
    "timing.mte3.partial_block_cycles": 0,
}
"""What these are as far as samples tell."""

_WEIGHTS = {"task": 1.0, "core": 0.7, "V": 1.0, "M": 1.0, "S": 0.3, "FIX": 0.1}
_PIPE_WEIGHT = 0.3
_STEP = 0.03


@dataclass(frozen=True)
class Laws:
    """Which constants are fitted, and what others are meanwhile."""

    parameters: tuple[Parameter, ...]
    fixed: Mapping[str, float]

    def numbers(self, values: Sequence[float]) -> Numbers:
        """Return the chip's numbers for one value a parameter."""
        own = {
            key: value
            for parameter, value in zip(self.parameters, values, strict=True)
            for key in parameter.keys
        }
        return {**self.fixed, **own}

    @property
    def starts(self) -> np.ndarray:
        """Logarithms of the values to start from."""
        return np.log([each.published or each.start for each in self.parameters])


@dataclass(frozen=True)
class Fit:
    """Constants that fit some rows, and how the rows depend on them there."""

    laws: Laws
    models: tuple[Model, ...]
    logs: np.ndarray
    residuals: tuple[np.ndarray, ...]
    """By model."""
    jacobians: tuple[np.ndarray, ...]
    """By model: quantities x parameters."""

    @property
    def numbers(self) -> Numbers:
        """The fitted constants, by key."""
        return self.laws.numbers(np.exp(self.logs).tolist())

    def without(self, families: Collection[str]) -> Numbers:
        """Return the constants that the other families give: one more step from here."""
        kept = [i for i, model in enumerate(self.models) if model.row.family not in families]
        values = np.exp(self.logs + self._step(kept)).tolist()
        for index, parameter in enumerate(self.laws.parameters):
            if parameter.published and parameter.family in families:
                values[index] = parameter.start
        return self.laws.numbers(values)

    def next_logs(self) -> np.ndarray:
        """Return the logarithms of better values."""
        return self.logs + np.clip(self._step(range(len(self.models))), -0.5, 0.5)

    def _step(self, kept: Sequence[int]) -> np.ndarray:
        starts = self.laws.starts
        trust = _PRIOR / np.array([each.spread for each in self.laws.parameters])
        jacobian = np.vstack([*(self.jacobians[i] for i in kept), np.diag(trust)])
        target = np.concatenate([*(-self.residuals[i] for i in kept), trust * (starts - self.logs)])
        is_free = [not each.published for each in self.laws.parameters]
        step = np.zeros(len(self.laws.parameters))
        step[is_free] = np.linalg.lstsq(jacobian[:, is_free], target, rcond=None)[0]
        return step


def fit(models: Sequence[Model], laws: Laws, *, rounds: int = 1) -> Fit:
    """Return the constants that make the least squares of the models' logarithmic errors.

    Gauss-Newton with numeric derivatives; what a parameter's start is trusted counts as one more
    observation, so a constant that no row depends on keeps it.
    """
    found = _at(models, laws, laws.starts)
    for _ in range(rounds):
        found = _at(models, laws, found.next_logs())
    return found


def _at(models: Sequence[Model], laws: Laws, logs: np.ndarray) -> Fit:
    residuals = [_residuals(model, laws, logs) for model in models]
    jacobians = [np.empty((len(found), len(logs))) for found in residuals]
    for index in range(len(logs)):
        moved = logs.copy()
        moved[index] += _STEP
        for model, base, jacobian in zip(models, residuals, jacobians, strict=True):
            jacobian[:, index] = 0
            if laws.parameters[index].concerns(model.row.kernel_class):
                jacobian[:, index] = (_residuals(model, laws, moved) - base) / _STEP
    return Fit(laws, tuple(models), logs, tuple(residuals), tuple(jacobians))


_PRIOR = 0.3
"""Weight of a starting value's trust against a relative error of one. What documents say counts as
a row does: else a family that alone tells of a constant decides it, and leaving it out shows."""


def _residuals(model: Model, laws: Laws, logs: np.ndarray) -> np.ndarray:
    if not model.row.is_fitted:
        return np.empty(0)
    predicted = model.predict(laws.numbers(np.exp(logs).tolist()))
    return np.array(
        [
            _WEIGHTS.get(quantity, _PIPE_WEIGHT) * math.log(predicted[quantity] / measured)
            for quantity, measured in model.row.measured.items()
        ]
    )


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
        result |= errors(members, found.without([family]))
    return result
