"""Which candidates to measure: all where they are few, else those that Optuna asks for.

A batch has the same candidates whatever the number of workers, and is told in its own order: so the
same seed leads the same way, also from a state that an ended run has left.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from opkit.errors import SetupError
from opkit.tuning.measurement import Measurement
from opkit.tuning.space import Candidate, Space

__all__ = ["Budget", "search", "searches_all"]

_BATCH = 16
_SMALL = 256
"""Candidates that are all measured where only a time limits them."""


@dataclass(frozen=True)
class Budget:
    """How long to search; either may be missing."""

    candidates: int | None = 200
    seconds: float | None = None


Run = Callable[[Sequence[Candidate]], list[Measurement]]


def searches_all(space: Space, budget: Budget) -> bool:
    """Return whether every candidate is measured."""
    most = _SMALL if budget.candidates is None else budget.candidates
    return space.size <= most


def search(
    space: Space, run: Run, *, budget: Budget, seed: int = 0
) -> dict[Candidate, Measurement]:
    """Return what was measured, the start first.

    Raises:
        SetupError: the space is large and Optuna is not installed.
    """
    end = time.monotonic() + budget.seconds if budget.seconds is not None else None
    tried: dict[Candidate, Measurement] = {}
    batches = _every(space) if searches_all(space, budget) else _asked(space, tried, budget, seed)
    for batch in batches:
        for candidate, measurement in zip(batch, run(batch), strict=True):
            tried[candidate] = measurement
        if end is not None and time.monotonic() > end:
            break
    return tried


def _every(space: Space) -> Iterator[list[Candidate]]:
    yield [space.start]
    rest = (candidate for candidate in space.candidates() if candidate != space.start)
    while batch := list(itertools.islice(rest, _BATCH)):
        yield batch


def _asked(
    space: Space, tried: dict[Candidate, Measurement], budget: Budget, seed: int
) -> Iterator[list[Candidate]]:
    study, distributions = _study(space, seed)
    yield [space.start]
    most = space.size if budget.candidates is None else min(budget.candidates, space.size)
    chance = random.Random(seed)
    while len(tried) < most:
        size = min(_BATCH, most - len(tried))
        asked = []
        for _ in range(size):
            trial = study.ask(distributions)
            indices = [trial.params[knob.name] for knob in space.knobs]
            asked.append((trial, space.at(indices)))
        # Half of a batch stays near the best: on a grid the last percent is a step away.
        fresh = dict.fromkeys(c for _, c in asked[: max(1, size // 2)] if c not in tried)
        for candidate in itertools.chain(
            _near_best(space, tried), (c for _, c in asked), _unseen(space, chance)
        ):
            if len(fresh) >= size:
                break
            if candidate not in tried:
                fresh.setdefault(candidate)
        yield list(fresh)
        _tell(study, asked, tried)
        _add(study, space, distributions, tried, fresh.keys() - {c for _, c in asked})


def _near_best(space: Space, tried: dict[Candidate, Measurement]) -> Iterator[Candidate]:
    good = sorted((m.task_us, at, c) for at, (c, m) in enumerate(tried.items()) if m.verified)
    for _, _, candidate in good[:3]:
        yield from space.neighbours(candidate)


def _unseen(space: Space, chance: random.Random) -> Iterator[Candidate]:
    for _ in range(1000):
        yield space.at([chance.randrange(len(knob.values)) for knob in space.knobs])
    yield from space.candidates()


def _study(space: Space, seed: int) -> tuple[Any, dict[str, Any]]:
    try:
        import optuna
    except ImportError as err:
        raise SetupError(
            f"{space.size} candidates are too many to try each, and Optuna is not installed",
            help='pip install "opkit[tune]", or raise --budget, or give fewer values with --knob',
        ) from err
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        # Of options that it calls experimental.
        warnings.simplefilter("ignore")
        sampler = optuna.samplers.TPESampler(
            seed=seed, multivariate=True, constant_liar=True, n_startup_trials=_BATCH
        )
    study = optuna.create_study(sampler=sampler, direction="minimize")
    distributions = {
        knob.name: optuna.distributions.IntDistribution(0, len(knob.values) - 1)
        for knob in space.knobs
    }
    return study, distributions


def _tell(
    study: Any, asked: Sequence[tuple[Any, Candidate]], tried: dict[Candidate, Measurement]
) -> None:
    import optuna

    for trial, candidate in asked:
        measurement = tried.get(candidate)
        if measurement is not None and measurement.verified:
            study.tell(trial, measurement.task_us)
        else:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)


def _add(
    study: Any,
    space: Space,
    distributions: dict[str, Any],
    tried: dict[Candidate, Measurement],
    others: set[Candidate],
) -> None:
    """Tell the study of candidates that it has not asked for."""
    import optuna

    for candidate in sorted(others, key=lambda c: list(tried).index(c)):
        if tried[candidate].verified:
            params = dict(zip((k.name for k in space.knobs), space.indices(candidate), strict=True))
            with contextlib.suppress(ValueError):
                study.add_trial(
                    optuna.trial.create_trial(
                        params=params,
                        distributions=distributions,
                        value=tried[candidate].task_us,
                    )
                )
