"""Whether a case gives the same bits every time: repeats, thread counts, orders of its blocks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from opkit.errors import OpkitError
from opkit.schema import OpSpec
from opkit.testing.cases import Case
from opkit.testing.launching import Library, launch_of
from opkit.testing.numbers import Array

__all__ = ["SETTINGS", "DeterminismResult", "Difference", "Setting", "check_determinism"]


@dataclass(frozen=True)
class Setting:
    """What one launch runs under."""

    threads: int
    """Threads of the host; 0: as many as it has cores."""
    seed: int
    """Seed of the order in which blocks are taken; 0 is the usual order."""

    def __str__(self) -> str:
        if not self.threads:
            threads = "as many threads as there are cores"
        else:
            threads = f"{self.threads} thread{'s' if self.threads != 1 else ''}"
        return f"{threads}, block order {self.seed}" if self.seed else threads


@dataclass(frozen=True)
class Difference:
    """Where a launch gave other bits than the first."""

    setting: Setting
    output: int
    elements: int
    """How many elements of this output differ."""
    index: tuple[int, ...]
    """The first of them."""

    def __str__(self) -> str:
        place = ", ".join(map(str, self.index))
        return f"{self.setting}: output {self.output} differs in {self.elements}, first [{place}]"


@dataclass(frozen=True)
class DeterminismResult:
    """One case's launches, compared."""

    case: Case
    runs: int
    digest: str
    """SHA-256 over the first launch's outputs."""
    differences: tuple[Difference, ...]
    message: str
    """Why it was not compared, where a launch failed."""

    @property
    def passed(self) -> bool:
        """Whether every launch gave the same bits."""
        return not self.differences and not self.message


# Two repeats as they are, then one by one what must not matter.
SETTINGS = (
    *(Setting(1, 0), Setting(1, 0)),
    *(Setting(2, 0), Setting(4, 0)),
    *(Setting(1, 1), Setting(1, 2), Setting(2, 3)),
)
"""What nothing may depend on."""


def check_determinism(
    case: Case,
    spec: OpSpec,
    library: Library,
    configure: Callable[[Setting], None],
    *,
    settings: Sequence[Setting] = SETTINGS,
) -> DeterminismResult:
    """Launch a case under each setting and compare the bits of its outputs with the first's.

    Args:
        configure: makes later launches run under a setting.
    """
    launch = launch_of(case, spec)
    first: list[Array] | None = None
    differences = []
    for setting in settings:
        configure(setting)
        try:
            outputs = launch(library)
        except OpkitError as error:
            if error.exit_code == OpkitError.exit_code:
                raise
            return DeterminismResult(case, 0, "", (), f"{setting}: {error}")
        if first is None:
            first = outputs
            continue
        differences += _differences(first, outputs, setting)
    digest = hashlib.sha256()
    for array in first or []:
        digest.update(np.ascontiguousarray(array).tobytes())
    return DeterminismResult(case, len(settings), digest.hexdigest(), tuple(differences), "")


def _differences(
    first: Sequence[Array], outputs: Sequence[Array], setting: Setting
) -> list[Difference]:
    found = []
    for number, (one, other) in enumerate(zip(first, outputs, strict=True)):
        # Bits, not values: NaN is not equal to itself, and two zeros are.
        bits = np.dtype(f"u{one.itemsize}")
        wrong = np.flatnonzero(
            np.ascontiguousarray(one).reshape(-1).view(bits)
            != np.ascontiguousarray(other).reshape(-1).view(bits)
        )
        if wrong.size:
            index = tuple(int(n) for n in np.unravel_index(int(wrong[0]), one.shape))
            found.append(Difference(setting, number, int(wrong.size), index))
    return found
