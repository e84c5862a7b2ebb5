"""Which version is fastest for a call's shapes, by what was modelled or measured, and why."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from opkit.service.metrics import Meter, quantile
from opkit.service.workers import Modelled

__all__ = ["Choice", "choose_measured", "choose_modelled", "samples_missing"]

SAMPLES = 20
"""Measured calls of a bucket that a version needs before it is compared."""


@dataclass(frozen=True)
class Choice:
    """A version, and why it was taken."""

    label: str
    reason: str


def choose_modelled(
    labels: Sequence[str], known: Mapping[str, Modelled], signature: str
) -> Choice | None:
    """Return the version with the least modelled time; None where nothing is known.

    Of equal times the earlier label counts, so that nothing changes without a gain.
    """
    times = [(known[label].task_us, label) for label in labels if label in known]
    if not times:
        return None
    best = min(times, key=lambda item: item[0])
    others = ", ".join(f"{label} {us:.3g} us" for us, label in times if label != best[1])
    band = known[best[1]].band_percent
    within = f" ± {band:.0f} %" if band is not None else ""
    reason = f"{best[1]} {best[0]:.3g} us{within} modelled for {signature}"
    return Choice(best[1], f"{reason}; {others}" if others else reason)


def choose_measured(
    labels: Sequence[str], meter: Callable[[str], Meter], bucket: str
) -> Choice | None:
    """Return the version with the least median time of its own code in a bucket of shapes."""
    times = []
    for label in labels:
        recent = list(meter(label).own_recent)
        median = quantile(recent, 0.5)
        if median is not None and len(recent) >= SAMPLES:
            times.append((median, label))
    if not times:
        return None
    best = min(times, key=lambda item: item[0])
    others = ", ".join(f"{label} {1e6 * s:.3g} us" for s, label in times if label != best[1])
    reason = f"{best[1]} {1e6 * best[0]:.3g} us, median measured on this machine for {bucket}"
    return Choice(best[1], f"{reason}; {others}" if others else reason)


def samples_missing(labels: Collection[str], meter: Callable[[str], Meter]) -> list[str]:
    """Return the versions that need more measured calls."""
    return [label for label in labels if len(meter(label).own_recent) < SAMPLES]
