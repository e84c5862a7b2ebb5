"""A launch as it was recorded: its instructions in order, and memory before any of them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from opkit import runtime
from opkit.bfloat16 import bfloat16_to_float32
from opkit.dtypes import DTYPES, DType
from opkit.errors import UsageError
from opkit.sanitizer import located

if TYPE_CHECKING:
    import opkit.emulator._emulator as _emulator

__all__ = [
    "Buffer",
    "Fault",
    "Instruction",
    "Operand",
    "Piece",
    "Range",
    "Recording",
    "dtype_of_code",
    "load_recording",
    "recording",
    "spaces",
]

LIMIT_BYTES = 8 << 30
_BY_CODE = {row.code: row for row in DTYPES}


@functools.cache
def spaces() -> tuple[str, ...]:
    """Return the names of the memories, in the emulator's order."""
    import opkit.emulator._emulator as _emulator

    return tuple(_emulator.memory_names())


def dtype_of_code(code: str) -> DType:
    """Return the data type of the emulator's own name of it; bytes where it has no other."""
    return _BY_CODE.get(code, _BY_CODE["U8"])


@dataclass(frozen=True)
class Range:
    """A tensor, workspace or tiling data in global memory."""

    name: str
    """What the launch calls it, such as `input x`; may be empty."""
    begin: int
    """Address in the process that was recorded."""
    size_bytes: int

    @property
    def end(self) -> int:
        """One past its last byte."""
        return self.begin + self.size_bytes

    @property
    def short_name(self) -> str:
        """The name without the word in front of it."""
        return self.name.removeprefix("input ").removeprefix("output ").removeprefix("the ")


@dataclass(frozen=True)
class Operand:
    """One tensor operand; addresses in GM are those of the recorded process."""

    space: str
    address: int
    begin: int
    """First byte of the buffer that the tensor belongs to."""
    end: int
    dtype: DType


@dataclass(frozen=True)
class Piece:
    """Bytes that an instruction reads or writes."""

    operand: int
    """0: the destination, 1 and up: sources."""
    space: str
    begin: int
    size_bytes: int
    dtype: DType
    is_write: bool

    @property
    def end(self) -> int:
        """One past its last byte."""
        return self.begin + self.size_bytes


@dataclass(frozen=True)
class Instruction:
    """One instruction with its operands."""

    step: int
    """Its place in the launch, from 0."""
    core: int
    number: int
    """Its place on its core, from 1."""
    op: str
    family: str
    pipe: str
    peer_pipe: str
    event_id: int
    mode: int
    count: int
    repeat: int
    file: Path
    line: int
    is_complete: bool
    """False for the one that ended the launch, or that waited when it ended."""
    dst: Operand | None
    sources: tuple[Operand, ...]
    scalar: float | int | None
    pieces: tuple[Piece, ...]

    @property
    def site_key(self) -> tuple[Path, int]:
        """File and line."""
        return self.file, self.line

    @property
    def written(self) -> tuple[Piece, ...]:
        """What it writes."""
        return tuple(piece for piece in self.pieces if piece.is_write)

    @property
    def read(self) -> tuple[Piece, ...]:
        """What it reads."""
        return tuple(piece for piece in self.pieces if not piece.is_write)


@dataclass(frozen=True)
class Fault:
    """What ended a launch."""

    category: str
    message: str
    help: str
    file: Path | None
    line: int
    block: int
    sub_core: str
    instruction: int


@dataclass(frozen=True)
class Buffer:
    """Memory that InitBuffer placed."""

    core: int
    space: str
    address: int
    size_bytes: int
    site: int
    slot: int
    """Its number among those of the same call."""
    step: int


class Recording:
    """One recorded launch. `step` always means: before the instruction of that number."""

    def __init__(self, native: _emulator.RecordedLaunch) -> None:
        import opkit.emulator._emulator as emulator

        self._native = native
        about: Mapping[str, Any] = native.about()
        self.kernel: str = about["kernel"]
        self.chip: str = about["chip"]
        self.block_dim: int = about["block_dim"]
        self.launch: int = about["launch"]
        self.is_cut: bool = about["is_cut"]
        """Whether there was no room for the whole launch."""
        self.size_bytes: int = about["bytes"]
        self.cores: tuple[tuple[str, int, int], ...] = tuple(about["cores"])
        """Kind, block and sub-block of each core."""
        self.ranges = tuple(Range(*row) for row in about["ranges"])
        self.sites: tuple[tuple[Path, int], ...] = tuple(
            (Path(file), line) for file, line in about["sites"]
        )
        self.space_bytes: dict[str, int] = about["space_bytes"]
        self.step_count: int = about["steps"]
        self.fault = _fault(about["fault"])
        columns: Mapping[str, NDArray[Any]] = native.columns()
        self.core_of = columns["core"]
        self.number_of = columns["number"]
        self.site_of = columns["site"]
        self.op_of = columns["op"]
        self.pipe_of = columns["pipe"]
        self.is_complete = columns["complete"]
        self.op_names: tuple[str, ...] = tuple(emulator.op_names())

    def locate(self, root: Path) -> None:
        """Take relative files of the source as files below `root`, where there are such."""
        self.sites = tuple((located(file, root), line) for file, line in self.sites)
        if self.fault is not None and self.fault.file is not None:
            self.fault = replace(self.fault, file=located(self.fault.file, root))

    @cached_property
    def steps_of(self) -> tuple[NDArray[np.int64], ...]:
        """The instructions of each core."""
        order = np.argsort(self.core_of, kind="stable")
        ends = np.searchsorted(self.core_of[order], np.arange(len(self.cores) + 1))
        return tuple(order[ends[i] : ends[i + 1]] for i in range(len(self.cores)))

    @cached_property
    def line_of(self) -> NDArray[np.int64]:
        """A number for the source line of each instruction: the same for the same line."""
        numbers: dict[tuple[Path, int], int] = {}
        of_site = [numbers.setdefault(site, len(numbers)) for site in self.sites]
        lines: NDArray[np.int64] = np.array(of_site or [0], np.int64)[self.site_of]
        return lines

    @cached_property
    def hulls(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """(memory by its place in `spaces`, begin, end) of what each writes; an end of 0: none."""
        space, begin, end = self._native.hulls()
        return space, begin, end

    @cached_property
    def events(self) -> tuple[dict[str, Any], ...]:
        """The calls of queues, buffers and event ids."""
        return tuple(self._native.events())

    @cached_property
    def buffers(self) -> tuple[Buffer, ...]:
        """What InitBuffer placed, by core."""
        found = []
        slots: dict[tuple[int, int], int] = {}
        told = set()
        for event in self.events:
            placed = (event["core"], event["space"], event["address"], event["bytes"])
            # A queue in a pool is told of twice: by the pool and by the queue.
            if event["action"] != "PlaceBuffer" or (event["site"], placed) in told:
                continue
            told.add((event["site"], placed))
            key = (event["core"], event["site"])
            slot = slots.get(key, 0)
            slots[key] = slot + 1
            found.append(Buffer(*placed, event["site"], slot, event["step"]))
        return tuple(found)

    @cached_property
    def tile_of(self) -> NDArray[np.int64]:
        """The tile that each instruction belongs to, from 0 on its core.

        A tile ends with its copies out: the next copy into a local memory begins another.
        """
        tiles = np.zeros(self.step_count, np.int64)
        names = self.op_names
        copies = {n for n, name in enumerate(names) if name.startswith("DataCopy")}
        outs = copies | {names.index("Fixpipe")}
        space, _, end = self.hulls
        is_copy = np.isin(self.op_of, list(copies))
        is_out = np.isin(self.op_of, list(outs)) & (end > 0) & (space == 0)
        is_in = is_copy & (end > 0) & (space != 0)
        for steps in self.steps_of:
            tile, has_left = 0, False
            marked = steps[is_out[steps] | is_in[steps]]
            starts = [0]
            for step in marked:
                if is_out[step]:
                    has_left = True
                elif has_left:
                    tile, has_left = tile + 1, False
                    starts.append(int(np.searchsorted(steps, step)))
            numbers = np.zeros(len(steps), np.int64)
            for start in starts[1:]:
                numbers[start:] += 1
            tiles[steps] = numbers
        return tiles

    def instruction(self, step: int) -> Instruction:
        """Return an instruction.

        Raises:
            IndexError: there is none of that number.
        """
        fields: Mapping[str, Any] = self._native.instruction(step)
        file, line = self.sites[self.site_of[step]]
        family = fields["family"]
        is_scalar = fields["op"] in ("GetValue", "SetValue")
        has_operands = family != "Control" or is_scalar
        has_dst = has_operands and fields["op"] != "GetValue"
        bits = fields["scalar_bits"]
        return Instruction(
            step=step,
            core=int(self.core_of[step]),
            number=int(self.number_of[step]),
            op=fields["op"],
            family=family,
            pipe=fields["pipe"],
            peer_pipe=fields["peer_pipe"],
            event_id=fields["event_id"],
            mode=fields["mode"],
            count=fields["count"],
            repeat=fields["repeat"],
            file=file,
            line=line,
            is_complete=fields["is_complete"],
            dst=_operand(fields["dst"]) if has_dst else None,
            sources=tuple(map(_operand, fields["sources"])) if has_operands else (),
            scalar=None if bits is None else _scalar(bits, dtype_of_code(fields["scalar_dtype"])),
            pieces=tuple(map(_piece, fields["footprint"])),
        )

    def read(
        self, step: int, space: str, address: int, size_bytes: int, *, core: int = 0
    ) -> bytes | None:
        """Return bytes; None where they are no part of the launch."""
        found: bytes | None = self._native.read(step, core, space, address, size_bytes)
        return found

    def find_nan(
        self,
        start: int,
        stop: int,
        space: str,
        begin: int,
        end: int,
        *,
        core: int = -1,
        also_infinite: bool = False,
    ) -> int | None:
        """Return the first instruction in [start, stop) that writes a NaN into bytes."""
        step: int = self._native.find_nan(start, stop, core, space, begin, end, also_infinite)
        return step if step < min(stop, self.step_count) else None

    def flags(self, step: int, core: int) -> list[tuple[str, str, int, int]]:
        """Return (first pipe, second pipe, id, count) of a core's signals that wait."""
        found: list[tuple[str, str, int, int]] = self._native.flags(step, core)
        return found

    def slice(
        self, step: int, space: str, address: int, size_bytes: int, *, core: int = 0, most: int
    ) -> tuple[list[dict[str, Any]], list[tuple[int, Piece]], bool]:
        """Return what led to bytes: the instructions, latest first, bytes that none wrote, and
        whether there were more than `most`."""
        found = self._native.slice(step, core, space, address, size_bytes, most)
        nodes = [
            {
                "step": node["step"],
                "wanted": tuple(map(_piece, node["wanted"])),
                "sources": tuple(map(_piece, node["sources"])),
                "scalar_step": node["scalar_step"],
            }
            for node in found["nodes"]
        ]
        origins = [(piece["core"], _piece(piece)) for piece in found["origins"]]
        return nodes, origins, found["is_cut"]

    def differing_checkpoints(self) -> int:
        """Return how many checkpoints playing back misses: 0 without writes by raw pointers."""
        count: int = self._native.count_differing_checkpoints()
        return count

    def range_at(self, address: int) -> Range | None:
        """Return the range of global memory that holds an address."""
        return next((r for r in self.ranges if r.begin <= address < r.end), None)

    def save(self, path: Path) -> None:
        """Write the recording to a file."""
        self._native.save(str(path))


def load_recording(path: Path) -> Recording:
    """Return the recording that a program has left.

    Raises:
        UsageError: the file is none, or another version's.
    """
    runtime.load_emulator()
    import opkit.emulator._emulator as emulator

    try:
        return Recording(emulator.load_recording(str(path)))
    except RuntimeError as error:
        raise UsageError(f"{path}: {error}", help="record the launch again") from error


class Recorder:
    """What a `with recording()` block has recorded, once it has ended."""

    def __init__(self) -> None:
        self.launches: tuple[Recording, ...] = ()


@contextmanager
def recording(
    *,
    launch: int = 0,
    kernel: str = "",
    limit_bytes: int = LIMIT_BYTES,
    spill_folder: Path | None = None,
) -> Iterator[Recorder]:
    """Record the launches of a block, one host thread, local memories beginning as NaN patterns.

    Args:
        launch: the one of this number only, from 1; 0 is every one.
        kernel: launches of this kernel only.
        limit_bytes: what a recording may take; it ends there, the launch goes on.
        spill_folder: where what exceeds 1 GiB lies; in memory without one.
    """
    before = runtime.configuration()
    import opkit.emulator._emulator as emulator

    runtime.configure(threads=1, poison=True)
    recorder = Recorder()
    emulator.begin_recording(
        limit_bytes=limit_bytes,
        spill_folder="" if spill_folder is None else str(spill_folder),
        launch=launch,
        kernel=kernel,
        is_poisoned=True,
    )
    try:
        yield recorder
    finally:
        recorder.launches = tuple(Recording(native) for native in emulator.end_recording())
        runtime.configure(threads=before.threads, poison=before.poison)


def _fault(fields: Mapping[str, Any] | None) -> Fault | None:
    if fields is None:
        return None
    return Fault(
        category=fields["category"],
        message=fields["message"],
        help=fields["help"],
        file=Path(fields["file"]) if fields["file"] else None,
        line=fields["line"],
        block=fields["block"],
        sub_core=fields["sub_core"],
        instruction=fields["instruction"],
    )


def _operand(fields: Mapping[str, Any]) -> Operand:
    return Operand(
        fields["space"],
        fields["address"],
        fields["begin"],
        fields["end"],
        dtype_of_code(fields["dtype"]),
    )


def _piece(fields: Mapping[str, Any]) -> Piece:
    return Piece(
        fields["operand"],
        fields["space"],
        fields["begin"],
        fields["bytes"],
        dtype_of_code(fields["dtype"]),
        fields["is_write"],
    )


def _scalar(bits: int, dtype: DType) -> float | int:
    raw = int(bits).to_bytes(8, "little")[: dtype.size_bytes]
    if dtype.name == "bfloat16":
        return float(bfloat16_to_float32(np.frombuffer(raw, np.uint16))[0])
    value: float | int = np.frombuffer(raw, dtype.numpy)[0].item()
    return value
