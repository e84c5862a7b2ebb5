"""What a tuning found, as text, as an object for JSON, and as a page that shows the landscape."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from html import escape
from typing import Any

from opkit.profiling import framed, table_html, time_text
from opkit.tuning.session import Trial, TuningReport
from opkit.tuning.space import Value

__all__ = ["landscape_page", "report_object", "report_text"]

_WIDTH, _HEIGHT, _MARGIN = 760, 220, 46
_LISTED = 12


def report_text(report: TuningReport) -> str:
    """Return some lines: the start, the best, what it relieves, what did not count."""
    start, best = report.start.measurement, report.best.measurement
    how = "all of them" if report.searched_all else "chosen by Optuna"
    lines = [
        f"{report.name} on {report.chip}: {time_text(start.task_us)} -> {time_text(best.task_us)},"
        f" {report.ratio:.3f} of the start (a model, not a measurement)",
        f"  start  {report.space.text(report.start.candidate)}",
        f"  best   {report.space.text(report.best.candidate)}",
        f"  {_relief_text(report)}",
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


def _relief_text(report: TuningReport) -> str:
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


def landscape_page(report: TuningReport, *, made: str = "") -> str:
    """Return a page: the candidates in their order, the best time of each pair of values."""
    good = [trial for trial in report.trials if trial.measurement.verified]
    parts = [
        f"<h1>{escape(report.name)} on {escape(report.chip)}</h1>",
        f'<p><span class="time">{time_text(report.best.measurement.task_us)}</span> from'
        f" {time_text(report.start.measurement.task_us)}: {report.ratio:.3f}; a model, not a"
        " measurement</p>",
        f"<p>{escape(_relief_text(report))}</p>",
        *([f'<p class="quiet">{escape(made)}</p>'] if made else []),
        f"<section><h2>Candidates in the order of the search</h2>{_course(report, good)}</section>",
        '<section><h2>Landscape</h2><p class="quiet">the shortest time that was found with two'
        ' values, dark is short</p><div class="columns">',
        *_maps(report, good),
        "</div></section>",
        f"<section><h2>The shortest</h2>{_shortest(report, good)}</section>",
        f"<section><h2>Busy pipes</h2>{_pipes(report)}</section>",
    ]
    return framed(f"{report.name} tuned", parts)


def _course(report: TuningReport, good: list[Trial]) -> str:
    times = [trial.measurement.task_us for trial in good]
    low, high = min(times), max(times)
    place = {trial.candidate: at for at, trial in enumerate(report.trials)}
    count = max(1, len(report.trials) - 1)

    def x(at: int) -> float:
        return _MARGIN + (_WIDTH - _MARGIN - 10) * at / count

    def y(time_us: float) -> float:
        return 12 + (_HEIGHT - 40) * (1 - (time_us - low) / ((high - low) or 1.0))

    dots = []
    steps = []
    best = float("inf")
    for trial in good:
        at, time_us = place[trial.candidate], trial.measurement.task_us
        if time_us < best:
            best = time_us
        steps.append(f"{x(at):.1f},{y(best):.1f}")
        is_best = trial.candidate == report.best.candidate
        text = f"{report.space.text(trial.candidate)}: {time_text(time_us)}"
        dots.append(
            f'<circle cx="{x(at):.1f}" cy="{y(time_us):.1f}" r="{5 if is_best else 2.5}"'
            f' fill="{"#1a7f37" if is_best else "#0969da"}"><title>{escape(text)}</title></circle>'
        )
    line = f'<polyline points="{" ".join(steps)}" fill="none" stroke="#cf222e"/>'
    labels = "".join(
        f'<text x="0" y="{y(time_us) + 4:.1f}">{time_us:.2f}</text>' for time_us in (low, high)
    )
    note = f'<text x="{_MARGIN}" y="{_HEIGHT - 6}">us by candidate; red: the best so far</text>'
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img">{labels}{line}{"".join(dots)}{note}'
        "</svg>"
    )


def _maps(report: TuningReport, good: list[Trial]) -> Iterable[str]:
    knobs = report.space.knobs
    times = [trial.measurement.task_us for trial in good]
    low, high = min(times), max(times)
    for first, second in itertools.combinations(range(len(knobs)), 2):
        best: dict[tuple[Value, Value], float] = {}
        for trial in good:
            key = (trial.candidate[first], trial.candidate[second])
            best[key] = min(best.get(key, float("inf")), trial.measurement.task_us)
        columns = (f"{knobs[first].name} \\ {knobs[second].name}", *map(str, knobs[second].values))
        rows = [
            (
                str(value),
                *(_cell(best.get((value, other)), low, high) for other in knobs[second].values),
            )
            for value in knobs[first].values
        ]
        yield table_html(columns, rows, html=range(1, len(columns)))


def _cell(time_us: float | None, low: float, high: float) -> str:
    if time_us is None:
        return ""
    # Logarithmic would hide the last percent, which is what the choice is about.
    share = (time_us - low) / ((high - low) or 1.0)
    light = 35 + 55 * min(1.0, share * 3) ** 0.5
    ink = "#fff" if light < 62 else "#1f2328"
    return (
        f'<span style="background: hsl(212 75% {light:.0f}%); color: {ink}; padding: 0 .3rem">'
        f"{time_us:.2f}</span>"
    )


def _shortest(report: TuningReport, good: list[Trial]) -> str:
    order = sorted(good, key=lambda trial: trial.measurement.task_us)[:_LISTED]
    names = [knob.name for knob in report.space.knobs]
    rows = [
        (
            *map(str, trial.candidate),
            time_text(trial.measurement.task_us),
            "" if trial.measurement.findings is None else _findings_text(trial),
        )
        for trial in order
    ]
    return table_html((*names, "time", "opkit check"), rows)


def _findings_text(trial: Trial) -> str:
    return ", ".join(trial.measurement.findings or ()) or "clean"


def _pipes(report: TuningReport) -> str:
    before = {load.pipe: load for load in report.start.measurement.pipes}
    after = {load.pipe: load for load in report.best.measurement.pipes}
    rows = []
    for pipe in dict.fromkeys((*before, *after)):
        cells = [pipe]
        for loads in (before, after):
            load = loads.get(pipe)
            cells += ["", ""] if load is None else [f"{load.busy_us:.2f}", f"{load.wait_us:.2f}"]
        rows.append(tuple(cells))
    columns = ("pipe", "busy before, us", "waiting", "busy after, us", "waiting")
    return table_html(columns, rows, numbers=range(1, 5))
