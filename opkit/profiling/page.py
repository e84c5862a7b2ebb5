"""A timeline as one HTML page that needs nothing else: no network, no font, no other file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from opkit.profiling.advice import advise
from opkit.profiling.difference import Change, ProfileDifference
from opkit.profiling.page_data import MOST_ITEMS, REASONS, launch_data
from opkit.profiling.places import ModelProfile, PlaceTime
from opkit.profiling.roofline import attained, binding_text, roofline_drawing
from opkit.profiling.source_view import SourceLine, read_source, source_files
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
_WAIT_COLOURS = dict(zip(REASONS, ("#0969da", "#bf8700", "#cf222e", "#8250df"), strict=True))
_WAIT_NAMES = dict(zip(REASONS, ("data", "a buffer", "a barrier", "other cores"), strict=True))
_LAUNCHES_SHOWN = 8
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
    style = "".join(
        render_template(f"pages/{name}.css", {}) for name in ("body", "profile", "timeline")
    )
    timeline = render_template("pages/timeline.html.jinja", {"view": _drawn(0)})
    return PageParts(style, render_template("pages/timeline.js", {}), timeline, _COLOURS)


def _drawn(events_dropped: int) -> _View:
    """Return what the timeline's surroundings show."""
    return {
        "dropped": events_dropped,
        "launch_colour": _LAUNCH_COLOUR,
        "scalar_colour": _COLOURS["S"],
        "waits": [(_WAIT_NAMES[reason], _WAIT_COLOURS[reason]) for reason in REASONS],
        "settings": {
            "colours": _COLOURS,
            "pipes": PIPES,
            "waits": _WAIT_COLOURS,
            "launchColour": _LAUNCH_COLOUR,
        },
    }


def html_page(
    timeline: Timeline,
    *,
    case: str = "",
    made: str = "",
    model: ModelProfile | None = None,
    launches: Sequence[Timeline] = (),
) -> str:
    """Return the page: times, advice, timeline by core and pipe, source, roofline, memory, cores.

    Args:
        case: what was launched: operator, data types, shape.
        made: when, and by which versions.
        model: the whole program that the launch is one of.
        launches: all of the program's, in their order; the page has the longest of them too.
    """
    longest = sorted(launches, key=lambda each: -each.task_us)[:_LAUNCHES_SHOWN]
    others = [each for each in launches if any(each is item for item in longest)]
    shown = others if any(each is timeline for each in others) else [timeline]
    numbers = {id(each): at for at, each in enumerate(launches, 1)}
    data = [launch_data(each, items=MOST_ITEMS // len(shown)) for each in shown]
    view = {
        "title": f"{timeline.kernel} on {timeline.chip}",
        "model": _model(model) if model is not None else None,
        **_drawn(timeline.events_dropped),
        "launches": [
            {
                **_launch(each),
                "is_shown": each is timeline,
                "name": f"launch {numbers.get(id(each), 1)}: {each.kernel},"
                f" {time_text(each.task_us)}",
            }
            for each in shown
        ],
        "launch_count": len(launches),
        "data": data,
    }
    return render_template("pages/profile.html.jinja", {"view": view, "case": case, "made": made})


def _launch(timeline: Timeline) -> _View:
    """Return what the page says of one launch beside its timeline."""
    return {
        **_summary(timeline, _LINES_SHOWN),
        "roofline": roofline_drawing(timeline),
        "binding": binding_text(timeline),
        "ceilings": _ceilings(timeline),
        "lost": size_text(timeline.l2_lost_bytes) if timeline.l2_lost_bytes else "",
        "traffic": _traffic(timeline),
        "sources": _sources(timeline),
        "ub": size_text(timeline.ub_bytes_used) if timeline.ub_bytes_used else "",
        **_cores(timeline),
    }


def _ceilings(timeline: Timeline) -> list[_View]:
    rows: list[_View] = []
    for item in attained(timeline):
        is_memory = item.ceiling.bytes_per_second is not None
        most = item.ceiling.bytes_per_second or item.ceiling.operations_per_second or 0.0
        unit = "TB/s" if is_memory else "T/s"
        rows.append(
            {
                "name": item.ceiling.name,
                "share": item.share,
                "rate": f"{item.rate / 1e12:.3g} {unit}",
                "most": f"{most / 1e12:.3g} {unit}",
            }
        )
    return rows


def _sources(timeline: Timeline) -> list[_View]:
    whole = len(timeline.cores) * timeline.total_cycles or 1.0

    def row(line: SourceLine | None) -> _View | None:
        if line is None:
            return None

        def time(cycles: float) -> str:
            us = cycles / timeline.clock_mhz / max(1, len(timeline.cores))
            return time_text(us) if cycles else ""

        return {
            "number": line.number,
            "text": line.text,
            "has_cost": bool(line.lines),
            "lines": ",".join(str(index) for index in line.lines),
            "share": line.cycles / whole,
            "colour": _COLOURS.get(line.pipe, _OTHER_COLOUR),
            "time": time(line.cycles),
            "bytes": size_text(line.bytes) if line.bytes else "",
            "stall": time(line.wait_cycles),
            "count": str(line.count) if line.count else "",
        }

    return [
        {
            "path": file.path,
            "name": Path(file.path).name,
            "rows": [row(line) for line in file.lines],
        }
        for file in source_files(timeline)
    ]


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
        "sources": _source_changes(difference),
        "names": names,
        "made": made,
        "task": f"{time_text(change.before)} → {time_text(change.after)}",
        "sections": [section for section in sections if section["rows"]],
    }
    return render_template("pages/difference.html.jinja", context)


def _source_changes(difference: ProfileDifference) -> list[_View]:
    """Return the files line by line: what each line took before and after."""
    files: dict[str, list[_View]] = {}
    most = max((max(line.before_us, line.after_us) for line in difference.sources), default=0.0)
    for line in difference.sources:
        kind = "gone" if line.after_line is None else "new" if line.before_line is None else ""
        changed = line.after_us - line.before_us
        held = line.after_wait_us - line.before_wait_us
        files.setdefault(line.file, []).append(
            {
                "kind": kind,
                "text": line.text,
                "numbers": (line.before_line or "", line.after_line or ""),
                "before": time_text(line.before_us) if line.before_us else "",
                "after": time_text(line.after_us) if line.after_us else "",
                "change": _signed_time(changed),
                "stall": _signed_time(held),
                "before_share": line.before_us / (most or 1.0),
                "after_share": line.after_us / (most or 1.0),
                "colour": _OTHER_COLOUR,
                "has_cost": bool(line.before_us or line.after_us),
            }
        )
    return [{"name": name, "rows": rows} for name, rows in files.items()]


def _signed_time(time_us: float) -> str:
    if abs(time_us) < 0.005:
        return ""
    return f"{'+' if time_us > 0 else '−'}{time_text(abs(time_us))}"


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
        "lines": [_line(at, line, timeline) for at, line in enumerate(timeline.lines[:line_count])],
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


def _line(index: int, line: LineTime, timeline: Timeline) -> _View:
    share = line.cycles / (len(timeline.cores) * timeline.total_cycles or 1.0)
    conflicts = 100 * line.conflict_cycles / line.cycles if line.cycles else 0.0
    return {
        "index": index,
        "file": line.file,
        "where": line.where,
        "source": _source(line),
        "pipe": line.pipe,
        "instruction": line.instruction,
        "share": share,
        "colour": _COLOURS.get(line.pipe, _OTHER_COLOUR),
        "numbers": (
            time_text(line.cycles / timeline.clock_mhz / max(1, len(timeline.cores))),
            time_text(line.wait_cycles / timeline.clock_mhz / max(1, len(timeline.cores)))
            if line.wait_cycles
            else "",
            str(line.count),
            size_text(line.bytes) if line.bytes else "",
            f"{line.bytes / line.bursts:.0f}" if line.bursts else "",
            f"{conflicts:.0f} %" if conflicts else "",
        ),
    }


def _source(line: LineTime) -> str:
    """Return the text of a line; empty where its file cannot be read any more."""
    lines = read_source(line.file)
    text = lines[line.line - 1].strip() if 0 < line.line <= len(lines) else ""
    return text if len(text) <= _LONGEST_SOURCE else f"{text[:_LONGEST_SOURCE]}…"
