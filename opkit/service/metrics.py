"""What is counted for each operator, version and shape bucket, and Prometheus' text of it."""

from __future__ import annotations

import bisect
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from opkit.service.energy import MODEL

__all__ = ["CONTENT_TYPE", "Gauges", "Meter", "Metrics", "quantile"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LATENCY_BOUNDS = (5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.5, 1.0, 5.0)
"""Upper bounds of the histogram's buckets, in seconds."""
REFERENCE = "reference"
"""The version of answers that the CPU reference gave; no label may be it."""

_KEPT = 512
_LABELS = ("operator", "version", "shapes")


class Meter:
    """Attempts of one version in one shape bucket; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.outcomes: dict[str, int] = {}
        """Attempts by what came of them: `ok`, or a key of `attempts.FAILURES` or `NEUTRAL`."""
        self.histogram = [0] * (len(LATENCY_BOUNDS) + 1)
        self.seconds = 0.0
        self.device_us = 0.0
        self.energy_uj = 0.0
        self.checked = 0
        """Answers that were held against the reference, those that were wrong included."""
        self.recent: deque[float] = deque(maxlen=_KEPT)
        """Seconds of the last attempts that gave an answer."""
        self.own_recent: deque[float] = deque(maxlen=_KEPT)
        """The same in the version's own code, without the way there."""

    def answered(
        self, seconds: float, own_seconds: float, device_us: float, energy_uj: float
    ) -> None:
        """Count an attempt that gave an answer."""
        with self._lock:
            self.outcomes["ok"] = self.outcomes.get("ok", 0) + 1
            self.histogram[bisect.bisect_left(LATENCY_BOUNDS, seconds)] += 1
            self.seconds += seconds
            self.device_us += device_us
            self.energy_uj += energy_uj
            self.recent.append(seconds)
            self.own_recent.append(own_seconds)

    def failed(self, kind: str) -> None:
        """Count an attempt that gave none."""
        with self._lock:
            self.outcomes[kind] = self.outcomes.get(kind, 0) + 1

    def judged(self) -> None:
        """Count an answer that was held against the reference."""
        with self._lock:
            self.checked += 1

    @property
    def answers(self) -> int:
        """Attempts that gave an answer."""
        return self.outcomes.get("ok", 0)

    @property
    def unchecked(self) -> int:
        """Answers that went out and were not held against a reference."""
        return max(0, self.answers - self.checked + self.outcomes.get("wrong", 0))


@dataclass(frozen=True)
class Gauges:
    """What a service knows of a version besides its attempts."""

    operator: str
    version: str
    memory_bytes: int
    breaker_open: bool
    ready: bool
    restarts: int
    share: float


@dataclass
class Metrics:
    """All meters of a service."""

    gauges: Callable[[], Iterable[Gauges]] = tuple
    """Asked when somebody wants the text."""
    meters: dict[tuple[str, str, str], Meter] = field(default_factory=dict)
    counters: dict[tuple[str, str], int] = field(default_factory=dict)
    """Things that happened, by name and operator."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def meter(self, operator: str, version: str, bucket: str) -> Meter:
        """Return the meter of an operator, version and bucket."""
        key = (operator, version, bucket)
        found = self.meters.get(key)
        if found is None:
            with self._lock:
                found = self.meters.setdefault(key, Meter())
        return found

    def count(self, name: str, operator: str = "") -> None:
        """Count something that happened; names are opkit's own, never a caller's."""
        with self._lock:
            key = (name, operator)
            self.counters[key] = self.counters.get(key, 0) + 1

    def of(self, operator: str, version: str) -> list[tuple[str, Meter]]:
        """Return a version's meters with their buckets."""
        return [
            (bucket, meter)
            for (name, label, bucket), meter in list(self.meters.items())
            if (name, label) == (operator, version)
        ]

    def text(self) -> str:
        """Return everything in Prometheus' text format."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Collector(self))
        return generate_latest(registry).decode()


class _Collector(Collector):
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Any]:
        yield from self._of_meters()
        yield from self._of_versions()
        happened = CounterMetricFamily(
            "opkit_events", "Things that happened", labels=("event", "operator")
        )
        for (name, operator), count in sorted(self._metrics.counters.items()):
            happened.add_metric((name, operator), count)
        yield happened

    def _of_meters(self) -> Iterator[Any]:
        attempts = CounterMetricFamily(
            "opkit_attempts",
            "Attempts by operator, version, power-of-two shape bucket and outcome",
            labels=(*_LABELS, "outcome"),
        )
        latency = HistogramMetricFamily(
            "opkit_latency_seconds", "Time of attempts that gave an answer", labels=_LABELS
        )
        families = {
            "device_us": CounterMetricFamily(
                "opkit_modelled_device_microseconds",
                "Time on the modelled chip: a model, not a measurement",
                labels=_LABELS,
            ),
            "energy_uj": CounterMetricFamily(
                "opkit_estimated_energy_microjoules", f"Energy, {MODEL}", labels=_LABELS
            ),
            "checked": CounterMetricFamily(
                "opkit_checked_answers", "Answers held against the reference", labels=_LABELS
            ),
            "unchecked": CounterMetricFamily(
                "opkit_unchecked_answers",
                "Answers that went out and were not held against the reference",
                labels=_LABELS,
            ),
        }
        for key, meter in sorted(self._metrics.meters.items()):
            for outcome, count in sorted(meter.outcomes.items()):
                attempts.add_metric((*key, outcome), count)
            total, buckets = 0, []
            for bound, count in zip((*LATENCY_BOUNDS, "+Inf"), meter.histogram, strict=True):
                total += count
                buckets.append((str(bound), total))
            latency.add_metric(key, buckets, meter.seconds)
            for name, family in families.items():
                family.add_metric(key, getattr(meter, name))
        yield attempts
        yield latency
        yield from families.values()

    def _of_versions(self) -> Iterator[Any]:
        texts = {
            "memory_bytes": "Resident memory of the version's workers",
            "breaker_open": "1 while the version is taken out",
            "ready": "1 while the version has a worker that is ready",
            "restarts": "Workers that had to be replaced",
            "share": "Share of the calls that the version gets",
        }
        families = {
            name: GaugeMetricFamily(f"opkit_version_{name}", text, labels=("operator", "version"))
            for name, text in texts.items()
        }
        for gauges in self._metrics.gauges():
            for name, family in families.items():
                family.add_metric((gauges.operator, gauges.version), float(getattr(gauges, name)))
        yield from families.values()


def quantile(values: Iterable[float], share: float) -> float | None:
    """Return the value that a share of the values do not exceed; None where there are none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None
