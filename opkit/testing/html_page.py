"""A precision report as one HTML file that needs nothing else: no script, no font, no network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from opkit.testing.picture import ErrorPicture
from opkit.testing.report import cancellation_texts, case_rows, failure_text
from opkit.testing.run import CaseResult, OutputResult, PrecisionReport, Verdict

__all__ = ["html_report"]

_STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; color: #222 }
table { border-collapse: collapse } td, th { padding: .15rem .7rem; text-align: left }
tr:nth-child(even) { background: #f5f5f5 } td.number { text-align: right }
.pass { color: #1a7f37 } .other { color: #9a6700 } .bad { color: #cf222e }
pre { background: #f5f5f5; padding: .7rem; overflow-x: auto }
svg { display: block; margin: .5rem 0 }
figure { display: inline-block; margin: 0 2rem 1rem 0; vertical-align: top }
figcaption { color: #555 }
"""

_BAR, _HEIGHT, _CELL = 22, 120, 7
_TONES = {Verdict.PASS: "pass", Verdict.CANCELLATION: "other", Verdict.NO_REFERENCE: "other"}


def html_report(report: PrecisionReport, explanations: Sequence[tuple[str, str]] = ()) -> str:
    """Return the page: counts, every case, each failing output with its errors drawn.

    Args:
        explanations: text by case name, of `explain`.
    """
    counts = ", ".join(f"{report.count(v)} {v.value}" for v in Verdict if report.count(v))
    title = f"{report.project}: precision"
    texts = dict(explanations)
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        f"<p>{len(report.results)} cases by the {escape(report.standard)} standard,"
        f" seed {report.seed}: {escape(counts)}</p>",
        _table(report),
    ]
    parts += [f"<pre>{escape(text)}</pre>" for text in cancellation_texts(report)]
    for result in report.results:
        if not result.verdict.passed:
            parts.append(_failure(result, report, texts.get(result.case.name, "")))
    parts.append("</body></html>")
    return "\n".join(parts) + "\n"


def _table(report: PrecisionReport) -> str:
    head = "".join(
        f"<th>{name}</th>" for name in ("case", "elements", "worst figure", "limit", "verdict")
    )
    rows = [f"<table><tr>{head}</tr>"]
    for number, (row, result) in enumerate(zip(case_rows(report), report.results, strict=True)):
        tone = _TONES.get(result.verdict, "bad")
        name = escape(row[0])
        if not result.verdict.passed:
            name = f'<a href="#case-{escape(result.case.name)}">{name}</a>'
        cells = "".join(f'<td class="number">{escape(cell)}</td>' for cell in row[1:-1])
        rows.append(f'<tr id="row-{number}"><td>{name}</td>{cells}')
        rows.append(f'<td class="{tone}">{escape(row[-1])}</td></tr>')
    return "".join(rows) + "</table>"


def _failure(result: CaseResult, report: PrecisionReport, explanation: str) -> str:
    name = escape(result.case.name)
    text = escape(failure_text(result, report))
    parts = [f'<h2 id="case-{name}">{name}</h2>', f"<pre>{text}</pre>"]
    for output in result.outputs:
        if not output.comparison.passed:
            parts.append(_output(output))
    if explanation:
        parts.append(f"<pre>{escape(explanation)}</pre>")
    return "\n".join(parts)


def _output(output: OutputResult) -> str:
    comparison = output.comparison
    rows = "".join(
        f"<tr><td>[{', '.join(map(str, worst.index))}]</td>"
        f'<td class="number">{worst.actual!r}</td><td class="number">{worst.golden!r}</td>'
        f'<td class="number">{worst.error:.3g}</td></tr>'
        for worst in comparison.worst_elements[:8]
    )
    head = "<tr><th>element</th><th>got</th><th>golden</th><th>error</th></tr>"
    table = f"<figure><table>{head}{rows}</table><figcaption>{escape(output.name)}, the worst"
    table += " elements</figcaption></figure>"
    picture = comparison.picture
    drawn = "" if picture is None else _histogram(picture) + _map(picture)
    return f"<h3>{escape(output.name)}</h3>{table}{drawn}"


def _histogram(picture: ErrorPicture) -> str:
    """Return bars of elements by the power of ten of their relative error, heights by logarithm."""
    top = max(math.log10(1 + count) for count in picture.histogram) or 1.0
    bars = []
    for number, count in enumerate(picture.histogram):
        height = _HEIGHT * math.log10(1 + count) / top
        x, y = number * _BAR, _HEIGHT - height
        power = picture.lowest_power + number
        bars.append(
            f'<rect x="{x}" y="{y:.1f}" width="{_BAR - 3}" height="{height:.1f}" fill="#4078c0">'
            f"<title>{count} elements with an error up to 1e{power}</title></rect>"
        )
        if number % 4 == 1:
            label = f'<text x="{x}" y="{_HEIGHT + 14}" font-size="11">1e{power}</text>'
            bars.append(label)
    width = _BAR * len(picture.histogram)
    return (
        f'<figure><svg width="{width}" height="{_HEIGHT + 20}" role="img">{"".join(bars)}</svg>'
        "<figcaption>elements by relative error, both in powers of ten</figcaption></figure>"
    )


def _map(picture: ErrorPicture) -> str:
    """Return the largest error of each part of the array, dark where it is large."""
    cells = []
    for number, error in enumerate(picture.cells):
        if error == 0:
            continue
        row, column = divmod(number, picture.columns)
        place = f'x="{column * _CELL}" y="{row * _CELL}" width="{_CELL}" height="{_CELL}"'
        cells.append(f'<rect {place} fill="{_colour(error)}"><title>{error:.3g}</title></rect>')
    down, across = picture.cell_shape
    width, height = picture.columns * _CELL, picture.rows * _CELL
    return (
        f'<figure><svg width="{width}" height="{height}" role="img">'
        f'<rect width="{width}" height="{height}" fill="#f2f2f2"/>{"".join(cells)}</svg>'
        f"<figcaption>largest relative error, {down} x {across} elements a cell; red: NaN or"
        " infinity on one side only</figcaption></figure>"
    )


def _colour(error: float) -> str:
    if math.isinf(error):
        return "#e00000"
    # From 1e-7, nearly white, to 1, nearly black.
    share = min(max((math.log10(error) + 7) / 7, 0.0), 1.0)
    level = int(225 - 200 * share)
    return f"#{level:02x}{level:02x}ff" if share < 0.5 else f"#{level:02x}{level:02x}{level:02x}"
