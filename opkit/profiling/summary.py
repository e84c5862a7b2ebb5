"""A timeline as text for a terminal."""

from __future__ import annotations

from opkit.profiling.advice import Advice, advise
from opkit.profiling.timeline import LineTime, Timeline

__all__ = ["basis_text", "bound_text", "size_text", "summary_text", "time_text"]

_BAR_WIDTH = 30
_ADVICE_COUNT = 3
_CORES = {"aic": "cube", "aiv": "vector"}


def summary_text(timeline: Timeline, *, line_count: int = 8) -> str:
    """Return some lines of text: task time, pipes, what to change, memory, cores, hottest lines.

    Args:
        line_count: how many source lines to show at the most.
    """
    parts = [_head(timeline), _pipes(timeline), _changes(timeline)]
    parts += [_memory(timeline), _cores(timeline)]
    if timeline.lines and line_count > 0:
        parts.append(_lines(timeline, line_count))
    if timeline.events_dropped:
        parts.append(
            f"timeline: the first {len(timeline.events)} instructions;"
            f" {timeline.events_dropped} more are in the totals only"
        )
    parts.append(basis_text(timeline))
    return "\n\n".join(part for part in parts if part)


def time_text(time_us: float, band_percent: float | None = None) -> str:
    """Return a time with its unit and, where there is one, its error band."""
    band = f" ± {band_percent:g} %" if band_percent is not None else ""
    if time_us >= 10_000:
        return f"{time_us / 1000:.2f} ms{band}"
    return f"{time_us:.1f} us{band}" if time_us >= 100 else f"{time_us:.2f} us{band}"


def bound_text(timeline: Timeline) -> str:
    """Return what bounds the launch, in words; in launches on both kinds of core, of each kind."""
    bounds = list(timeline.bounds.values())
    if not bounds:
        return timeline.bound_by
    if len(bounds) == 1:
        cores = bounds[0].pipe
    else:
        cores, other = (f"{time.pipe} of the {_CORES[time.kind]} cores" for time in bounds)
        cores += f" ({other}: {100 * bounds[1].utilisation:.0f} %)"
    if timeline.is_hbm_bound:
        cores += " and the bandwidth of HBM"
    return f"launch, the cores by {cores}" if timeline.bound_by == "launch" else cores


def _head(timeline: Timeline) -> str:
    band = timeline.band_percent()
    return (
        f"{timeline.kernel}: {time_text(timeline.task_us, band)} on {timeline.chip}"
        f" at {timeline.clock_mhz:g} MHz (a model, not a measurement)\n"
        f"{timeline.block_dim} blocks; {time_text(timeline.launch_us)} launch + "
        f"{time_text(timeline.core_us, band)} slowest core; bound by {bound_text(timeline)}"
    )


def basis_text(timeline: Timeline) -> str:
    """Return what the times rest on."""
    guesses = len(timeline.guesses)
    text = ""
    if guesses:
        text = (
            f"{guesses} timing constants of {timeline.chip} are assumed: opkit targets"
            f" {timeline.chip} --guesses"
        )
    if timeline.band_percent() is not None:
        band = "± covers four of five published times of other kernels: docs/profile.md"
        return f"{band}; {text}" if text else band
    unknown = f"no times measured on {timeline.chip} are published, so there is no error band"
    return f"{unknown}; {text}" if text else unknown


def _pipes(timeline: Timeline) -> str:
    rows = []
    width = max((len(time.name) for time in timeline.pipes()), default=0)
    width = max(width, 5)
    for time in timeline.pipes():
        filled = round(time.utilisation * _BAR_WIDTH)
        bar = "█" * filled + "·" * (_BAR_WIDTH - filled)
        share = f"{100 * time.utilisation:5.1f} %"
        busy = time_text(time.mean_us, timeline.band_percent(time.pipe))
        rows.append(f"  {time.name:<{width}} {bar} {share}  {busy} busy")
    cores = "the cores of their kind" if timeline.kernel_class == "mixed" else "the cores"
    return f"pipes, mean of {cores}\n" + "\n".join(rows or ["  nothing was issued"])


def _changes(timeline: Timeline) -> str:
    if not timeline.lifted_cycles:
        return ""
    found = advise(timeline)[:_ADVICE_COUNT]
    if not found:
        return "what to change first: nothing that the model knows would save 2 % or more"
    rows = [_change(number, item) for number, item in enumerate(found, 1)]
    return "what to change first, and what each alone would save\n" + "\n".join(rows)


def _change(number: int, item: Advice) -> str:
    where = f" at {item.where}" if item.where else ""
    return (
        f"  {number}. {item.pattern}{where}: {time_text(item.gain_us)}"
        f" ({item.gain_percent:.0f} %)\n"
        f"     {item.finding}; {item.change}"
    )


def _memory(timeline: Timeline) -> str:
    hits = timeline.l2_hit_bytes
    touched = hits + timeline.hbm_read_bytes
    rate = f"{100 * hits / touched:.0f} % of reads hit L2, which starts empty" if touched else ""
    read, written = size_text(timeline.gm_read_bytes), size_text(timeline.gm_write_bytes)
    return (
        f"memory\n  read {read}, wrote {written}"
        f" at {timeline.gm_bytes_per_second / 1e12:.2f} TB/s\n"
        f"  HBM: {size_text(timeline.hbm_read_bytes)} in, {size_text(timeline.hbm_write_bytes)} out"
        + (f"; {rate}" if rate else "")
    )


def _cores(timeline: Timeline) -> str:
    slowest = max(timeline.cores, key=lambda core: core.cycles, default=None)
    text = f"cores: {len(timeline.cores)}, balance {100 * timeline.balance:.0f} %"
    if slowest is not None and timeline.balance < 0.95:
        text += (
            f"; slowest is block {slowest.block}, {time_text(slowest.cycles / timeline.clock_mhz)}"
        )
    return text


def _lines(timeline: Timeline, line_count: int) -> str:
    total = len(timeline.cores) * timeline.total_cycles or 1.0
    shown = timeline.lines[:line_count]
    width = max(len(line.where) for line in shown)
    rows = [_line(line, width, total) for line in shown]
    return "hottest lines, share of all cores' time\n" + "\n".join(rows)


def _line(line: LineTime, width: int, total: float) -> str:
    text = (
        f"  {line.where:<{width}}  {line.pipe:<4} {line.instruction:<14}"
        f" {100 * line.cycles / total:5.1f} %  {line.count:>9} x"
    )
    if line.bytes:
        text += f"  {size_text(line.bytes)}"
    if line.conflict_cycles:
        share = 100 * line.conflict_cycles / line.cycles
        text += f"  {share:.0f} % of it bank conflicts"
    return text


def size_text(size_bytes: int) -> str:
    """Return a size with its unit."""
    value = float(size_bytes)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.2f} GiB"
