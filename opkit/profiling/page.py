"""A timeline as one HTML page that needs nothing else: no network, no font, no library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from opkit.profiling.advice import advise
from opkit.profiling.difference import Change, ProfileDifference
from opkit.profiling.places import ModelProfile, PlaceTime
from opkit.profiling.roofline import roofline_drawing
from opkit.profiling.summary import basis_text, bound_text, size_text, time_text
from opkit.profiling.timeline import PIPES, LineTime, Timeline
from opkit.templating import render_template

__all__ = [
    "PageParts",
    "difference_page",
    "fragment",
    "html_page",
    "page_parts",
]

_COLOURS = {
    "S": "#6e7781",
    "V": "#0969da",
    "M": "#8250df",
    "MTE1": "#bf8700",
    "MTE2": "#1a7f37",
    "MTE3": "#cf222e",
    "FIX": "#bc4c00",
}
_LAUNCH_COLOUR = "#9a6700"
_OTHER_COLOUR = "#57606a"
_LINES_SHOWN = 40
_LONGEST_SOURCE = 90
_CORE_WIDTH, _CORE_HEIGHT = 12, 90

_View = dict[str, object]


@dataclass(frozen=True)
class PageParts:
    """What other pages of opkit share with this one."""

    style: str
    """For elements of the class `opkit`, and a body of it."""
    script: str
    """Draws the timeline whose data the element `opkit-timeline-data` holds."""
    timeline: str
    """The elements that the script draws in."""
    colours: Mapping[str, str]
    """By pipe."""


def page_parts() -> PageParts:
    """Return the parts that other pages are made of."""
    style = "".join(render_template(f"pages/{name}.css", {}) for name in ("body", "profile"))
    timeline = render_template("pages/timeline.html.jinja", {"view": _drawn(0)})
    return PageParts(style, render_template("pages/profile.js", {}), timeline, _COLOURS)


def _drawn(events_dropped: int) -> _View:
    """Return what the timeline's surroundings show."""
    return {
        "dropped": events_dropped,
        "launch_colour": _LAUNCH_COLOUR,
        "scalar_colour": _COLOURS["S"],
    }


def html_page(
    timeline: Timeline, *, case: str = "", made: str = "", model: ModelProfile | None = None
) -> str:
    """Return the page: times, advice, timeline by core and pipe, roofline, lines, memory, cores.

    Args:
        case: what was launched: operator, data types, shape.
        made: when, and by which versions.
        model: the whole program that the launch is one of.
    """
    view = {
        "model": _model(model) if model is not None else None,
        **_summary(timeline, _LINES_SHOWN),
        **_drawn(timeline.events_dropped),
        "roofline": roofline_drawing(timeline),
        "lost": size_text(timeline.l2_lost_bytes) if timeline.l2_lost_bytes else "",
        "traffic": _traffic(timeline),
        **_cores(timeline),
        "data": _data(timeline),
    }
    return render_template("pages/profile.html.jinja", {"view": view, "case": case, "made": made})


def _model(model: ModelProfile) -> _View:
    def row(place: PlaceTime) -> _View:
        return {
            "name": place.name,
            "share": place.task_us / model.task_us if model.task_us else 0.0,
            "numbers": (
                str(place.launches),
                time_text(place.task_us),
                time_text(place.own_us),
                time_text(place.backward_us) if place.backward_us else "",
                str(place.cpu_calls) if place.cpu_calls else "",
            ),
        }

    tables = (
        ("Modules, with their parts", model.modules),
        ("Lines of Python", model.lines),
        ("Operators", model.operators),
    )
    return {
        "text": (
            f"{model.launches} launches, {time_text(model.task_us)} together; {model.cpu_calls}"
            " calls ran on the CPU, which have no modelled time"
        ),
        "colour": _COLOURS["V"],
        "tables": [
            {"title": title, "rows": [row(place) for place in rows[:_LINES_SHOWN]]}
            for title, rows in tables
        ],
    }


def fragment(timeline: Timeline) -> str:
    """Return what a notebook shows: times, pipes and advice, without a script."""
    return render_template("pages/fragment.html.jinja", {"view": _summary(timeline, 8)})


def difference_page(
    difference: ProfileDifference, names: tuple[str, str], *, made: str = "", line_count: int = 40
) -> str:
    """Return the page of two runs side by side: task, pipes, traffic and the lines that changed.

    Args:
        names: of the two reports.
    """
    change = difference.task
    title = f"{names[0]} and {names[1]} on {difference.chip}"
    sections: list[_View] = [
        {"title": "Task", "rows": [_change(change, time_text)]},
        {
            "title": "Pipes, busy, mean of the cores",
            "rows": [_change(item, time_text) for item in difference.pipes],
        },
        {
            "title": "Memory traffic",
            "rows": [
                _change(item, lambda size: size_text(int(size)))
                for item in difference.traffic
                if item.before or item.after
            ],
        },
        {
            "title": "Lines that changed most",
            "rows": [_change(item, time_text) for item in difference.lines[:line_count]],
        },
    ]
    context = {
        "title": title,
        "names": names,
        "made": made,
        "task": f"{time_text(change.before)} → {time_text(change.after)}",
        "sections": [section for section in sections if section["rows"]],
    }
    return render_template("pages/difference.html.jinja", context)


def _change(change: Change, text: Callable[[float], str]) -> _View:
    most = max(change.before, change.after) or 1.0
    return {
        "name": change.name.removesuffix("_bytes").replace("_", " "),
        "before": text(change.before),
        "after": text(change.after),
        "before_share": change.before / most,
        "after_share": change.after / most,
        "change": "new" if change.percent is None else f"{change.percent:+.1f} %",
        "colour": _COLOURS.get(change.name.rpartition(" ")[2], _OTHER_COLOUR),
    }


def _summary(timeline: Timeline, line_count: int) -> _View:
    band = timeline.band_percent()
    return {
        "title": f"{timeline.kernel} on {timeline.chip}",
        "kernel": timeline.kernel,
        "time": time_text(timeline.task_us, band),
        "facts": (
            f"{timeline.chip} at {timeline.clock_mhz:g} MHz, {timeline.block_dim} blocks:"
            f" {time_text(timeline.launch_us)} launch + {time_text(timeline.core_us, band)} slowest"
            f" core; bound by {bound_text(timeline)}"
        ),
        "basis": basis_text(timeline),
        "pipes": [
            {
                "name": time.name,
                "share": time.utilisation,
                "colour": _COLOURS[time.pipe],
                "time": time_text(time.mean_us, timeline.band_percent(time.pipe)),
            }
            for time in timeline.pipes()
        ],
        "has_advice": bool(timeline.lifted_cycles),
        "advice": [
            {
                "gain": f"{time_text(item.gain_us)} ({item.gain_percent:.0f} %)",
                "pattern": item.pattern,
                "where": item.where,
                "text": f"{item.finding}; {item.change}",
            }
            for item in advise(timeline)
        ],
        "lines": [_line(line, timeline) for line in timeline.lines[:line_count]],
    }


def _data(timeline: Timeline) -> _View:
    """Return what profile.js draws."""
    rows: dict[tuple[int, int], _View] = {}

    def row(core: int, pipe: str) -> _View:
        key = (core, PIPES.index(pipe))
        empty: _View = {"core": core, "pipe": pipe, "events": [], "waits": [], "spans": []}
        return rows.setdefault(key, empty)

    def add(where: _View, kind: str, item: list[object]) -> None:
        items = where[kind]
        assert isinstance(items, list)
        items.append(item)

    for event in timeline.events:
        start, end = round(event.start_cycle, 1), round(event.end_cycle, 1)
        pipe = timeline.lines[event.line].pipe
        add(row(event.core, pipe), "events", [start, end, event.line, event.bytes])
    for wait in timeline.waits:
        start, end = round(wait.start_cycle, 1), round(wait.end_cycle, 1)
        add(row(wait.core, wait.pipe), "waits", [start, end, wait.reason, wait.cause])
    for span in timeline.scalar:
        start, end = round(span.start_cycle, 1), round(span.end_cycle, 1)
        add(row(span.core, "S"), "spans", [start, end])
    for found in rows.values():
        for kind in ("events", "waits", "spans"):
            items = found[kind]
            assert isinstance(items, list)
            items.sort()
    return {
        "mhz": timeline.clock_mhz,
        "end": max(1.0, timeline.total_cycles),
        "launch": timeline.launch_us * timeline.clock_mhz,
        "launchColour": _LAUNCH_COLOUR,
        "cores": [f"{core.kind} block {core.block}" for core in timeline.cores],
        "colours": _COLOURS,
        "lines": [{"name": line.instruction, "where": line.where} for line in timeline.lines],
        "rows": [rows[key] for key in sorted(rows)],
    }


def _traffic(timeline: Timeline) -> list[_View]:
    moved: dict[tuple[str, str], int] = {}
    for line in timeline.lines:
        if line.bytes and line.source and line.target:
            way = (line.source, line.target)
            moved[way] = moved.get(way, 0) + line.bytes
    ways = [("HBM → L2", timeline.hbm_read_bytes), ("L2 → HBM", timeline.hbm_write_bytes)]
    ways += [("reads that hit L2", timeline.l2_hit_bytes)]
    ways += [(f"{source} → {target}", size) for (source, target), size in sorted(moved.items())]
    most = max((size for _, size in ways), default=0) or 1
    seconds = timeline.core_us * 1e-6
    return [
        {
            "name": name,
            "share": size / most,
            "size": size_text(size),
            "rate": f"{size / seconds / 1e9:.0f} GB/s" if seconds else "",
        }
        for name, size in ways
    ]


def _cores(timeline: Timeline) -> _View:
    longest = max((core.end_cycle for core in timeline.cores), default=0.0) or 1.0
    bars = []
    for index, core in enumerate(timeline.cores):
        height = _CORE_HEIGHT * core.cycles / longest
        below = _CORE_HEIGHT * core.start_cycle / longest
        time = time_text(core.cycles / timeline.clock_mhz)
        bars.append(
            {
                "x": index * _CORE_WIDTH,
                "y": _CORE_HEIGHT - height - below,
                "width": _CORE_WIDTH - 2,
                "height": height,
                "text": f"{core.kind} block {core.block}: {time}",
            }
        )
    balance = f"balance {100 * timeline.balance:.0f} %: mean of the cores over the slowest"
    return {
        "core_text": f"{len(timeline.cores)} cores, {balance}",
        "cores_width": max(60, _CORE_WIDTH * len(timeline.cores)),
        "cores_height": _CORE_HEIGHT,
        "cores": bars,
    }


def _line(line: LineTime, timeline: Timeline) -> _View:
    share = line.cycles / (len(timeline.cores) * timeline.total_cycles or 1.0)
    conflicts = 100 * line.conflict_cycles / line.cycles if line.cycles else 0.0
    return {
        "file": line.file,
        "where": line.where,
        "source": _source(line),
        "pipe": line.pipe,
        "instruction": line.instruction,
        "share": share,
        "colour": _COLOURS.get(line.pipe, _OTHER_COLOUR),
        "numbers": (
            time_text(line.cycles / timeline.clock_mhz / max(1, len(timeline.cores))),
            str(line.count),
            size_text(line.bytes) if line.bytes else "",
            f"{line.bytes / line.bursts:.0f}" if line.bursts else "",
            f"{conflicts:.0f} %" if conflicts else "",
        ),
    }


def _source(line: LineTime) -> str:
    """Return the text of a line; empty where its file cannot be read any more."""
    try:
        lines = Path(line.file).read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    text = lines[line.line - 1].strip() if 0 < line.line <= len(lines) else ""
    return text if len(text) <= _LONGEST_SOURCE else f"{text[:_LONGEST_SOURCE]}…"
