"""A timeline as text for a terminal."""

from __future__ import annotations

from opkit.profiling.timeline import LineTime, Timeline

__all__ = ["summary_text"]

_BAR_WIDTH = 30


def summary_text(timeline: Timeline, *, line_count: int = 8) -> str:
    """Return some lines of text: task time, pipes, memory traffic, core balance, hottest lines.

    Args:
        line_count: how many source lines to show at the most.
    """
    parts = [_head(timeline), _pipes(timeline), _memory(timeline), _cores(timeline)]
    if timeline.lines and line_count > 0:
        parts.append(_lines(timeline, line_count))
    if timeline.events_dropped:
        parts.append(
            f"timeline: the first {len(timeline.events)} instructions;"
            f" {timeline.events_dropped} more are in the totals only"
        )
    return "\n\n".join(parts)


def _head(timeline: Timeline) -> str:
    pipes = timeline.pipes()
    bound_by = timeline.bound_by
    if bound_by == "launch" and pipes:
        bound_by = f"launch, the cores by {pipes[0].pipe}"
    return (
        f"{timeline.kernel}: {_us(timeline.task_us)} on {timeline.chip}"
        f" at {timeline.clock_mhz:g} MHz (a model, not a measurement)\n"
        f"{timeline.block_dim} blocks; {_us(timeline.launch_us)} launch + "
        f"{_us(timeline.core_us)} slowest core; bound by {bound_by}"
    )


def _pipes(timeline: Timeline) -> str:
    rows = []
    for time in timeline.pipes():
        filled = round(time.utilisation * _BAR_WIDTH)
        bar = "█" * filled + "·" * (_BAR_WIDTH - filled)
        share = f"{100 * time.utilisation:5.1f} %"
        rows.append(f"  {time.pipe:<5} {bar} {share}  {_us(time.mean_us)} busy")
    return "pipes, mean of the cores\n" + "\n".join(rows or ["  nothing was issued"])


def _memory(timeline: Timeline) -> str:
    hits = timeline.l2_hit_bytes
    touched = hits + timeline.hbm_read_bytes
    rate = f"{100 * hits / touched:.0f} % of reads hit L2, which starts empty" if touched else ""
    return (
        f"memory\n  read {_size(timeline.gm_read_bytes)}, wrote {_size(timeline.gm_write_bytes)}"
        f" at {timeline.gm_bytes_per_second / 1e12:.2f} TB/s\n"
        f"  HBM: {_size(timeline.hbm_read_bytes)} in, {_size(timeline.hbm_write_bytes)} out"
        + (f"; {rate}" if rate else "")
    )


def _cores(timeline: Timeline) -> str:
    slowest = max(timeline.cores, key=lambda core: core.cycles, default=None)
    text = f"cores: {len(timeline.cores)}, balance {100 * timeline.balance:.0f} %"
    if slowest is not None and timeline.balance < 0.95:
        text += f"; slowest is block {slowest.block}, {_us(slowest.cycles / timeline.clock_mhz)}"
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
        text += f"  {_size(line.bytes)}"
    if line.conflict_cycles:
        share = 100 * line.conflict_cycles / line.cycles
        text += f"  {share:.0f} % of it bank conflicts"
    return text


def _us(time_us: float) -> str:
    if time_us >= 10_000:
        return f"{time_us / 1000:.2f} ms"
    return f"{time_us:.1f} us" if time_us >= 100 else f"{time_us:.2f} us"


def _size(size_bytes: int) -> str:
    value = float(size_bytes)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.2f} GiB"
