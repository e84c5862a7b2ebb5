"""What no caller waits for: trial calls, shadow calls, samples, questions to the timing model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from opkit.service.metrics import Metrics
from opkit.service.serving.background import Background
from opkit.service.serving.breaker import BreakerState
from opkit.service.serving.calls import Request, kept_copy
from opkit.service.serving.served_version import ServedVersion
from opkit.service.serving.shadow import ShadowReport
from opkit.service.serving.signature import Signature
from opkit.service.settings import OperatorSettings
from opkit.service.store import Version
from opkit.service.workers import NEUTRAL, AttemptFailed, Modelled, Ran, Runner, largest_difference

__all__ = ["Aside", "Modelling"]

MOST_MODELLED = 1024
"""Signatures of a version that the timing model is asked for."""


_SLOWER = 20
"""Times that a call may take longer when it is timed by the model."""


@dataclass(frozen=True)
class Modelling:
    """How the timing model is asked: apart from everything that calls wait for."""

    background: Background
    start: Callable[[OperatorSettings, Version], Runner]
    """Returns what asks it for a version, loaded."""
    keep: Callable[[Version, str, Modelled], None]
    """Told what it says."""


class _Operator(Protocol):
    """The operator that the work belongs to."""

    settings: OperatorSettings
    metrics: Metrics
    reference: Runner | None
    shadows: dict[str, ShadowReport]

    @property
    def name(self) -> str: ...

    @property
    def versions(self) -> Mapping[str, ServedVersion]: ...

    def judge(self, request: Request, ran: Ran, seconds: float) -> str | None: ...

    def forget_choice(self, signature: str) -> None: ...

    def forget_checks(self, label: str) -> None: ...


class Aside:
    """The work beside the calls of one operator; each piece works on a copy of a call."""

    def __init__(
        self,
        operator: _Operator,
        background: Background,
        modelling: Modelling | None,
    ) -> None:
        """Prepare; without `modelling` the timing model is not asked."""
        self._operator = operator
        self._background = background
        self._modelling = modelling

    def ask_models(
        self, versions: tuple[ServedVersion, ...], request: Request, signature: Signature
    ) -> None:
        """Ask the timing model for versions and a signature that it has not been asked for."""
        modelling = self._modelling
        if modelling is None:
            return
        text = signature.text
        for served in versions:
            if text in served.asked or len(served.asked) >= MOST_MODELLED:
                continue
            copy = kept_copy(request)

            def ask(served: ServedVersion = served, copy: Request = copy) -> None:
                if served.modeller is None:
                    served.modeller = modelling.start(self._operator.settings, served.version)
                seconds = _SLOWER * self._operator.settings.limits.attempt_seconds
                try:
                    found = served.modeller.model(copy.inputs, copy.attributes, seconds)
                except AttemptFailed as failure:
                    if failure.kind == "unavailable":
                        served.asked.discard(text)
                    return
                served.modelled[text] = found
                self._operator.forget_choice(text)
                modelling.keep(served.version, text, found)

            served.asked.add(text)
            if not modelling.background.offer(ask):
                served.asked.discard(text)

    def maybe_try(self, served: ServedVersion, request: Request) -> None:
        """Give a version that is out a copy of a call, when its time has come."""
        if served.breaker.state is not BreakerState.TRIAL or served.on_trial:
            return
        if not served.runner.is_ready:
            return
        served.on_trial = True
        copy = served.evidence or kept_copy(request)
        if not self._background.offer(lambda: self._try(served, copy)):
            served.on_trial = False

    def _try(self, served: ServedVersion, request: Request) -> None:
        seconds = self._operator.settings.limits.attempt_seconds
        self._operator.metrics.count("trial_calls", self._operator.name)
        try:
            ran = served.runner.run(request.inputs, request.attributes, seconds)
            wrong = self._operator.judge(request, ran, seconds)
            if wrong:
                raise AttemptFailed("wrong", wrong)
            if wrong is None and self._operator.reference is not None:
                # Nobody has looked at it: the version stays out.
                raise AttemptFailed("unjudged", NEUTRAL["unjudged"])
            served.evidence = None
            served.breaker.try_succeed()
            if served.breaker.is_closed:
                # Whoever comes back is looked at as whoever is new.
                self._operator.forget_checks(served.label)
        except AttemptFailed as failure:
            if failure.kind not in NEUTRAL:
                served.breaker.try_fail(failure.kind, failure.message)
        finally:
            served.on_trial = False

    def explore(self, labels: list[str], request: Request, signature: Signature) -> None:
        """Give versions that have too few measured times a copy of a call."""
        copy = kept_copy(request)
        self._background.offer(lambda: self._explore(labels, copy, signature))

    def _explore(self, labels: list[str], request: Request, signature: Signature) -> None:
        seconds = self._operator.settings.limits.attempt_seconds
        for label in labels:
            served = self._operator.versions[label]
            meter = self._operator.metrics.meter(self._operator.name, label, signature.bucket)
            try:
                ran = served.runner.run(request.inputs, request.attributes, seconds)
            except AttemptFailed as failure:
                if failure.kind not in NEUTRAL:
                    meter.failed(failure.kind)
                    served.breaker.fail(failure.kind, failure.message)
                continue
            meter.own_recent.append(ran.seconds)

    def shadow(self, label: str, request: Request, ran: Ran) -> None:
        """Give a version a copy of a call, and compare what it gives with the answer."""
        served, report = self._operator.versions[label], self._operator.shadows[label]
        copy = kept_copy(request)
        outputs = [(array.copy(), dtype) for array, dtype in ran.outputs]

        def run() -> None:
            seconds = self._operator.settings.limits.attempt_seconds
            try:
                mine = served.runner.run(copy.inputs, copy.attributes, seconds)
            except AttemptFailed as failure:
                report.add("failed", problem=f"{failure.kind}: {failure.message}")
                return
            difference = largest_difference(mine.outputs, outputs)
            if difference == 0:
                report.add("same_bits")
                return
            wrong = self._operator.judge(copy, mine, seconds)
            kind = "wrong" if wrong or (wrong is None and difference is None) else "right"
            if wrong is None and difference is not None:
                kind = "unjudged"
            report.add(kind, difference or 0.0, wrong or "")

        if not self._background.offer(run):
            report.add("left_out")
