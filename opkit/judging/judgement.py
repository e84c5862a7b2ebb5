"""What judging a candidate came to, as data, as JSON, as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from opkit.judging.findings import JudgeFinding, JudgeGap
from opkit.judging.kinds import Kind
from opkit.judging.score import FORMULA, case_part, speed_share, total_score

__all__ = ["JudgedCase", "Judgement", "judgement_object", "judgement_text"]


@dataclass(frozen=True)
class JudgedCase:
    """One case of the task."""

    name: str
    elements: int
    """Elements of its outputs, by the golden."""
    is_right: bool
    verdict: str
    """`right`, `wrong`, `not judged`, or why there is no result."""
    figure: str = ""
    """The precision figure that comes nearest its limit."""
    value: float = 0.0
    limit: float = 0.0
    time_us: float | None = None
    """Task time in the model of the chip, over all of its launches."""
    band_percent: float | None = None
    bound_us: float | None = None
    base_us: float | None = None

    @property
    def share(self) -> float | None:
        """Its h; None where it has no time, or nothing is known to compare with."""
        if self.time_us is None or self.base_us is None or self.bound_us is None:
            return None
        return speed_share(self.time_us, base_us=self.base_us, bound_us=self.bound_us)


@dataclass(frozen=True)
class Judgement:
    """One candidate."""

    task: str
    operator: str
    chip: str
    standard: str
    is_compiled: bool
    cases: tuple[JudgedCase, ...]
    findings: tuple[JudgeFinding, ...]
    left_out: int
    """Cases of the task that were left out from the start."""
    gaps: tuple[JudgeGap, ...] = ()
    """Launches that opkit itself could not finish."""
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)
    """Wall time of the steps on this machine; no part of the verdict."""
    kind: Kind = "project"
    """Kind of the candidate."""

    @property
    def is_judged(self) -> bool:
        """Whether opkit could finish every launch: else nothing is said for the candidate."""
        return not self.gaps

    @property
    def is_right(self) -> bool:
        """Whether there were cases, and each is right, with every launch finished."""
        return self.is_judged and bool(self.cases) and all(case.is_right for case in self.cases)

    @property
    def verdict(self) -> str:
        """`accepted`, `refused` or `not judged`."""
        if self.is_accepted:
            return "accepted"
        wrong = any(case.verdict == "wrong" for case in self.cases)
        return "not judged" if self.gaps and not self.findings and not wrong else "refused"

    @property
    def is_accepted(self) -> bool:
        """Whether it is right, and nothing speaks against it."""
        return self.is_compiled and self.is_right and not self.findings

    @property
    def score(self) -> float | None:
        """By `FORMULA`, over the cases that have a base; None where none has."""
        based = [case for case in self.cases if case.base_us is not None]
        if not self.is_compiled:
            return 0.0
        if not based or self.verdict == "not judged":
            return None
        # What was caught cheating has no right case.
        parts = [case_part(case.is_right and not self.findings, case.share) for case in based]
        return total_score(self.is_compiled, parts)

    @property
    def timed(self) -> JudgedCase | None:
        """The largest case that has a time."""
        timed = [case for case in self.cases if case.time_us is not None]
        return max(timed, key=lambda case: case.elements, default=None)

    @property
    def worst(self) -> JudgedCase | None:
        """The case that is wrong, else comes nearest its limit."""
        return max(self.cases, key=_badness, default=None)


def _badness(case: JudgedCase) -> tuple[bool, float]:
    if case.limit <= 0:
        return not case.is_right, float("inf") if case.value > 0 else 0.0
    return not case.is_right, case.value / case.limit


def judgement_object(judgement: Judgement, *, with_seconds: bool = False) -> dict[str, object]:
    """Return the JSON document: the same for the same candidate and task, unless it has seconds."""
    worst, timed, score = judgement.worst, judgement.timed, judgement.score
    document: dict[str, object] = {
        "task": judgement.task,
        "operator": judgement.operator,
        "kind": judgement.kind,
        "chip": judgement.chip,
        "standard": judgement.standard,
        "verdict": judgement.verdict,
        "accepted": judgement.is_accepted,
        "compiled": judgement.is_compiled,
        "right": judgement.is_right,
        "cases": {
            "judged": len(judgement.cases),
            "right": sum(case.is_right for case in judgement.cases),
            "left_out": judgement.left_out,
            "worst": None if worst is None else _figure(worst),
        },
        "findings": [each.as_object() for each in sorted(judgement.findings)],
        "gaps": [each.as_object() for each in sorted(judgement.gaps)],
        "time": None if timed is None else {"case": timed.name, **_times(timed)},
        "score": None if score is None else round(score, 2),
        "score_formula": FORMULA,
        "results": [
            {
                "case": case.name,
                "elements": case.elements,
                "right": case.is_right,
                "verdict": case.verdict,
                "worst": _figure(case),
                **_times(case),
            }
            for case in sorted(judgement.cases, key=lambda case: case.name)
        ],
    }
    if with_seconds:
        document["seconds"] = {name: round(value, 3) for name, value in judgement.seconds.items()}
    return document


def _figure(case: JudgedCase) -> dict[str, object]:
    return {
        "case": case.name,
        "figure": case.figure or None,
        "value": float(f"{case.value:.4g}") if case.value < float("inf") else None,
        "limit": float(f"{case.limit:.4g}"),
    }


def _times(case: JudgedCase) -> dict[str, float | None]:
    share = case.share
    return {
        "time_us": _rounded(case.time_us),
        "band_percent": case.band_percent,
        "bound_us": _rounded(case.bound_us),
        "base_us": _rounded(case.base_us),
        "h": None if share is None else round(share, 4),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def judgement_text(judgement: Judgement) -> str:
    """Return some lines for a terminal."""
    right = sum(case.is_right for case in judgement.cases)
    verdict = judgement.verdict
    lines = [f"{judgement.task}: {verdict}; {right} of {len(judgement.cases)} cases right"]
    worst, timed, score = judgement.worst, judgement.timed, judgement.score
    if worst is not None and worst.figure:
        lines[0] += f", worst {worst.figure} {worst.value:.3g} of {worst.limit:.3g} ({worst.name})"
    if not judgement.is_compiled:
        lines[0] = f"{judgement.task}: {verdict}; it does not compile"
    if judgement.left_out:
        lines.append(f"  {judgement.left_out} cases of the task are left out")
    if timed is not None and timed.time_us is not None:
        band = "" if timed.band_percent is None else f" ± {timed.band_percent:g} %"
        bound = "" if timed.bound_us is None else f"; bound {timed.bound_us:.2f} us"
        base = "" if timed.base_us is None else f"; base {timed.base_us:.2f} us"
        lines.append(
            f"  {timed.time_us:.2f} us{band} on {judgement.chip} (a model){bound}{base}:"
            f" {timed.name}"
        )
    if score is not None:
        lines.append(f"  score {score:.1f} of 100")
    for each in sorted(judgement.findings):
        place = f"{each.file}:{each.line}: " if each.file else ""
        lines.append(f"  {each.id}: {place}{each.message}")
        if each.cases:
            lines.append(f"      in {', '.join(each.cases)}")
    for gap in sorted(judgement.gaps):
        lines.append(f"  not judged: {gap.message} [{gap.category}], in {', '.join(gap.cases)}")
    return "\n".join(lines)
