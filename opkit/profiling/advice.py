"""What to change first in a kernel, each change with the time that the model says it would save.

The emulator times a launch again without one limit at a time; the difference is the gain of the
change that would remove the limit. What no run of the model shows, work spread unevenly over the
cores, is computed from the cores' times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from opkit.chips import Chip, find_chip
from opkit.profiling.timeline import CoreTime, LineTime, Timeline

__all__ = ["Advice", "advise"]

LEAST_GAIN = 0.02
"""Share of the task time below which a change is not worth a line."""


@dataclass(frozen=True)
class Advice:
    """One change to a kernel, its reason and its gain in the model."""

    pattern: str
    """Its name, such as `single-buffer`; docs/profile.md lists them."""
    finding: str
    """What the launch showed."""
    change: str
    """What to do about it."""
    file: str
    """File of the line that shows the pattern most; empty where no single line does."""
    line: int
    where: str
    """The file's name and the line; empty where no single line does."""
    gain_us: float
    """Task time saved, in microseconds."""
    gain_percent: float
    """The same in percent of the task time."""


@dataclass(frozen=True)
class _Pattern:
    name: str
    limit: str
    """The limit that the model leaves out, of `timing_limits.inc`."""
    finding: Callable[[Timeline, LineTime | None], str]
    change: str
    """With names of `_facts` in braces."""
    applies: Callable[[LineTime], bool]
    """Which lines show it."""
    weight: Callable[[LineTime], float]
    """How much a line shows it."""
    when: Callable[[Timeline], bool] = lambda timeline: True
    needs_line: bool = True


def advise(timeline: Timeline) -> tuple[Advice, ...]:
    """Return the changes that would save time, largest gain first.

    Patterns that need the model without a limit are left out when the launch was profiled without
    `lift_limits`.
    """
    found = [item for pattern in _PATTERNS if (item := _check(timeline, pattern)) is not None]
    spread = _spread(timeline)
    if spread is not None:
        found.append(spread)
    found.sort(key=lambda item: (-item.gain_us, item.pattern))
    return tuple(item for item in found if item.gain_us >= LEAST_GAIN * timeline.task_us)


def _check(timeline: Timeline, pattern: _Pattern) -> Advice | None:
    lifted = timeline.lifted_cycles.get(pattern.limit)
    if lifted is None or lifted >= timeline.total_cycles or not pattern.when(timeline):
        return None
    lines = [line for line in timeline.lines if pattern.applies(line)]
    line = max(lines, key=pattern.weight, default=None)
    if line is None and pattern.needs_line:
        return None
    change = pattern.change.format_map(_facts(find_chip(timeline.chip)))
    return _advice(timeline, pattern.name, pattern.finding(timeline, line), change, line, lifted)


def _facts(chip: Chip) -> dict[str, int]:
    """Return the numbers of the chip that changes name: bytes, and the sides of a block of C."""
    # A block of C holds 4 bytes an element, float32 or int32.
    power = (chip.count("memory.l0c_bytes") // 4).bit_length() - 1
    return {
        "alignment": chip.count("timing.gm.alignment_bytes"),
        "repeat": chip.count("timing.vector.repeat_bytes"),
        "bank": chip.count("memory.ub_bank_bytes"),
        "base_m": 1 << power // 2,
        "base_n": 1 << (power - power // 2),
    }


def _advice(
    timeline: Timeline,
    name: str,
    finding: str,
    change: str,
    line: LineTime | None,
    cycles: float,
    extra_us: float = 0.0,
) -> Advice:
    gain = (timeline.total_cycles - cycles) / timeline.clock_mhz - extra_us
    return Advice(
        pattern=name,
        finding=finding,
        change=change,
        file=line.file if line is not None else "",
        line=line.line if line is not None else 0,
        where=line.where if line is not None else "",
        gain_us=gain,
        gain_percent=100 * gain / timeline.task_us if timeline.task_us else 0.0,
    )


def _spread(timeline: Timeline) -> Advice | None:
    """Return what even work on all cores would save.

    Of launches on both kinds of core those of the kind that bounds it count, and its blocks.
    """
    bounds = timeline.bounds
    if not bounds:
        return None
    chip = find_chip(timeline.chip)
    kind = next(iter(bounds))
    is_mixed = len({core.kind for core in timeline.cores}) > 1
    cores = [core for core in timeline.cores if core.kind == kind]
    blocks = {core.block for core in cores}
    counted = "aic" if is_mixed else kind
    limit = chip.count(f"cores.{counted}")
    launched = len(blocks) if is_mixed else len(cores)
    entry = chip.number("timing.launch.entry_cycles")
    # Cores that wait for the other kind take as long as these: what they do themselves is uneven.
    spent = [_work(core) if is_mixed else core.cycles for core in cores]
    most = max(spent)
    longest = timeline.total_cycles if is_mixed else most
    if most <= entry:
        return None
    work = sum(max(0.0, cycles - entry) for cycles in spent) / (most - entry) * (longest - entry)
    hbm = timeline.hbm_read_bytes + timeline.hbm_write_bytes
    hbm_cycles = hbm / chip.number("timing.hbm.bytes_per_second") * timeline.clock_mhz * 1e6
    even = entry + max(work / (limit * len(cores) / launched), hbm_cycles)
    slowest = cores[spent.index(most)]
    if launched < limit:
        extra = chip.launch_us(limit, counted) - chip.launch_us(launched, counted)
        return _advice(
            timeline,
            "idle-cores",
            f"{limit - launched} of {limit} cores have no block",
            f"split the work over {limit} blocks (SetBlockDim)",
            None,
            even,
            extra,
        )
    if launched % limit:
        waves = -(-launched // limit)
        return _advice(
            timeline,
            "tail-wave",
            f"{launched} blocks on {limit} cores: the last of {waves} waves fills only"
            f" {launched % limit}",
            f"launch {limit} blocks, each with a longer share",
            None,
            even,
        )
    more = 100 * (most * len(cores) / sum(spent) - 1)
    return _advice(
        timeline,
        "uneven-cores",
        f"block {slowest.block} takes {more:.0f} % longer than the mean",
        "cut the work into shares of one length, or smaller ones dealt out in turn",
        None,
        even,
    )


def _work(core: CoreTime) -> float:
    """Return the busy time of the core's busiest pipe, without what its scalar pipe waits for."""
    waited = core.wait_cycles.get("S", 0.0)
    return max(
        cycles - (waited if pipe == "S" else 0.0) for pipe, cycles in core.busy_cycles.items()
    )


def _is_copy(line: LineTime) -> bool:
    return line.bytes > 0 and "GM" in (line.source, line.target)


def _is_copy_in(line: LineTime) -> bool:
    return line.bytes > 0 and line.source == "GM"


def _cycles(line: LineTime) -> float:
    return line.cycles


def _share(timeline: Timeline, cycles: float) -> str:
    total = sum(core.cycles for core in timeline.cores) or 1.0
    return f"{100 * cycles / total:.0f} %"


def _held(timeline: Timeline, line: LineTime | None) -> str:
    pipe = line.pipe if line is not None else "MTE2"
    waits = sum(core.wait_cycles.get(pipe, 0.0) for core in timeline.cores)
    return f"{pipe} waits {_share(timeline, waits)} of the time for flags, most for a free buffer"


def _burst(timeline: Timeline, line: LineTime | None) -> str:
    assert line is not None
    return f"bursts of {line.bytes / max(1, line.bursts):.0f} bytes"


def _small_copies(timeline: Timeline, line: LineTime | None) -> str:
    assert line is not None
    return (
        f"{line.bytes / line.count:.0f} bytes a copy, and latency once for each that is waited for"
    )


def _unaligned(timeline: Timeline, line: LineTime | None) -> str:
    assert line is not None
    step = find_chip(timeline.chip).count("timing.gm.alignment_bytes")
    return f"{line.unaligned} of {line.count} copies have rows that begin off {step} bytes"


def _conflicts(timeline: Timeline, line: LineTime | None) -> str:
    assert line is not None
    return f"bank conflicts are {100 * line.conflict_cycles / line.cycles:.0f} % of its time"


def _elements(timeline: Timeline, line: LineTime | None) -> str:
    found = sum(item.count for item in timeline.lines if item.instruction in _ELEMENT_ACCESS)
    return f"{found} accesses to single elements on the scalar pipe"


def _read_back(timeline: Timeline, line: LineTime | None) -> str:
    waits = sum(core.wait_cycles.get("S", 0.0) for core in timeline.cores)
    return (
        f"the scalar pipe waits {_share(timeline, waits)} of the time for results that it reads,"
        " and the next copy waits behind it"
    )


def _barriers(timeline: Timeline, line: LineTime | None) -> str:
    assert line is not None
    return f"{line.count} barriers of all pipes, each waiting for the slowest"


def _cores_wait(timeline: Timeline, line: LineTime | None) -> str:
    assert line is not None
    return f"{line.count} calls that wait for other cores"


def _lost(timeline: Timeline, line: LineTime | None) -> str:
    again = (
        f"{timeline.l2_lost_bytes / 2**20:.0f} MiB are read from HBM again, after L2 gave them up"
    )
    pushed = f"{timeline.hbm_write_bytes / 2**20:.0f} MiB of results leave L2 to make room"
    return again if timeline.l2_lost_bytes > 0 else pushed


def _library(timeline: Timeline, line: LineTime | None) -> str:
    cycles = sum(item.cycles for item in timeline.lines if item.instruction == "LibraryWork")
    return f"Matmul objects read their tilings for {_share(timeline, cycles)} of the time"


def _blocks(timeline: Timeline, line: LineTime | None) -> str:
    return "blocks of C fill only a part of L0C, so A and B are copied in more often"


def _in_turns(timeline: Timeline, line: LineTime | None) -> str:
    return "M and FIX take turns: a result leaves L0C only when all of it is there"


def _one_vector_core(timeline: Timeline, line: LineTime | None) -> str:
    return "one vector core works for each cube core; there are two"


def _no_room(timeline: Timeline, line: LineTime | None) -> str:
    assert line is not None
    return f"cube cores wait {line.count} times until vector cores have taken their results"


def _same(timeline: Timeline, line: LineTime | None) -> str:
    return "cores read the same addresses at the same time"


def _small_tiles(timeline: Timeline, line: LineTime | None) -> str:
    size = find_chip(timeline.chip).count("memory.ub_bytes")
    return f"{100 * timeline.ub_bytes_used / size:.0f} % of UB is used"


def _stalls(timeline: Timeline, line: LineTime | None) -> str:
    return "vector instructions wait for the result of the one before"


def _has_room(timeline: Timeline) -> bool:
    size = find_chip(timeline.chip).count("memory.ub_bytes")
    return 0 < timeline.ub_bytes_used <= size // 2


_ELEMENT_ACCESS = ("GetValue", "SetValue")
_NEIGHBOURS = (
    *("SyncAll", "CrossCoreWaitFlag", "IBWait", "GroupWait", "WaitPreBlock"),
    *("CubeServe", "CubeAwait"),
)

_PATTERNS = (
    _Pattern(
        "single-buffer",
        "Buffers",
        _held,
        "give its queue one more buffer: copies then run while the other pipes work",
        _is_copy_in,
        _cycles,
    ),
    _Pattern(
        "short-bursts",
        "Bursts",
        _burst,
        "copy longer runs of neighbouring bytes: whole rows, or tiles wide rather than high",
        lambda line: _is_copy(line) and line.bursts > 0,
        lambda line: line.bursts,
    ),
    _Pattern(
        "small-copies",
        "CopyStartup",
        _small_copies,
        "copy more at a time, and issue copies back to back before waiting",
        _is_copy,
        lambda line: line.count,
    ),
    _Pattern(
        "unaligned-rows",
        "Alignment",
        _unaligned,
        "begin shares and rows at multiples of {alignment} bytes, padding rows where they are not",
        lambda line: line.unaligned > 0,
        _cycles,
    ),
    _Pattern(
        "bank-conflicts",
        "BankConflicts",
        _conflicts,
        "move one operand by {repeat} bytes, or make strides odd multiples of {bank} bytes",
        lambda line: line.conflict_cycles > 0,
        lambda line: line.conflict_cycles,
    ),
    _Pattern(
        "element-loop",
        "Elements",
        _elements,
        "use vector instructions instead of GetValue and SetValue in a loop",
        lambda line: line.instruction in _ELEMENT_ACCESS,
        lambda line: line.count,
    ),
    _Pattern(
        "late-copy-in",
        "ReadBack",
        _read_back,
        "copy the next tile in before computing this one: CopyIn(i + 1), then Compute(i)",
        _is_copy_in,
        _cycles,
    ),
    _Pattern(
        "full-barriers",
        "Barriers",
        _barriers,
        "replace PipeBarrier<PIPE_ALL> by flags between the two pipes that depend on each other",
        lambda line: line.instruction == "PipeBarrier",
        lambda line: line.count,
    ),
    _Pattern(
        "core-waits",
        "CrossCore",
        _cores_wait,
        "synchronise cores less often, or give them work that does not depend on others meanwhile",
        lambda line: line.instruction in _NEIGHBOURS,
        lambda line: line.count,
    ),
    _Pattern(
        "l2-reuse-lost",
        "L2Reuse",
        _lost,
        "finish with a part that fits L2 before the next; bypass L2 for what is read once",
        _is_copy_in,
        lambda line: line.bytes,
        when=lambda timeline: timeline.l2_lost_bytes > 0 or timeline.hbm_write_bytes > 0,
    ),
    _Pattern(
        "same-addresses",
        "SameAddress",
        _same,
        "let each core begin at another place, its own block index on",
        _is_copy_in,
        lambda line: line.bytes,
    ),
    _Pattern(
        "small-tiles",
        "SmallTiles",
        _small_tiles,
        "double the tile: half the calls, start-ups and waits for the same work",
        _is_copy_in,
        lambda line: line.count,
        when=_has_room,
    ),
    _Pattern(
        "small-base-blocks",
        "BaseBlocks",
        _blocks,
        "choose baseM and baseN that fill L0C, such as {base_m} and {base_n}",
        lambda line: line.instruction == "Mmad",
        _cycles,
    ),
    _Pattern(
        "variable-tiling",
        "Tiling",
        _library,
        "give the Matmul object a tiling that the compiler knows: GetMatmulApiTiling",
        lambda line: line.instruction == "LibraryWork",
        _cycles,
    ),
    _Pattern(
        "no-unit-flag",
        "UnitFlags",
        _in_turns,
        "set enUnitFlag in the MatmulConfig, or unitFlag of Mmad and Fixpipe",
        lambda line: line.pipe == "FIX",
        _cycles,
    ),
    _Pattern(
        "one-vector-core",
        "VectorCores",
        _one_vector_core,
        "launch __mix__(1, 2), and share the work between both vector cores",
        lambda line: line.pipe == "V",
        _cycles,
    ),
    _Pattern(
        "shallow-pipeline",
        "HandOver",
        _no_room,
        "hand over through more slots, so that cube cores run ahead of vector cores",
        lambda line: line.instruction == "CrossCoreWaitFlag",
        lambda line: line.count,
    ),
    _Pattern(
        "dependent-chain",
        "VectorStalls",
        _stalls,
        "put instructions of another tile or half between those that depend on each other",
        lambda line: line.pipe == "V",
        lambda line: line.count,
    ),
)
