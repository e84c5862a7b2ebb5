"""A precision report as one HTML file that needs nothing else: no font, no library, no network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from opkit.templating import render_template
from opkit.testing.numbers import ErrorPicture
from opkit.testing.reports.report import cancellation_texts, case_rows, counts_text, failure_text
from opkit.testing.run import CaseResult, OutputResult, PrecisionReport, Verdict

__all__ = ["html_report"]

_BAR, _HEIGHT, _CELL, _LISTED = 22, 120, 7, 8
_TONES = {
    Verdict.PASS: "pass",
    Verdict.CANCELLATION: "other",
    Verdict.RANGE: "other",
    Verdict.HALF: "other",
    Verdict.BEHIND: "other",
    Verdict.NO_REFERENCE: "other",
}
_COLUMNS = (
    *(("case", "text"), ("elements", "number"), ("worst figure", "number"), ("limit", "number")),
    *(("verdict", "text"), ("launch, ms", "number")),
)


_DRAWN = 8
"""Failing cases whose errors are drawn, the first ones; of the others the page has the text."""


def html_report(
    report: PrecisionReport, explanations: Sequence[tuple[str, str]] = (), *, made: str = ""
) -> str:
    """Return the page: counts, every case to filter and sort, each failing output with its errors
    drawn, and what passing ones have in common.

    Args:
        explanations: text by case name, of `explain`.
        made: when and by what; shown as it is.
    """
    texts = dict(explanations)
    failed = [result for result in report.results if not result.verdict.passed]
    context = {
        "title": f"{report.project}: precision",
        "summary": f"{len(report.results)} cases by the {report.standard} standard,"
        f" seed {report.seed}: {counts_text(report)}",
        "made": made,
        "columns": [{"name": name, "kind": kind} for name, kind in _COLUMNS],
        "cases": _cases(report),
        "distribution": _distribution(report),
        "notes": [*cancellation_texts(report), *(f"not tested: {one}" for one in report.untaken)],
        "failures": [
            _failure(result, report, texts.get(result.case.name, ""), is_drawn=at < _DRAWN)
            for at, result in enumerate(failed)
        ],
        "drawn": _DRAWN if len(failed) > _DRAWN else 0,
    }
    return render_template("pages/test.html.jinja", context)


def _cases(report: PrecisionReport) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "numbers": numbers,
            "verdict": verdict,
            "passed": result.verdict.passed,
            "tone": _TONES.get(result.verdict, "bad"),
            "milliseconds": f"{1000 * result.seconds:.1f}",
        }
        for (name, *numbers, verdict), result in zip(case_rows(report), report.results, strict=True)
    ]


def _distribution(report: PrecisionReport) -> list[dict[str, Any]]:
    """Return how far below their limits the outputs of passing cases stay, in powers of two."""
    shares = []
    for result in report.results:
        for output in result.outputs if result.verdict.passed else ():
            figures = [f for f in output.comparison.figures if f.limit and f.limit > 0]
            shares += [max((f.value / f.limit for f in figures), default=0.0)] if figures else []
    if not shares:
        return []
    steps = ["0", *(f"1/{2**power}" for power in range(6, 0, -1)), "1"]
    counts = [0] * len(steps)
    for share in shares:
        power = 0 if share <= 2**-7 else min(7, max(1, 8 + math.floor(math.log2(share))))
        counts[power] += 1
    return [
        {"step": step, "count": count, "height": 76 * count / max(counts)}
        for step, count in zip(steps, counts, strict=True)
    ]


def _failure(
    result: CaseResult, report: PrecisionReport, explanation: str, *, is_drawn: bool
) -> dict[str, Any]:
    outputs = [output for output in result.outputs if not output.comparison.passed]
    return {
        "name": result.case.name,
        "text": failure_text(result, report),
        "outputs": [_output(output) for output in outputs if is_drawn],
        "explanation": explanation,
    }


def _output(output: OutputResult) -> dict[str, Any]:
    comparison = output.comparison
    return {
        "name": output.name,
        "worst": [
            {
                "index": f"[{', '.join(map(str, worst.index))}]",
                "actual": repr(worst.actual),
                "golden": repr(worst.golden),
                "error": f"{worst.error:.3g}",
            }
            for worst in comparison.worst_elements[:_LISTED]
        ],
        "picture": None if comparison.picture is None else _picture(comparison.picture),
    }


def _picture(picture: ErrorPicture) -> dict[str, Any]:
    """Return bars of elements by the power of ten of their relative error, heights by logarithm,
    and the largest error of each part of the array, dark where it is large."""
    top = max(math.log10(1 + count) for count in picture.histogram) or 1.0
    bars = []
    for number, count in enumerate(picture.histogram):
        height = _HEIGHT * math.log10(1 + count) / top
        bars.append(
            {
                "x": number * _BAR,
                "y": _HEIGHT - height,
                "width": _BAR - 3,
                "height": height,
                "count": count,
                "power": picture.lowest_power + number,
                "is_labelled": number % 4 == 1,
            }
        )
    cells = []
    for number, error in enumerate(picture.cells):
        if error == 0:
            continue
        row, column = divmod(number, picture.columns)
        place = {"x": column * _CELL, "y": row * _CELL}
        cells.append({**place, "colour": _colour(error), "error": f"{error:.3g}"})
    return {
        "bars": bars,
        "bars_width": _BAR * len(picture.histogram),
        "bars_height": _HEIGHT,
        "cells": cells,
        "cell": _CELL,
        "cell_shape": picture.cell_shape,
        "map_width": picture.columns * _CELL,
        "map_height": picture.rows * _CELL,
    }


def _colour(error: float) -> str:
    if math.isinf(error):
        return "#e00000"
    # From 1e-7, nearly white, to 1, nearly black.
    share = min(max((math.log10(error) + 7) / 7, 0.0), 1.0)
    level = int(225 - 200 * share)
    return f"#{level:02x}{level:02x}ff" if share < 0.5 else f"#{level:02x}{level:02x}{level:02x}"
