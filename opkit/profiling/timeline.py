"""What a profiled launch came to, as data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from opkit.chips import find_chip, pipe_names
from opkit.profiling.places import Place

__all__ = [
    "PIPES",
    "SHORT_TASK_US",
    "CoreTime",
    "LineTime",
    "PipeTime",
    "ScalarSpan",
    "Timeline",
    "TimelineEvent",
    "TimelineWait",
    "band_key",
]

SHORT_TASK_US = 15.0
"""Tasks below have a band of their own: what a launch takes decides them."""


def band_key(kernel_class: str, quantity: str, time_us: float) -> str:
    """Return the key of the chip's number for how far a time may be off, in percent.

    Args:
        kernel_class: see `Timeline.kernel_class`.
        quantity: `task`, or a pipe.
        time_us: of the quantity.
    """
    is_short = quantity == "task" and time_us < SHORT_TASK_US
    return f"accuracy.{kernel_class}.{'short_task' if is_short else quantity}_band_percent"


WIDENING = "accuracy.widening"
"""The number of a chip without published times: how much wider than Ascend910B2's its bands are."""

_MEASURED_CHIP = "Ascend910B2"
_LIBRARY = "LibraryWork"
_OTHER_CORES = frozenset({"SyncAll", "CrossCoreWaitFlag", "IBWait", "GroupWait", "WaitPreBlock"})

PIPES = pipe_names()
"""In-order queues of a sub-core, in the order that reports list them."""


@dataclass(frozen=True)
class PipeTime:
    """One pipe over all cores of one kind."""

    kind: str
    """`aiv` or `aic`."""
    pipe: str
    """One of `PIPES`."""
    name: str
    """The pipe's; with its kind of core in front, such as `aic MTE2`, in launches on both."""
    mean_us: float
    """Busy time, mean of the cores of the kind."""
    max_us: float
    """Busy time of the core on which the pipe was busiest."""
    wait_us: float
    """Held by flags, barriers or other cores while it had work to do, mean of the same cores."""
    utilisation: float
    """Mean busy time over the slowest core's time, 0 to 1."""


@dataclass(frozen=True)
class CoreTime:
    """One sub-core."""

    block: int
    """Its GetBlockIdx."""
    sub_block: int
    kind: str
    """`aiv` or `aic`."""
    start_cycle: float
    """Later than 0 where blocks outnumber cores."""
    end_cycle: float
    busy_cycles: Mapping[str, float]
    """By pipe."""
    wait_cycles: Mapping[str, float] = field(default_factory=dict)
    """By pipe: held by flags, barriers or other cores while it had work to do."""
    instructions: Mapping[str, int] = field(default_factory=dict)
    """By pipe."""
    gm_read_bytes: int = 0
    gm_write_bytes: int = 0
    l2_read_hit_bytes: int = 0
    l2_write_hit_bytes: int = 0
    hbm_read_bytes: int = 0
    hbm_write_bytes: int = 0

    @property
    def cycles(self) -> float:
        """From its start to its end."""
        return self.end_cycle - self.start_cycle


@dataclass(frozen=True)
class LineTime:
    """All executions of one instruction on one source line, on all cores."""

    file: str
    line: int
    instruction: str
    """The row's name in the instruction table."""
    pipe: str
    count: int
    cycles: float
    """Pipe time, summed over cores."""
    conflict_cycles: float
    """The part of `cycles` that UB bank conflicts added."""
    bytes: int
    """Moved, for copies; otherwise 0."""
    source: str = ""
    """Memory that a copy reads, such as `GM`; otherwise empty."""
    target: str = ""
    """Memory that a copy writes, such as `UB`; otherwise empty."""
    bursts: int = 0
    """Runs of neighbouring bytes in global memory, for copies."""
    unaligned: int = 0
    """Copies with a burst that begins off the alignment that global memory likes."""
    wait_cycles: float = 0.0
    """What flags, barriers or other cores held its pipe before it, summed over cores; of a barrier
    or a call between cores what it held, of all pipes."""
    operations: int = 0
    """Arithmetic: an element of a vector instruction counts one, a product of the cube two."""

    @property
    def where(self) -> str:
        """The file's name and line, `(no source)` where the kernel gave none."""
        return f"{Path(self.file).name}:{self.line}" if self.file else "(no source)"


@dataclass(frozen=True)
class TimelineEvent:
    """One instruction, or one run of scalar accesses, on one pipe."""

    core: int
    """Index into `Timeline.cores`."""
    line: int
    """Index into `Timeline.lines`."""
    start_cycle: float
    end_cycle: float
    """When its result can be used, start-up of the pipe included."""
    bytes: int
    l2_bytes: int = 0
    """The part of `bytes` that L2 served or took."""


@dataclass(frozen=True)
class TimelineWait:
    """What a pipe waited for while it had work to do."""

    core: int
    """Index into `Timeline.cores`."""
    pipe: str
    reason: str
    """`data` or `buffer`, each by a flag, `barrier` or `cores`: other ones."""
    cause: str
    """The pipe that sets the flag; of barriers and other cores the pipe itself."""
    start_cycle: float
    end_cycle: float
    line: int = -1
    """Index into `Timeline.lines`: what the pipe does next, or the barrier; -1 for neither."""
    cause_core: int = -1
    """Index into `Timeline.cores`: of waits for other cores, whose signal ended it; else -1."""


@dataclass(frozen=True)
class ScalarSpan:
    """A stretch in which the scalar pipe of a core issued without a gap."""

    core: int
    """Index into `Timeline.cores`."""
    start_cycle: float
    end_cycle: float


@dataclass(frozen=True, repr=False)
class Timeline:
    """One launch on the modelled chip: a model, not a measurement."""

    kernel: str
    chip: str
    block_dim: int
    clock_mhz: float
    task_us: float
    """What a profiler on the chip calls task duration: launch plus the slowest core."""
    launch_us: float
    total_cycles: float
    """Cycles of the slowest core."""
    cores: tuple[CoreTime, ...]
    lines: tuple[LineTime, ...]
    """Most expensive first."""
    events: tuple[TimelineEvent, ...]
    events_dropped: int
    """Instructions that only the totals count, because the event limit was reached."""
    gm_read_bytes: int
    gm_write_bytes: int
    l2_hit_bytes: int
    """Bytes read that L2 held; L2 is empty when the launch begins."""
    hbm_read_bytes: int
    hbm_write_bytes: int
    """Written lines that left L2 during the launch; the rest is still in L2 at its end."""
    l2_lost_bytes: int = 0
    """Bytes read from HBM that L2 had held before and given up."""
    fault: str = ""
    """Why the launch did not come to its end; its times are those of what it got to."""
    ub_bytes_used: int = 0
    """The highest UB address that any core used."""
    lifted_cycles: Mapping[str, float] = field(default_factory=dict)
    """By limit (`emulator/src/observe/timing_limits.inc`): `total_cycles` without it; empty unless
    asked for."""
    waits: tuple[TimelineWait, ...] = ()
    scalar: tuple[ScalarSpan, ...] = ()
    place: Place | None = None
    """Where in a model it comes from; None for launches that PyTorch did not make."""

    @property
    def kernel_class(self) -> str:
        """`vector`, `cube`, `matmul` (by a Matmul object) or `mixed`."""
        kinds = {core.kind for core in self.cores}
        if len(kinds) > 1:
            return "mixed"
        if "aic" not in kinds:
            return "vector"
        return "matmul" if any(line.instruction == _LIBRARY for line in self.lines) else "cube"

    @property
    def guessed_share(self) -> float:
        """Share of the cores' time that rests on guesses, 0 to 1: library code, waits for cores."""
        total = sum(core.cycles for core in self.cores)
        if total == 0:
            return 0.0
        signal = find_chip(self.chip).number("timing.cross_core.signal_cycles")
        library = sum(line.cycles for line in self.lines if line.instruction == _LIBRARY)
        waits = sum(line.count for line in self.lines if line.instruction in _OTHER_CORES) * signal
        return min(1.0, (library + waits) / total)

    def band_percent(self, quantity: str = "task") -> float | None:
        """Return how far a time may be off, either way; None where nothing is published to tell.

        The truth is to lie between `time / (1 + band)` and `time * (1 + band)`.

        Args:
            quantity: `task`, or a pipe for its busy time.
        Source: the chip's numbers `accuracy.*_band_percent`, from published times of kernels of
        other families; wider by the share of the time that rests on guesses, and for chips that
        only share Ascend910B2's architecture.
        """
        numbers = find_chip(self.chip).numbers
        widening = 1.0
        if WIDENING in numbers:
            widening = numbers[WIDENING].value
            numbers = find_chip(_MEASURED_CHIP).numbers
        key = band_key(self.kernel_class, quantity, self.task_us)
        if key not in numbers:
            return None
        return float(round(numbers[key].value * widening * (1 + self.guessed_share)))

    @property
    def guesses(self) -> tuple[str, ...]:
        """Keys of the chip's timing constants that no document and no measurement gives."""
        return find_chip(self.chip).guesses

    @property
    def core_us(self) -> float:
        """Time of the slowest core, in microseconds."""
        return self.total_cycles / self.clock_mhz

    def pipes(self, *, with_idle: bool = False) -> tuple[PipeTime, ...]:
        """Return the pipes that did anything, those of cube and vector cores apart, busiest first.

        Args:
            with_idle: also those that only waited.

        Cores of both kinds have an MTE2 and a scalar pipe: a mean over both says nothing of either.
        """
        result = []
        kinds = sorted({core.kind for core in self.cores})
        for kind in kinds:
            cores = [core for core in self.cores if core.kind == kind]
            for pipe in PIPES:
                busy = [core.busy_cycles.get(pipe, 0.0) for core in cores]
                waits = sum(core.wait_cycles.get(pipe, 0.0) for core in cores) / len(cores)
                if not any(busy) and not (with_idle and waits):
                    continue
                mean = sum(busy) / len(busy)
                share = mean / self.total_cycles if self.total_cycles else 0.0
                name = f"{kind} {pipe}" if len(kinds) > 1 else pipe
                mean_us, max_us, wait_us = (
                    cycles / self.clock_mhz for cycles in (mean, max(busy), waits)
                )
                result.append(PipeTime(kind, pipe, name, mean_us, max_us, wait_us, min(share, 1.0)))
        return tuple(sorted(result, key=lambda time: -time.mean_us))

    @property
    def bounds(self) -> Mapping[str, PipeTime]:
        """By kind of core the pipe that works longest; the kind that bounds the launch first.

        A scalar pipe that asks for another core's messages is busy, but bounds nothing.
        """

        def working_us(time: PipeTime) -> float:
            return time.mean_us - (time.wait_us if time.pipe == "S" else 0.0)

        result: dict[str, PipeTime] = {}
        for time in sorted(self.pipes(), key=working_us, reverse=True):
            result.setdefault(time.kind, time)
        return result

    @property
    def bound_by(self) -> str:
        """The pipe that works longest, or `launch` where launching takes longer than the cores run.

        In launches on both kinds of core the kind is said: `aic MTE2`.
        """
        bounds = self.bounds
        if not bounds or self.launch_us > self.core_us:
            return "launch"
        return next(iter(bounds.values())).name

    @property
    def is_hbm_bound(self) -> bool:
        """Whether the cores would be a tenth faster if global memory had no limit that they share.

        False for launches profiled without `lift_limits`.
        """
        return self.lifted_cycles.get("Hbm", self.total_cycles) < 0.9 * self.total_cycles

    @property
    def balance(self) -> float:
        """Mean time of the cores over the slowest core's, 0 to 1; 1 is even."""
        slowest = max((core.cycles for core in self.cores), default=0.0)
        if slowest == 0:
            return 1.0
        return sum(core.cycles for core in self.cores) / len(self.cores) / slowest

    def rows(self) -> list[dict[str, object]]:
        """Return one flat row a source line and instruction: what `pandas.DataFrame` takes."""
        return [
            {**dataclasses.asdict(line), "time_us": line.cycles / self.clock_mhz}
            for line in self.lines
        ]

    def core_rows(self) -> list[dict[str, object]]:
        """Return one flat row a core: times by pipe in microseconds, traffic in bytes."""
        return [_core_row(core, self.clock_mhz) for core in self.cores]

    def __repr__(self) -> str:
        return f"<Timeline {self.kernel}: {self.task_us:.6g} us on {self.chip}>"

    @property
    def gm_bytes_per_second(self) -> float:
        """Bytes moved between global memory and the cores, per second of core time."""
        if self.core_us == 0:
            return 0.0
        return (self.gm_read_bytes + self.gm_write_bytes) / (self.core_us * 1e-6)


def _core_row(core: CoreTime, clock_mhz: float) -> dict[str, object]:
    row: dict[str, object] = {
        "block": core.block,
        "sub_block": core.sub_block,
        "kind": core.kind,
        "start_us": core.start_cycle / clock_mhz,
        "time_us": core.cycles / clock_mhz,
    }
    for pipe, cycles in core.busy_cycles.items():
        row[f"{pipe.lower()}_us"] = cycles / clock_mhz
    for pipe, cycles in core.wait_cycles.items():
        row[f"{pipe.lower()}_wait_us"] = cycles / clock_mhz
    traffic = ("gm_read", "gm_write", "l2_read_hit", "l2_write_hit", "hbm_read", "hbm_write")
    for name in traffic:
        row[f"{name}_bytes"] = getattr(core, f"{name}_bytes")
    return row
