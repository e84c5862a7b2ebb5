"""What a tuning found, as text and as an object for JSON."""

from __future__ import annotations

from typing import Any

from opkit.profiling import time_text
from opkit.tuning.session import Trial, TuningReport

__all__ = ["relief_text", "report_object", "report_text"]


def report_text(report: TuningReport) -> str:
    """Return some lines: the start, the best, what it relieves, what did not count."""
    start, best = report.start.measurement, report.best.measurement
    how = "all of them" if report.searched_all else "chosen by Optuna"
    lines = [
        f"{report.name} on {report.chip}: {time_text(start.task_us)} -> {time_text(best.task_us)},"
        f" {report.ratio:.3f} of the start (a model, not a measurement)",
        f"  start  {report.space.text(report.start.candidate)}",
        f"  best   {report.space.text(report.best.candidate)}",
        f"  {relief_text(report)}",
        f"  {len(report.trials)} of {report.space.size} candidates, {how};"
        f" {len(report.trials) - len(report.wrong)} verified, the best is clean under opkit check",
    ]
    for what, some in (("do not count", report.wrong), ("have findings", report.unclean)):
        if some:
            first = some[0]
            why = first.measurement.wrong or ", ".join(first.measurement.findings or ())
            text = f"{report.space.text(first.candidate)}: {why}"
            lines.append(f"  {len(some)} {what}, the first {text}")
    return "\n".join(lines)


def relief_text(report: TuningReport) -> str:
    """Return which pipe the best candidate relieves, and by how much."""
    if report.best.candidate == report.start.candidate:
        return "nothing is faster than the start"
    relief = report.relief
    return str(relief) if relief is not None else "relieves no single pipe: they overlap better"


def report_object(report: TuningReport) -> dict[str, Any]:
    """Return the report for JSON; holds no time of this machine, so equal runs are equal."""
    relief = report.relief
    return {
        "name": report.name,
        "chip": report.chip,
        "ratio": report.ratio,
        "searched": "all" if report.searched_all else "optuna",
        "space": {
            "size": report.space.size,
            "knobs": {knob.name: list(knob.values) for knob in report.space.knobs},
        },
        "start": _trial_object(report, report.start),
        "best": _trial_object(report, report.best),
        "relief": None
        if relief is None
        else {
            "pipe": relief.pipe,
            "saved_us": relief.saved_us,
            "busy_us": [relief.before.busy_us, relief.after.busy_us],
            "wait_us": [relief.before.wait_us, relief.after.wait_us],
        },
        "trials": [_trial_object(report, trial) for trial in report.trials],
    }


def _trial_object(report: TuningReport, trial: Trial) -> dict[str, Any]:
    names = [knob.name for knob in report.space.knobs]
    measured = trial.measurement
    return {
        "values": dict(zip(names, trial.candidate, strict=True)),
        "task_us": measured.task_us if measured.verified else None,
        "wrong": measured.wrong,
        "findings": measured.findings,
    }
