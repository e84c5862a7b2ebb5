"""One operator, served: from a call to a version, to the next where that fails, to an answer."""

from __future__ import annotations

import random
import threading
import time

from opkit import log
from opkit.errors import BusyError, OperatorError, UsageError
from opkit.service.deployment import Deployment, place_of
from opkit.service.metrics import REFERENCE, Meter, Metrics
from opkit.service.serving.aside import Aside, Modelling
from opkit.service.serving.background import Background
from opkit.service.serving.calls import Answer, Attempt, Request, kept_copy
from opkit.service.serving.choice import (
    Choice,
    choose_measured,
    choose_modelled,
    samples_missing,
)
from opkit.service.serving.experiments import Experiment
from opkit.service.serving.served_version import ServedVersion
from opkit.service.serving.shadow import ShadowReport
from opkit.service.serving.signature import Signature, Signatures
from opkit.service.settings import OperatorSettings
from opkit.service.workers import (
    NEUTRAL,
    AttemptFailed,
    Inputs,
    Ran,
    Rule,
    Runner,
    Tensor,
    has_odd_values,
)

__all__ = ["ServedOperator"]

_MOST_CHOSEN = 1024
_MOST_FIRSTS = 16384
_CHOICE_LASTS = 64
"""Calls for which a choice by measured times is kept."""
_EXPLORE = 0.1
"""Share of the calls of which versions that have too few measured times get a copy."""


class ServedOperator:
    """The versions of one operator behind one name; thread-safe."""

    def __init__(
        self,
        settings: OperatorSettings,
        *,
        metrics: Metrics,
        background: Background,
        modelling: Modelling | None,
    ) -> None:
        """Begin without versions; without `modelling` the timing model is not asked."""
        self.name = settings.name
        self.settings = settings
        self.versions: dict[str, ServedVersion] = {}
        self.reference: Runner | None = None
        self.deployment = Deployment("")
        self.experiment = Experiment("", {})
        self.shadows: dict[str, ShadowReport] = {}
        self.last_choice: dict[str, str] = {}
        """By signature: why a version was chosen."""
        self.metrics = metrics
        self._aside = Aside(self, background, modelling)
        self._signatures = Signatures()
        self._chain: tuple[ServedVersion, ...] = ()
        self._room = threading.BoundedSemaphore(settings.limits.queue)
        self._firsts: dict[tuple[str, str], int] = {}
        self._blocks: dict[str, tuple[int, int]] = {}
        """By version: answers left in the block, and which of them is checked."""
        self._owed: set[str] = set()
        """Versions of which a check could not be done: none of their answers goes out until one is
        judged."""
        self._chosen: dict[str, tuple[Choice | None, int]] = {}

    def use(self, deployment: Deployment) -> None:
        """Answer calls as a deployment says, from now on."""
        old = self.deployment
        order = dict.fromkeys((deployment.default, *deployment.shares, *self.versions))
        chain = (self.versions[label] for label in order if label not in deployment.retired)
        if (old.default, old.shares) != (deployment.default, deployment.shares):
            self.experiment = Experiment(deployment.default, deployment.shares)
        for label in deployment.shadow:
            if label not in old.shadow:
                self.shadows[label] = ShadowReport()
        self.deployment, self._chain = deployment, tuple(chain)
        self._chosen.clear()

    @property
    def is_ready(self) -> bool:
        """Whether a call would be answered now."""
        versions = any(item.breaker.is_closed and item.runner.is_ready for item in self._chain)
        return versions or (self.reference is not None and self.reference.is_ready)

    def call(self, request: Request) -> Answer:
        """Return the answer of the first version that gives one, at the end the reference's.

        Raises:
            UsageError: no such version, or the inputs do not fit.
            BusyError: there is no room, or no time, for the call.
            OperatorError: no version answers, and there is no reference.
        """
        if not self._room.acquire(blocking=False):
            self.metrics.count("refused_busy", self.name)
            raise BusyError(
                f"{self.name}: {self.settings.limits.queue} calls are under way",
                help="call again a little later",
            )
        try:
            return self._call(request)
        finally:
            self._room.release()

    def _call(self, request: Request) -> Answer:
        begin = time.perf_counter()
        signature = self._signatures.of(request.inputs)
        chain = self._chain
        first, reason, arm = self._first(chain, request, signature)
        if first is not None and (not chain or first is not chain[0]):
            chain = (first, *(item for item in chain if item is not first))
        attempts: list[Attempt] = []
        for served in chain:
            if not served.breaker.is_closed:
                self._aside.maybe_try(served, request)
                continue
            left = request.seconds - (time.perf_counter() - begin)
            if left <= 0:
                break
            started = time.perf_counter()
            try:
                ran, checked = self._attempt(served, request, signature, left)
            except AttemptFailed as failure:
                attempts.append(Attempt(served.label, failure.kind, failure.message))
                self._count_failure(served, request, signature, failure, arm)
                continue
            seconds = time.perf_counter() - started
            self._count_answer(served, request, signature, ran, seconds, arm)
            self._blame_refusals(attempts)
            digest = served.version.digest
            total = time.perf_counter() - begin
            found = tuple(attempts)
            return Answer(ran.outputs, served.label, digest, reason, found, checked, total)
        return self._by_reference(request, signature, reason, attempts, begin)

    # Which version.

    def _first(
        self, chain: tuple[ServedVersion, ...], request: Request, signature: Signature
    ) -> tuple[ServedVersion | None, str, str]:
        """Return the version that a call goes to, why, and the experiment's arm that it is in."""
        deployment = self.deployment
        if request.version is not None:
            served = self.versions.get(request.version) or self._by_digest(request.version)
            return served, "asked for by the caller", ""
        if deployment.pins and request.caller in deployment.pins:
            served = self.versions[deployment.pins[str(request.caller)]]
            return served, "the caller is pinned to it", ""
        if deployment.shares:
            if deployment.by == "caller" and request.caller is not None:
                place = place_of(self.name, request.caller)
            else:
                place = random.random()
            label = deployment.arm(place)
            kind = "caller" if deployment.by == "caller" else "request"
            return self.versions[label], f"its share of the {kind}s", label
        if deployment.choice != "off":
            choice = self._choose(chain, request, signature)
            if choice is not None:
                return self.versions[choice.label], choice.reason, ""
        return (chain[0] if chain else None), "the default", ""

    def _by_digest(self, name: str) -> ServedVersion:
        found = [
            v
            for v in self.versions.values()
            if len(name) >= 6 and v.version.digest.startswith(name)
        ]
        if len(found) != 1:
            known = ", ".join(self.versions)
            raise UsageError(f'{self.name} has no version "{name[:64]}"', help=f"it has {known}")
        return found[0]

    def _choose(
        self, chain: tuple[ServedVersion, ...], request: Request, signature: Signature
    ) -> Choice | None:
        known, calls = self._chosen.get(signature.text, (None, 0))
        usable = [served.label for served in chain if served.breaker.is_closed]
        if known is not None and calls > 0 and known.label in usable:
            self._chosen[signature.text] = (known, calls - 1)
            return known
        if self.deployment.choice == "modelled":
            self._aside.ask_models(chain, request, signature)
            times = {
                v.label: v.modelled[signature.text] for v in chain if signature.text in v.modelled
            }
            choice = choose_modelled(usable, times, signature.text)
            lasts = _CHOICE_LASTS if len(times) == len(chain) else 1
        else:

            def meter(label: str) -> Meter:
                return self.metrics.meter(self.name, label, signature.bucket)

            missing = samples_missing(usable, meter)
            if missing and random.random() < _EXPLORE:
                self._aside.explore(missing, request, signature)
            choice = choose_measured(usable, meter, signature.bucket)
            lasts = 1 if missing else _CHOICE_LASTS
        if len(self._chosen) > _MOST_CHOSEN:
            self._chosen.clear()
            self.last_choice.clear()
        if choice is not None:
            self._chosen[signature.text] = (choice, lasts)
            self.last_choice[signature.text] = choice.reason
        return choice

    # One attempt.

    def forget_choice(self, signature: str) -> None:
        """Choose anew for a signature: there are new figures."""
        self._chosen.pop(signature, None)

    def forget_checks(self, label: str) -> None:
        """Check the first calls of a version again."""
        self._firsts = {k: n for k, n in list(self._firsts.items()) if k[0] != label}

    def _attempt(
        self, served: ServedVersion, request: Request, signature: Signature, left: float
    ) -> tuple[Ran, bool]:
        seconds = min(left, self.settings.limits.attempt_seconds)
        ran = served.runner.run(request.inputs, request.attributes, seconds)
        if self.reference is None:
            return ran, False
        is_first = self._is_first(served.label, signature)
        is_odd = ran.odd and not _any_odd(request.inputs)
        if not (is_first or is_odd or self._is_check_due(served.label)):
            return ran, False
        # A check may take what is left of the call: the reference is not on trial.
        wrong = self.judge(request, ran, max(seconds, left / 2))
        if wrong is None:
            # The answer is not given, and the version's next ones are neither until one is judged.
            self._owed.add(served.label)
            if is_first:
                key = (served.label, signature.text)
                self._firsts[key] = max(0, self._firsts.get(key, 0) - 1)
            raise AttemptFailed("unjudged", NEUTRAL["unjudged"])
        self._owed.discard(served.label)
        self.metrics.meter(self.name, served.label, signature.bucket).judged()
        if wrong:
            raise AttemptFailed("wrong", wrong)
        return ran, True

    def _is_first(self, label: str, signature: Signature) -> bool:
        """Whether this is one of a version's first calls of a signature, each one checked."""
        key = (label, signature.text)
        count = self._firsts.get(key, 0)
        if count >= self.settings.checks.first_calls:
            return False
        if len(self._firsts) >= _MOST_FIRSTS:
            self._firsts.clear()
        self._firsts[key] = count + 1
        return True

    def _is_check_due(self, label: str) -> bool:
        return label in self._owed or self._is_sampled(label)

    def _is_sampled(self, label: str) -> bool:
        """Whether it is this answer's turn: one of each block of answers is, at a random place.

        So never more than two blocks, less two answers, go out between two checks.
        """
        rate = self.settings.checks.sample_rate
        if rate <= 0:
            return False
        size = max(1, int(1 / rate))
        left, chosen = self._blocks.get(label, (0, 0))
        if left == 0:
            left, chosen = size, random.randrange(size) + 1
        self._blocks[label] = (left - 1, chosen)
        return left == chosen

    def judge(self, request: Request, ran: Ran, seconds: float) -> str | None:
        """Return why an answer is wrong, "" where it is right, None where nobody can tell."""
        if self.reference is None:
            return None
        checks = self.settings.checks
        rule = Rule(checks.standard, checks.tolerance)
        try:
            return self.reference.judge(
                request.inputs, request.attributes, ran.outputs, rule, seconds
            )
        except AttemptFailed as failure:
            self.metrics.count("reference_failed", self.name)
            log.error("SERVICE", f"{self.name}: reference: {failure.kind}: {failure.message}")
            return None

    def _by_reference(
        self,
        request: Request,
        signature: Signature,
        reason: str,
        attempts: list[Attempt],
        begin: float,
    ) -> Answer:
        kinds = {attempt.kind for attempt in attempts}
        refused = next((a for a in attempts if a.kind == "refused"), None)
        if refused is not None and kinds <= {"refused", "unsupported"}:
            raise UsageError(refused.message)
        left = request.seconds - (time.perf_counter() - begin)
        tried = "; ".join(f"{a.version}: {a.kind}: {a.message}" for a in attempts)
        if self.reference is None:
            if kinds <= set(NEUTRAL):
                raise BusyError(f"{self.name}: no version is ready. {tried}".rstrip(". "))
            raise OperatorError(
                f"{self.name}: no version answers, and none has brought a reference. {tried}",
                help="give one of its versions a golden",
            )
        if left <= 0:
            raise BusyError(f"{self.name}: no answer in {request.seconds:g} seconds. {tried}")
        started = time.perf_counter()
        try:
            ran = self.reference.run(request.inputs, request.attributes, left)
        except AttemptFailed as failure:
            self.metrics.meter(self.name, REFERENCE, signature.bucket).failed(failure.kind)
            if failure.kind == "refused":
                raise UsageError(failure.message) from failure
            if failure.kind in NEUTRAL:
                text = f"{self.name}: no version and no reference is ready. {tried}"
                raise BusyError(text.rstrip(". ")) from failure
            text = f"{self.name}: reference: {failure.kind}: {failure.message}; {tried}"
            raise OperatorError(text) from failure
        meter = self.metrics.meter(self.name, REFERENCE, signature.bucket)
        now = time.perf_counter()
        meter.answered(now - started, ran.seconds, 0.0, 0.0)
        return Answer(ran.outputs, REFERENCE, "", reason, tuple(attempts), True, now - begin)

    # What is counted.

    def _count_failure(
        self,
        served: ServedVersion,
        request: Request,
        signature: Signature,
        failure: AttemptFailed,
        arm: str,
    ) -> None:
        self.metrics.meter(self.name, served.label, signature.bucket).failed(failure.kind)
        # A refusal counts when another version takes the same inputs, and not before.
        if failure.kind in NEUTRAL or failure.kind == "refused":
            return
        served.breaker.fail(failure.kind, failure.message)
        if served.evidence is None:
            served.evidence = kept_copy(request)
        if arm == served.label:
            self.experiment.add(arm, 0.0, failed=True)

    def _blame_refusals(self, attempts: list[Attempt]) -> None:
        for attempt in attempts:
            if attempt.kind == "refused":
                self.versions[attempt.version].breaker.fail("refused", attempt.message)

    def _count_answer(
        self,
        served: ServedVersion,
        request: Request,
        signature: Signature,
        ran: Ran,
        seconds: float,
        arm: str,
    ) -> None:
        served.breaker.succeed()
        modelled = served.modelled.get(signature.text)
        device_us, energy = (modelled.task_us, modelled.energy_uj) if modelled else (0.0, 0.0)
        meter = self.metrics.meter(self.name, served.label, signature.bucket)
        meter.answered(seconds, ran.seconds, device_us, energy)
        if arm == served.label:
            self.experiment.add(arm, seconds, failed=False)
        if modelled is None and signature.text not in served.asked:
            self._aside.ask_models((served,), request, signature)
        for label, rate in self.deployment.shadow.items():
            if label != served.label and random.random() < rate:
                self._aside.shadow(label, request, ran)


def _any_odd(inputs: Inputs) -> bool:
    flat: list[Tensor] = []
    for value in inputs:
        flat += value if isinstance(value, list) else [] if value is None else [value]
    return has_odd_values(flat)
