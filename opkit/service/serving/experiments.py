"""An experiment between versions: what each has measured, and which is better."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from opkit.service.serving.statistics import (
    ALPHA,
    Interval,
    RunningMean,
    sequence_half_width,
    wilson_interval,
)

__all__ = ["Experiment", "Verdict"]


@dataclass
class _Arm:
    """One version's calls: those that it was chosen for, also where another one then answered."""

    latency: RunningMean = field(default_factory=RunningMean)
    """Mean of the logarithm of seconds: ratios of versions are what is compared."""
    calls: int = 0
    failures: int = 0


@dataclass(frozen=True)
class Verdict:
    """One version against the default."""

    version: str
    against: str
    latency_ratio: Interval
    """Ratio of geometric means; below 1 the version is faster. Bounds hold at every look."""
    better: str
    """The better one's label; "" while that is not decided."""
    text: str


class Experiment:
    """The arms of one operator since its shares were last changed; thread-safe."""

    def __init__(self, default: str, shares: Mapping[str, float]) -> None:
        """Begin with nothing measured."""
        self.default = default
        self.shares = dict(shares)
        self._arms = {label: _Arm() for label in (default, *shares)}
        self._lock = threading.Lock()

    @property
    def is_running(self) -> bool:
        """Whether there is anything to compare."""
        return bool(self.shares)

    def add(self, label: str, seconds: float, *, failed: bool) -> None:
        """Count one call that a version was chosen for."""
        arm = self._arms.get(label)
        if arm is None:
            return
        with self._lock:
            arm.calls += 1
            if failed:
                arm.failures += 1
            else:
                arm.latency.add(math.log(max(seconds, 1e-9)))

    def verdicts(self) -> list[Verdict]:
        """Return each version against the default."""
        with self._lock:
            return [self._verdict(label) for label in self.shares]

    def to_json(self) -> dict[str, Any]:
        """Return arms and verdicts as JSON has them."""
        arms = []
        with self._lock:
            for label, arm in self._arms.items():
                errors = wilson_interval(arm.failures, arm.calls)
                mean = arm.latency
                half = sequence_half_width(mean.count, mean.deviation)
                share = self.shares.get(label, 1 - sum(self.shares.values()))
                arms.append(
                    {
                        "version": label,
                        "share": share,
                        "calls": arm.calls,
                        "failures": arm.failures,
                        "error_rate": [errors.value, errors.low, errors.high],
                        "latency_us": _bounds(mean.mean, half) if mean.count else None,
                    }
                )
            verdicts = [self._verdict(label) for label in self.shares]
        return {
            "confidence": 1 - ALPHA,
            "arms": arms,
            "verdicts": [
                {
                    "version": item.version,
                    "against": item.against,
                    "better": item.better,
                    "text": item.text,
                    "latency_ratio": _finite(item.latency_ratio),
                }
                for item in verdicts
            ],
        }

    def _verdict(self, label: str) -> Verdict:
        mine, theirs = self._arms[label], self._arms[self.default]
        half = sum(
            # Each side may be wrong half as often, so that both together are not more often.
            sequence_half_width(arm.latency.count, arm.latency.deviation, ALPHA / 2)
            for arm in (mine, theirs)
        )
        difference = mine.latency.mean - theirs.latency.mean
        ratio = Interval(math.exp(difference), _exp(difference - half), _exp(difference + half))
        errors = [wilson_interval(arm.failures, arm.calls, ALPHA / 2) for arm in (mine, theirs)]
        if errors[0].low > errors[1].high:
            better = self.default
            why = f"{label} fails more often: {_rate(errors[0])} against {_rate(errors[1])}"
        elif errors[0].high < errors[1].low:
            better = label
            why = f"{label} fails less often: {_rate(errors[0])} against {_rate(errors[1])}"
        elif ratio.high < 1:
            better, why = label, f"{label} is faster: {_ratio(ratio)} of {self.default}'s time"
        elif ratio.low > 1:
            better = self.default
            why = f"{label} is slower: {_ratio(ratio)} of {self.default}'s time"
        else:
            better = ""
            counts = f"{mine.calls} and {theirs.calls} calls"
            why = f"not decided after {counts}: {_ratio(ratio)} of {self.default}'s time"
        return Verdict(label, self.default, ratio, better, why)


def _exp(value: float) -> float:
    return math.exp(min(700.0, max(-700.0, value)))


def _bounds(mean: float, half: float) -> list[float | None]:
    if not math.isfinite(half):
        return [1e6 * _exp(mean), None, None]
    return [1e6 * _exp(value) for value in (mean, mean - half, mean + half)]


def _finite(interval: Interval) -> list[float | None]:
    known = math.isfinite(interval.high) and interval.high < 1e9
    return [interval.value, interval.low, interval.high] if known else [None, None, None]


def _rate(interval: Interval) -> str:
    value, low, high = (float(f"{100 * part:.2g}") for part in vars(interval).values())
    return f"{value:g} % ({low:g} to {high:g} %)"


def _ratio(interval: Interval) -> str:
    if not math.isfinite(interval.high) or interval.high > 1e9:
        return "not yet any share"
    return f"{interval.value:.3g} ({interval.low:.3g} to {interval.high:.3g})"
