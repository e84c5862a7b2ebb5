"""Subjects whose times are formulas, so that no kernel has to be built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from opkit.executor import Work
from opkit.tuning import Knob, Measurement, PipeLoad, Space, Subject

TimeOf = Callable[..., float]


@pytest.fixture
def make_subject() -> Callable[..., Subject]:
    """A subject of two knobs; `wrong` and `unclean` say which candidates are."""

    def make(
        time_of: TimeOf,
        *,
        values: int = 8,
        wrong: Callable[..., bool] = lambda *c: False,
        unclean: Callable[..., bool] = lambda *c: False,
        ran: list[Any] | None = None,
    ) -> Subject:
        def begin(setup: object, folders: Mapping[str, Path]) -> Callable[[Any], Measurement]:
            def run(case: Any) -> Measurement:
                kind, candidate = case
                if ran is not None:
                    ran.append(case)
                if kind == "check":
                    return Measurement(0.0, findings=("RACE",) if unclean(*candidate) else ())
                if wrong(*candidate):
                    return Measurement(0.0, wrong="misses the standard")
                time_us = time_of(*candidate)
                loads = (PipeLoad("MTE2", time_us / 2, 1.0), PipeLoad("V", 1.0, 0.0))
                return Measurement(time_us, 1.0, loads)

            return run

        numbers = tuple(range(values))
        space = Space((Knob("tiles", numbers, 0), Knob("blocks", numbers, 0)))
        return Subject("scale", "Ascend910B2", space, Work(begin, None), "abc")

    return make
