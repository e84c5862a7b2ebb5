"""A timeline as one HTML page that needs nothing else: no network, no font, no library."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from opkit.profiling.advice import advise
from opkit.profiling.roofline import roofline_svg
from opkit.profiling.summary import basis_text, bound_text, size_text, time_text
from opkit.profiling.timeline import PIPES, LineTime, Timeline

__all__ = ["fragment", "html_page"]

_COLOURS = {
    "S": "#6e7781",
    "V": "#0969da",
    "M": "#8250df",
    "MTE1": "#bf8700",
    "MTE2": "#1a7f37",
    "MTE3": "#cf222e",
    "FIX": "#bc4c00",
}
_LINES_SHOWN = 40
_LONGEST_SOURCE = 90
_BODY = "body.opkit { margin: 0 auto; padding: 1.5rem; max-width: 78rem; background: var(--paper) }"
_CORE_WIDTH, _CORE_HEIGHT = 12, 90


def html_page(timeline: Timeline, *, case: str = "", made: str = "") -> str:
    """Return the page: times, advice, timeline by core and pipe, roofline, lines, memory, cores.

    Args:
        case: what was launched: operator, data types, shape.
        made: when, and by which versions.
    """
    here = Path(__file__)
    style = here.with_name("page.css").read_text("utf-8")
    script = here.with_name("page.js").read_text("utf-8")
    title = f"{timeline.kernel} on {timeline.chip}"
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{escape(title)}</title>",
        f"<style>{_BODY}\n{style}</style></head>",
        '<body class="opkit"><main>',
        _head(timeline),
        *(f'<p class="quiet">{escape(text)}</p>' for text in (case, made) if text),
        _advice(timeline),
        _timeline_view(timeline),
        '<div class="columns">',
        f"<section><h2>Roofline</h2>{roofline_svg(timeline)}</section>",
        f"<section><h2>Memory traffic</h2>{_traffic(timeline)}</section>",
        "</div>",
        f"<section><h2>Cores</h2>{_cores(timeline)}</section>",
        f"<section><h2>Hottest lines</h2>{_lines(timeline)}</section>",
        "</main>",
        f'<script type="application/json" id="opkit-timeline-data">{_data(timeline)}</script>',
        f"<script>{script}</script>",
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def fragment(timeline: Timeline) -> str:
    """Return what a notebook shows: times, pipes and advice, without a script."""
    style = Path(__file__).with_name("page.css").read_text("utf-8")
    shown = f"{_head(timeline)}{_advice(timeline)}{_lines(timeline, 8)}"
    return f'<style>{style}</style><div class="opkit">{shown}</div>'


def _head(timeline: Timeline) -> str:
    band = timeline.band_percent()
    facts = (
        f"{timeline.chip} at {timeline.clock_mhz:g} MHz, {timeline.block_dim} blocks:"
        f" {time_text(timeline.launch_us)} launch + {time_text(timeline.core_us, band)} slowest"
        f" core; bound by {bound_text(timeline)}"
    )
    bars = [
        (
            time.pipe,
            _bar(time.utilisation, _COLOURS[time.pipe]),
            f"{100 * time.utilisation:.1f} %",
            time_text(time.mean_us, timeline.band_percent(time.pipe)),
        )
        for time in timeline.pipes()
    ]
    return (
        f"<h1>{escape(timeline.kernel)}</h1>"
        f'<p><span class="time">{time_text(timeline.task_us, band)}</span>'
        f" a model, not a measurement</p><p>{escape(facts)}</p>"
        f"{_table(('pipe', 'busy, mean of the cores', '', 'time'), bars, html=(1,))}"
        f'<p class="quiet">{escape(basis_text(timeline))}</p>'
    )


def _advice(timeline: Timeline) -> str:
    head = "<h2>What to change first</h2>"
    if not timeline.lifted_cycles:
        return ""
    found = advise(timeline)
    if not found:
        return f"{head}<p>Nothing that the model knows would save 2 % or more.</p>"
    rows = [
        (
            f'<span class="gain">{time_text(item.gain_us)} ({item.gain_percent:.0f} %)</span>',
            escape(item.pattern),
            f"<code>{escape(item.where)}</code>",
            escape(f"{item.finding}; {item.change}"),
        )
        for item in found
    ]
    note = "Each gain is the model's, with that limit alone left out; gains do not add up."
    table = _table(("would save", "pattern", "line", "why, and what to do"), rows, html=range(4))
    return f'{head}{table}<p class="quiet">{note}</p>'


def _timeline_view(timeline: Timeline) -> str:
    note = "wheel: zoom; drag: move; hover: instruction and line"
    if timeline.events_dropped:
        note += f"; {timeline.events_dropped} later instructions are in the totals only"
    choice = '<option value="few">first 8 cores</option><option value="all">all cores</option>'
    return (
        '<section><h2>Timeline</h2><div class="opkit-tools">'
        '<button id="opkit-in">+</button> <button id="opkit-out">−</button>'
        ' <button id="opkit-fit">all</button>'
        f' <select id="opkit-cores">{choice}</select> <span class="quiet">{note}</span></div>'
        '<canvas id="opkit-axis" class="opkit-axis"></canvas>'
        '<div class="opkit-scroll"><canvas id="opkit-timeline"></canvas></div>'
        '<div id="opkit-tip" class="opkit-tip"></div></section>'
    )


def _data(timeline: Timeline) -> str:
    """Return what page.js draws, as JSON that may stand inside a script element."""
    rows: dict[tuple[int, int], list[list[float]]] = {}
    for event in timeline.events:
        pipe = PIPES.index(timeline.lines[event.line].pipe)
        start, end = round(event.start_cycle, 1), round(event.end_cycle, 1)
        rows.setdefault((event.core, pipe), []).append([start, end, event.line, event.bytes])
    value = {
        "mhz": timeline.clock_mhz,
        "end": max(1.0, timeline.total_cycles),
        "cores": [f"{core.kind} block {core.block}" for core in timeline.cores],
        "colours": _COLOURS,
        "lines": [{"name": line.instruction, "where": line.where} for line in timeline.lines],
        "rows": [
            {"core": core, "pipe": PIPES[pipe], "events": sorted(rows[core, pipe])}
            for core, pipe in sorted(rows)
        ],
    }
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _traffic(timeline: Timeline) -> str:
    moved: dict[tuple[str, str], int] = {}
    for line in timeline.lines:
        if line.bytes and line.source and line.target:
            way = (line.source, line.target)
            moved[way] = moved.get(way, 0) + line.bytes
    ways = [("HBM → L2", timeline.hbm_read_bytes), ("L2 → HBM", timeline.hbm_write_bytes)]
    ways += [("reads that hit L2", timeline.l2_hit_bytes)]
    ways += [(f"{source} → {target}", size) for (source, target), size in sorted(moved.items())]
    most = max((size for _, size in ways), default=0) or 1
    rows = [
        (
            escape(way),
            _bar(size / most, "#57606a"),
            size_text(size),
            f"{size / (timeline.core_us * 1e-6) / 1e9:.0f} GB/s" if timeline.core_us else "",
        )
        for way, size in ways
    ]
    lost = ""
    if timeline.l2_lost_bytes:
        lost = f"<p>{size_text(timeline.l2_lost_bytes)} were read again after L2 gave them up.</p>"
    return _table(("way", "", "bytes", "rate"), rows, html=range(2)) + lost


def _cores(timeline: Timeline) -> str:
    longest = max((core.end_cycle for core in timeline.cores), default=0.0) or 1.0
    bars = []
    for index, core in enumerate(timeline.cores):
        height = _CORE_HEIGHT * core.cycles / longest
        below = _CORE_HEIGHT * core.start_cycle / longest
        x, y = index * _CORE_WIDTH, _CORE_HEIGHT - height - below
        text = f"{core.kind} block {core.block}: {time_text(core.cycles / timeline.clock_mhz)}"
        bars.append(
            f'<rect x="{x}" y="{y:.1f}" width="{_CORE_WIDTH - 2}" height="{height:.1f}"'
            f' fill="#0969da"><title>{escape(text)}</title></rect>'
        )
    width = max(60, _CORE_WIDTH * len(timeline.cores))
    balance = f"balance {100 * timeline.balance:.0f} %: mean of the cores over the slowest"
    return (
        f'<p>{len(timeline.cores)} cores, {balance}</p><div style="overflow-x: auto">'
        f'<svg width="{width}" height="{_CORE_HEIGHT}" role="img">{"".join(bars)}</svg></div>'
    )


def _lines(timeline: Timeline, count: int = _LINES_SHOWN) -> str:
    total = len(timeline.cores) * timeline.total_cycles or 1.0
    rows = [_line(line, timeline, total) for line in timeline.lines[:count]]
    columns = ["line", "pipe", "instruction", "share of all cores' time", "time", "times"]
    columns += ["bytes", "bytes a burst", "bank conflicts"]
    return _table(columns, rows, html=(0, 3), numbers=range(4, 9))


def _line(line: LineTime, timeline: Timeline, total: float) -> tuple[str, ...]:
    share = line.cycles / total
    where = f'<code title="{escape(line.file)}">{escape(line.where)}</code>'
    text = _source(line)
    if text:
        where += f'<br><code class="source">{escape(text)}</code>'
    conflicts = 100 * line.conflict_cycles / line.cycles if line.cycles else 0.0
    return (
        where,
        line.pipe,
        line.instruction,
        f"{_bar(min(1.0, share), _COLOURS.get(line.pipe, '#57606a'))} {100 * share:.1f} %",
        time_text(line.cycles / timeline.clock_mhz / max(1, len(timeline.cores))),
        str(line.count),
        size_text(line.bytes) if line.bytes else "",
        f"{line.bytes / line.bursts:.0f}" if line.bursts else "",
        f"{conflicts:.0f} %" if conflicts else "",
    )


def _source(line: LineTime) -> str:
    """Return the text of a line; empty where its file cannot be read any more."""
    try:
        lines = Path(line.file).read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    text = lines[line.line - 1].strip() if 0 < line.line <= len(lines) else ""
    return text if len(text) <= _LONGEST_SOURCE else f"{text[:_LONGEST_SOURCE]}…"


def _bar(share: float, colour: str) -> str:
    width = 100 * min(1.0, max(0.0, share))
    fill = f'<span class="fill" style="width: {width:.1f}%; background: {colour}"></span>'
    return f'<span class="track">{fill}</span>'


def _table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    html: Iterable[int] = (),
    numbers: Iterable[int] = (),
) -> str:
    """Return a table; cells of the columns `html` are not escaped again."""
    ready, right = set(html), set(numbers)

    def mark(index: int) -> str:
        return ' class="number"' if index in right else ""

    head = "".join(f"<th{mark(i)}>{escape(name)}</th>" for i, name in enumerate(columns))
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{mark(i)}>{cell if i in ready else escape(cell)}</td>"
            for i, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"
