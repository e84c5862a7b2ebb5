"""What a tuning found, as a page that shows the landscape."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from opkit.profiling import time_text
from opkit.templating import render_template
from opkit.tuning.report import relief_text
from opkit.tuning.session import Trial, TuningReport
from opkit.tuning.space import Value

__all__ = ["landscape_page"]

_WIDTH, _HEIGHT, _MARGIN = 760, 240, 56
_LISTED = 12
_SCALE = (0.0, 0.05, 0.1, 0.2, 0.34)
"""Beyond the last all times have one colour."""

_View = dict[str, object]


def landscape_page(report: TuningReport, *, made: str = "") -> str:
    """Return a page: the candidates in their order, the best time of each pair of values."""
    good = [trial for trial in report.trials if trial.measurement.verified]
    context = {
        "title": f"{report.name} tuned",
        "heading": f"{report.name} on {report.chip}",
        "best": time_text(report.best.measurement.task_us),
        "start": time_text(report.start.measurement.task_us),
        "ratio": f"{report.ratio:.3f}",
        "relief": relief_text(report),
        "made": made,
        "course": _course(report, good),
        "scale": _scale(good),
        "maps": list(_maps(report, good)),
        "shortest": _shortest(report, good),
        "pipes": _pipes(report),
    }
    return render_template("pages/tuning.html.jinja", context)


def _course(report: TuningReport, good: list[Trial]) -> _View:
    times = [trial.measurement.task_us for trial in good]
    low, high = min(times), max(times)
    place = {trial.candidate: at for at, trial in enumerate(report.trials)}
    count = max(1, len(report.trials) - 1)

    def x(at: int) -> float:
        return _MARGIN + (_WIDTH - _MARGIN - 10) * at / count

    def y(time_us: float) -> float:
        return 12 + (_HEIGHT - 60) * (1 - (time_us - low) / ((high - low) or 1.0))

    dots, steps = [], []
    best = float("inf")
    for trial in good:
        at, time_us = x(place[trial.candidate]), trial.measurement.task_us
        best = min(best, time_us)
        steps.append((at, y(best)))
        dots.append(
            {
                "x": at,
                "y": y(time_us),
                "is_best": trial.candidate == report.best.candidate,
                "text": f"{report.space.text(trial.candidate)}: {time_text(time_us)}",
            }
        )
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "margin": _MARGIN,
        "ticks": [{"y": y(time_us), "text": f"{time_us:g}"} for time_us in _ticks(low, high)],
        "places": [
            {"x": x(round(at)), "text": f"{round(at) + 1}"}
            for at in _ticks(0, count)
            if at <= count
        ],
        "steps": steps,
        "dots": dots,
    }


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers from `low` to `high`, some five of them; both where they are equal."""
    if high <= low:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / 4))
    step = next(power * by for by in (1, 2, 5, 10) if (high - low) / (power * by) <= 6)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [float(f"{at * step:.6g}") for at in range(first, last + 1)]


def _scale(good: list[Trial]) -> list[_View]:
    """Return the colours of the landscape with the times that they stand for."""
    times = [trial.measurement.task_us for trial in good]
    low, high = min(times), max(times)
    steps = [low + (high - low) * share for share in _SCALE] if high > low else [low]
    return [cell for time_us in steps if (cell := _cell(time_us, low, high)) is not None]


def _maps(report: TuningReport, good: list[Trial]) -> Iterator[_View]:
    knobs = report.space.knobs
    times = [trial.measurement.task_us for trial in good]
    low, high = min(times), max(times)
    for first, second in itertools.combinations(range(len(knobs)), 2):
        best: dict[tuple[Value, Value], float] = {}
        for trial in good:
            key = (trial.candidate[first], trial.candidate[second])
            best[key] = min(best.get(key, float("inf")), trial.measurement.task_us)
        others = knobs[second].values
        yield {
            "columns": [f"{knobs[first].name} \\ {knobs[second].name}", *others],
            "rows": [
                {
                    "value": value,
                    "cells": [_cell(best.get((value, other)), low, high) for other in others],
                }
                for value in knobs[first].values
            ],
        }


def _cell(time_us: float | None, low: float, high: float) -> _View | None:
    if time_us is None:
        return None
    # Logarithmic would hide the last percent, which is what the choice is about.
    share = (time_us - low) / ((high - low) or 1.0)
    light = 35 + 55 * min(1.0, share * 3) ** 0.5
    return {"time_us": time_us, "light": light, "ink": "#fff" if light < 46 else "#000"}


def _shortest(report: TuningReport, good: list[Trial]) -> _View:
    order = sorted(good, key=lambda trial: trial.measurement.task_us)[:_LISTED]
    return {
        "columns": [*(knob.name for knob in report.space.knobs), "time", "opkit check"],
        "rows": [
            (*trial.candidate, time_text(trial.measurement.task_us), _findings_text(trial))
            for trial in order
        ],
    }


def _findings_text(trial: Trial) -> str:
    findings = trial.measurement.findings
    return "" if findings is None else ", ".join(findings) or "clean"


def _pipes(report: TuningReport) -> list[_View]:
    before = {load.pipe: load for load in report.start.measurement.pipes}
    after = {load.pipe: load for load in report.best.measurement.pipes}
    rows: list[_View] = []
    for pipe in dict.fromkeys((*before, *after)):
        times: list[float | None] = []
        for load in (before.get(pipe), after.get(pipe)):
            times += (None, None) if load is None else (load.busy_us, load.wait_us)
        rows.append({"name": pipe, "times_us": times})
    return rows
