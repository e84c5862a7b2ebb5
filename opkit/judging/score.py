"""Scores of candidates.

    h = (base - bound) / ((time - bound) + (base - bound))

0.5 at the base, a time that is known to be reached, such as the vendor's library's; 1 at the bound.
A case scores right x (0.3 + 0.5 h), a candidate 100 x (0.2 compiled + the mean over the cases).
Source: the public benchmark's own score (cann-bench, scoring).
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["FORMULA", "case_part", "speed_share", "total_score"]

FORMULA = (
    "100 * (0.2 * compiled + mean over cases of right * (0.3 + 0.5 * h)),"
    " h = (base - bound) / ((time - bound) + (base - bound))"
)


def speed_share(time_us: float, *, base_us: float, bound_us: float) -> float | None:
    """Return h, 0 to 1; None where the base is not above the bound, which then says nothing."""
    gain = base_us - bound_us
    if gain <= 0:
        return None
    return gain / (max(time_us - bound_us, 0.0) + gain)


def case_part(is_right: bool, share: float | None) -> float:
    """Return a case's part of the score; a right one without a time has none, as a wrong one."""
    return 0.3 + 0.5 * share if is_right and share is not None else 0.0


def total_score(is_compiled: bool, parts: Sequence[float]) -> float:
    """Return a candidate's score, 0 to 100, from its cases' parts."""
    return 100 * (0.2 * is_compiled + (sum(parts) / len(parts) if parts else 0.0))
