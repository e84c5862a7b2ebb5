"""Intervals for what an experiment measures, by a few lines of arithmetic.

Somebody looks at a running experiment again and again, and stops when it looks good. An ordinary
95 % interval is wrong far more often than in 5 % of such experiments; these hold at all times at
once. Source: Waudby-Smith, Arbour, Sinha, Kennedy, Ramdas, "Time-uniform central limit theory and
asymptotic confidence sequences" (Annals of Statistics, 2024), theorem 2.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Interval", "RunningMean", "sequence_half_width", "wilson_interval"]

ALPHA = 0.05
"""How often an interval may be wrong."""
_TIGHTEST_AT = 500
"""Samples at which the sequence is tightest."""


@dataclass(frozen=True)
class Interval:
    """A value with the bounds that it lies between."""

    value: float
    low: float
    high: float


@dataclass
class RunningMean:
    """Mean and variance of a stream of numbers (Welford)."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> None:
        """Take one number in."""
        self.count += 1
        delta = value - self.mean
        self.mean += delta / self.count
        self.squares += delta * (value - self.mean)

    @property
    def deviation(self) -> float:
        """The standard deviation; infinite below two numbers."""
        return math.sqrt(self.squares / (self.count - 1)) if self.count > 1 else math.inf


def sequence_half_width(count: int, deviation: float, alpha: float = ALPHA) -> float:
    """Return how far the mean of `count` numbers may be off, at all counts at once."""
    if count < 2 or not math.isfinite(deviation):
        return math.inf
    spread = -2 * math.log(alpha)
    rho_squared = (spread + math.log(spread) + 1) / _TIGHTEST_AT
    grown = count * rho_squared + 1
    return deviation * math.sqrt(
        2 * grown / (count**2 * rho_squared) * math.log(math.sqrt(grown) / alpha)
    )


def wilson_interval(failures: int, count: int, alpha: float = ALPHA) -> Interval:
    """Return the rate of failures with Wilson's bounds, for one look. Source: Wilson, JASA 1927."""
    if count == 0:
        return Interval(0.0, 0.0, 1.0)
    z = _normal_quantile(1 - alpha / 2)
    rate = failures / count
    middle = (rate + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count)
    half *= math.sqrt(rate * (1 - rate) / count + z * z / (4 * count * count))
    # Exactly 0 or 1 where none or all failed: what rounding leaves is not a bound.
    low = 0.0 if failures == 0 else max(0.0, middle - half)
    high = 1.0 if failures == count else min(1.0, middle + half)
    return Interval(rate, low, high)


def _normal_quantile(share: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(share)
