"""A precision report as one HTML file that needs nothing else: no font, no library, no network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from opkit.testing.picture import ErrorPicture
from opkit.testing.report import cancellation_texts, case_rows, failure_text
from opkit.testing.run import CaseResult, OutputResult, PrecisionReport, Verdict

__all__ = ["html_report"]

_STYLE = """
:root { --ink: #1f2328; --paper: #fff; --stripe: #f6f8fa; --quiet: #59636e; --good: #1a7f37;
  --warn: #9a6700; --bad: #cf222e; --mark: #4078c0 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --stripe: #151b23;
  --quiet: #9198a1; --good: #3fb950; --warn: #d29922; --bad: #f85149; --mark: #58a6ff } }
body { font: 14px/1.45 system-ui, sans-serif; margin: 0 auto; padding: 1.5rem; max-width: 78rem;
  color: var(--ink); background: var(--paper) }
table { border-collapse: collapse } td, th { padding: .15rem .7rem; text-align: left }
th[data-kind] { cursor: pointer } th[aria-sort]::after { content: " ↕"; color: var(--quiet) }
.wide { overflow-x: auto } a { color: var(--mark) }
tr:nth-child(even) { background: var(--stripe) } td.number { text-align: right }
.pass { color: var(--good) } .other { color: var(--warn) } .bad { color: var(--bad) }
.quiet, figcaption { color: var(--quiet) } input { font: inherit; min-width: 16rem; max-width: 90% }
pre { background: var(--stripe); padding: .7rem; overflow-x: auto }
svg { display: block; margin: .5rem 0 } svg text { fill: var(--quiet) }
rect.bar { fill: var(--mark) }
figure { display: inline-block; margin: 0 2rem 1rem 0; vertical-align: top; max-width: 100% }
figure { overflow-x: auto }
"""

# Filters rows by their text, and sorts them by the column that is clicked.
_SCRIPT = """
"use strict";
(() => {
  const table = document.getElementById("cases"), body = table.tBodies[0];
  const filter = document.getElementById("filter"), shown = document.getElementById("shown");
  const rows = [...body.rows];
  const show = () => {
    const words = filter.value.toLowerCase().split(" ").filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      count += row.hidden ? 0 : 1;
    }
    shown.textContent = `${count} of ${rows.length}`;
  };
  filter.addEventListener("input", show);
  table.tHead.addEventListener("click", (event) => {
    const head = event.target.closest("th"), column = head.cellIndex;
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const number = head.dataset.kind === "number";
    const text = (row) => row.cells[column].textContent;
    const key = (row) => number ? parseFloat(text(row)) || 0 : text(row);
    const order = (a, b) => key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0;
    body.append(...rows.sort((a, b) => down ? order(b, a) : order(a, b)));
  });
  show();
})();
"""

_BAR, _HEIGHT, _CELL = 22, 120, 7
_TONES = {
    Verdict.PASS: "pass",
    Verdict.CANCELLATION: "other",
    Verdict.RANGE: "other",
    Verdict.NO_REFERENCE: "other",
}


def html_report(
    report: PrecisionReport, explanations: Sequence[tuple[str, str]] = (), *, made: str = ""
) -> str:
    """Return the page: counts, every case to filter and sort, each failing output with its errors
    drawn, and what passing ones have in common.

    Args:
        explanations: text by case name, of `explain`.
        made: when and by what; shown as it is.
    """
    counts = ", ".join(f"{report.count(v)} {v.value}" for v in Verdict if report.count(v))
    title = f"{report.project}: precision"
    texts = dict(explanations)
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        f"<p>{len(report.results)} cases by the {escape(report.standard)} standard,"
        f" seed {report.seed}: {escape(counts)}</p>",
        f'<p class="quiet">{escape(made)}</p>' if made else "",
        '<p><input id="filter" type="search" placeholder="filter: words of the rows"'
        ' aria-label="filter"> <span id="shown" class="quiet"></span></p>',
        _table(report),
        _distribution(report),
    ]
    parts += [f"<pre>{escape(text)}</pre>" for text in cancellation_texts(report)]
    for result in report.results:
        if not result.verdict.passed:
            parts.append(_failure(result, report, texts.get(result.case.name, "")))
    parts.append(f"<script>{_SCRIPT}</script></body></html>")
    return "\n".join(parts) + "\n"


def _table(report: PrecisionReport) -> str:
    columns = ("case", "elements", "worst figure", "limit", "verdict", "launch, ms")
    kinds = ("text", "number", "number", "number", "text", "number")
    head = "".join(
        f'<th data-kind="{kind}">{name}</th>' for name, kind in zip(columns, kinds, strict=True)
    )
    rows = [f'<div class="wide"><table id="cases"><thead><tr>{head}</tr></thead><tbody>']
    for number, (row, result) in enumerate(zip(case_rows(report), report.results, strict=True)):
        tone = _TONES.get(result.verdict, "bad")
        name = escape(row[0])
        if not result.verdict.passed:
            name = f'<a href="#case-{escape(result.case.name)}">{name}</a>'
        cells = "".join(f'<td class="number">{escape(cell)}</td>' for cell in row[1:-1])
        rows.append(f'<tr id="row-{number}"><td>{name}</td>{cells}')
        rows.append(f'<td class="{tone}">{escape(row[-1])}</td>')
        rows.append(f'<td class="number">{1000 * result.seconds:.1f}</td></tr>')
    return "".join(rows) + "</tbody></table></div>"


def _distribution(report: PrecisionReport) -> str:
    """Return how far below their limits the outputs of passing cases stay, in powers of two."""
    shares = []
    for result in report.results:
        for output in result.outputs if result.verdict.passed else ():
            figures = [f for f in output.comparison.figures if f.limit and f.limit > 0]
            shares += [max((f.value / f.limit for f in figures), default=0.0)] if figures else []
    if not shares:
        return ""
    steps = ["0", *(f"1/{2**power}" for power in range(6, 0, -1)), "1"]
    counts = [0] * len(steps)
    for share in shares:
        power = 0 if share <= 2**-7 else min(7, max(1, 8 + math.floor(math.log2(share))))
        counts[power] += 1
    top = max(counts)
    bars = "".join(
        f'<rect class="bar" x="{44 * n}" y="{80 - 76 * count / top:.1f}" width="40"'
        f' height="{76 * count / top:.1f}"><title>{count} outputs</title></rect>'
        f'<text x="{44 * n}" y="95" font-size="11">{steps[n]}</text>'
        for n, count in enumerate(counts)
    )
    return (
        f'<figure><svg width="{44 * len(steps)}" height="100" role="img">{bars}</svg><figcaption>'
        "outputs of passing cases by their worst figure, as a share of its limit"
        "</figcaption></figure>"
    )


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
            f'<rect x="{x}" y="{y:.1f}" width="{_BAR - 3}" height="{height:.1f}" class="bar">'
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
