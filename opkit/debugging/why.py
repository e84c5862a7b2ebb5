"""Why a value is what it is: what it was made of, and the first step on the way that is off.

What is off is judged by evidence that needs no knowledge of the operator: a fault; memory that
nothing wrote, or that an earlier tile left; copies that leave gaps in a tensor or cover some of it
twice; what `opkit check` finds. Only then is the arithmetic compared, with itself in double
precision.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opkit.chips import DATA_BLOCK_BYTES
from opkit.debugging.provenance import Trail, definition_line, length_line, origins
from opkit.debugging.queues import missing_call, slots_at
from opkit.debugging.recording import Instruction, Operand, Piece, Range, Recording, spaces
from opkit.debugging.session import Session
from opkit.debugging.source_names import source_file
from opkit.debugging.tensors import Tensor, values_of
from opkit.errors import UsageError
from opkit.sanitizer import Finding
from opkit.testing import widen

__all__ = ["Answer", "Link", "Reason", "explain", "explain_launch"]

_MOST_NODES = 4000
_MOST_COPIES = 20_000


@dataclass(frozen=True)
class Link:
    """One instruction on the way to a value."""

    step: int
    core: int
    op: str
    file: Path
    line: int
    result: str
    """What it wrote of what was asked for, by name."""
    value: float | int | None
    """The first element of that."""
    operands: tuple[tuple[str, float | int | None], ...]
    """Name and first element of each source."""
    scalar: float | int | None


@dataclass(frozen=True)
class Reason:
    """Something that is off."""

    kind: str
    """`fault`, `unwritten`, `stale`, `place`, `finding` or `precision`."""
    file: Path | None
    line: int
    step: int | None
    text: str
    other_line: int = 0
    """A second line that it names; 0: none."""


@dataclass(frozen=True)
class Answer:
    """Why a value is what it is."""

    asked: str
    value: float | int | None
    golden: float | None
    chain: tuple[Link, ...]
    """In program order."""
    origins: tuple[str, ...]
    """What it was made of that no instruction wrote: inputs, or memory that holds nothing."""
    is_cut: bool
    """Whether the chain is longer than what is told."""
    reasons: tuple[Reason, ...]
    """What is off, the most likely first."""

    @property
    def first(self) -> Reason | None:
        """The first thing that is off."""
        return self.reasons[0] if self.reasons else None


def explain(
    session: Session,
    tensor: Tensor,
    index: int,
    *,
    precision: Callable[[], Reason | None] | None = None,
) -> Answer:
    """Return why an element is what it is at the session's place.

    Args:
        index: flat.
        precision: asked last: the first step whose rounding is too coarse.
    Raises:
        UsageError: the tensor has no such element.
    """
    if not 0 <= index < tensor.count:
        raise UsageError(f"{tensor.name} has {tensor.count} elements, there is no [{index}]")
    recording = session.recording
    position = session.position
    address = tensor.address + index * tensor.dtype.size_bytes
    core = max(tensor.core, 0)
    nodes, origins, is_cut = recording.slice(
        position, tensor.space, address, tensor.dtype.size_bytes, core=core, most=_MOST_NODES
    )
    nodes.reverse()
    instructions = [recording.instruction(node["step"]) for node in nodes]
    element = tensor.part(index, index + 1)
    found = values_of(recording, element, position)
    golden = session.goldens.get(tensor.name)
    links = tuple(
        _link(session, node, instruction)
        for node, instruction in zip(nodes, instructions, strict=True)
    )
    reasons = list(
        _reasons(session, tensor, index, nodes, instructions, [piece for _, piece in origins])
    )
    if not reasons and precision is not None and not _is_right(session, tensor, index):
        reason = precision()
        reasons += [] if reason is None else [reason]
    if not reasons:
        reasons += [_finding_reason(session, finding) for finding in session.findings]
    names = session.names
    texts = [
        names.place_text(max(owner, 0), piece.space, piece.begin, piece.size_bytes, position)
        + ("" if piece.space == "GM" else ", which nothing has written")
        for owner, piece in origins
    ]
    return Answer(
        asked=_element_name(tensor, index),
        value=None if found is None else found[0].item(),
        golden=None if golden is None else float(golden.reshape(-1)[index]),
        chain=links,
        origins=tuple(texts[:16]),
        is_cut=is_cut,
        reasons=tuple(reasons),
    )


def explain_launch(session: Session) -> Answer | None:
    """Return why a launch ended early, or what is wrong with it though its results are not.

    None where it ran to its end and nothing was found.
    """
    reasons = list(_fault_reasons(session))
    reasons += [_finding_reason(session, finding) for finding in session.findings]
    if not reasons:
        return None
    return Answer("the launch", None, None, (), (), False, tuple(reasons))


def _is_right(session: Session, tensor: Tensor, index: int) -> bool:
    wrong = session.wrong.get(tensor.name)
    return wrong is not None and not bool(wrong.reshape(-1)[index])


def _element_name(tensor: Tensor, index: int) -> str:
    if len(tensor.shape) > 1:
        numbers = (str(int(number)) for number in np.unravel_index(index, tensor.shape))
        return f"{tensor.name}[{', '.join(numbers)}]"
    return f"{tensor.name}[{index}]"


def _link(session: Session, node: dict[str, Any], instruction: Instruction) -> Link:
    recording, names = session.recording, session.names
    step, core = instruction.step, instruction.core

    def told(piece: Piece, at: int) -> tuple[str, float | int | None]:
        name = names.place_text(core, piece.space, piece.begin, piece.size_bytes, at)
        raw = recording.read(at, piece.space, piece.begin, piece.dtype.size_bytes, core=core)
        if raw is None or len(raw) != piece.dtype.size_bytes:
            return name, None
        return name, widen(np.frombuffer(raw, piece.dtype.numpy), piece.dtype)[0].item()

    texts = names.operand_texts(step)

    def named(piece: Piece, at: int) -> tuple[str, float | int | None]:
        name, value = told(piece, at)
        written = texts[piece.operand] if piece.operand < len(texts) else ""
        return (f"{written} ({name})" if written else name), value

    # The sources first: reading forwards in time costs nothing.
    operands = tuple(named(piece, step) for piece in node["sources"][:4])
    wanted: Sequence[Piece] = node["wanted"]
    result, value = named(wanted[0], step + 1) if wanted else ("", None)
    return Link(
        step,
        core,
        instruction.op,
        instruction.file,
        instruction.line,
        result,
        value,
        operands,
        instruction.scalar,
    )


def _reasons(
    session: Session,
    tensor: Tensor,
    index: int,
    nodes: Sequence[dict[str, Any]],
    instructions: Sequence[Instruction],
    origins: Sequence[Piece],
) -> list[Reason]:
    """Return what is off on the way to an element, the most likely first."""
    if _is_right(session, tensor, index) and session.recording.fault is None:
        return []
    reasons: list[Reason] = []
    is_output = tensor.space == "GM" and not nodes
    if is_output:
        reasons += _fault_reasons(session)
        reasons += _unwritten(session, tensor, index)
    reasons += _holes(session, nodes, instructions)
    reasons += _misplaced(session, tensor, instructions, origins)
    reasons += _found_on_the_way(session, instructions)
    reasons += [] if is_output else _fault_reasons(session)
    unique = {(r.kind, r.file, r.line): r for r in reversed(reasons)}
    return list(reversed(unique.values()))


def _fault_reasons(session: Session) -> list[Reason]:
    fault = session.recording.fault
    if fault is None:
        return []
    text = f"{fault.message} [{fault.category}]"
    missing = missing_call(session)
    if missing is not None:
        file, line, why = missing
        return [
            Reason("fault", file, line, session.fault_step(), f"{why}; then: {text}", fault.line)
        ]
    traced = _traced_fault(session)
    if traced is not None:
        line, why = traced
        whole = f"{why}; then: {text}"
        return [Reason("fault", fault.file, line, session.fault_step(), whole, fault.line)]
    return [Reason("fault", fault.file, fault.line, session.fault_step(), text)]


def _traced_fault(session: Session) -> tuple[int, str] | None:
    """Return the line that the fault's operand got its address or length from, and how."""
    fault, step = session.recording.fault, session.fault_step()
    if fault is None or fault.file is None:
        return None
    if fault.category == "Assertion":
        statement = source_file(fault.file).statement(fault.line)
        asserted = re.split(r"assert\w*", statement, maxsplit=1, flags=re.IGNORECASE)[-1]
        line = definition_line(fault.file, fault.line, asserted)
        return (line, "what the assertion looks at is given its value here") if line else None
    if step is None or fault.category not in ("OutOfBounds", "Misaligned"):
        return None
    instruction = session.recording.instruction(step)
    if instruction.line != fault.line:
        return None
    operands = {
        number: operand
        for number, operand in enumerate((instruction.dst, *instruction.sources))
        if operand is not None
    }
    if fault.category == "OutOfBounds":
        outside = [
            piece.operand
            for piece in instruction.pieces
            if piece.operand in operands
            and _leaves(session.recording, operands[piece.operand], piece)
        ]
        number = min(outside, default=None)
    else:
        # Of several the one that misses by most: what an instruction asks for differs.
        off = {n: each.address & -each.address for n, each in operands.items() if each.address % 32}
        local = {n: size for n, size in off.items() if operands[n].space != "GM"}
        number = min(local or off, key=off.__getitem__, default=None)
    if number is None:
        return None
    origin = _global_origin if operands[number].space == "GM" else _local_origin
    return origin(session, instruction, number, operands[number])


def _leaves(recording: Recording, operand: Operand, piece: Piece) -> bool:
    """Whether bytes of an operand lie outside its buffer, or in global memory in no tensor."""
    if operand.space != "GM":
        return piece.begin < operand.begin or piece.end > operand.end
    return not any(r.begin <= piece.begin and piece.end <= r.end for r in recording.ranges)


def _trail(session: Session, instruction: Instruction, operand: Operand) -> Trail:
    """Return what tells the calls apart that an instruction's function has."""
    recording = session.recording
    slots = slots_at(recording, instruction.step, instruction.core)
    operands = [o for o in (instruction.dst, *instruction.sources) if o is not None]
    buffers = [
        slot.name
        for slot in slots
        for one in operands
        if slot.name
        and slot.space == one.space
        and slot.address <= one.address < slot.address + slot.size_bytes
    ]
    lines = frozenset(line for file, line in recording.sites if file == instruction.file)
    is_moved = bool(operand.begin) and operand.address != operand.begin
    return Trail(buffers, lines, frozenset(recording.op_names), is_moved)


def _global_origin(
    session: Session, instruction: Instruction, number: int, operand: Operand
) -> tuple[int, str] | None:
    """Say where an address in global memory goes wrong: base, offset or length."""
    recording = session.recording
    texts = session.names.operand_texts(instruction.step)
    if number >= len(texts):
        return None
    path = origins(
        instruction.file, instruction.line, texts[number], _trail(session, instruction, operand)
    )
    known = _range_of_base(recording, operand)
    if known is None:
        return None
    bases, offsets = _least(session, known, instruction.site_key)
    buffer = next((origin for origin in path if origin.kind == "buffer"), None)
    if bases and buffer is not None:
        return buffer.line, f"the tensor begins {bases} bytes behind the start of {known.name}"
    offset = next((origin for origin in path if origin.has_offset), None)
    if offsets and offset is not None:
        return offset.line, f"no copy comes nearer than {offsets} bytes to the tensor's start"
    operands = 1 + len(instruction.sources)
    line = length_line(instruction.file, instruction.line, _called(instruction.op), operands)
    return (line, "the length is decided here") if line != instruction.line else None


def _called(op: str) -> str:
    return "DataCopy" if op.startswith("DataCopyN") else op


def _range_of_base(recording: Recording, operand: Operand) -> Range | None:
    """Return the range that a tensor of global memory begins in, or behind."""
    base = operand.begin or operand.address
    before = [known for known in recording.ranges if known.begin <= base]
    return max(before, key=lambda known: known.begin, default=None)


def _least(session: Session, known: Range, key: tuple[Path, int]) -> tuple[int, int]:
    """Return how far behind a range's start its tensors begin, in any instruction, and how far
    behind that those of one line lie: the least of all, in bytes."""
    recording = session.recording
    bases, offsets = [], []
    names = recording.op_names
    moves = [n for n, name in enumerate(names) if name.startswith(("DataCopy", "Fixpipe"))]
    steps = np.flatnonzero(np.isin(recording.op_of, moves))
    for step in steps[:_MOST_COPIES]:
        instruction = recording.instruction(int(step))
        for operand in (instruction.dst, *instruction.sources):
            if operand is None or operand.space != "GM":
                continue
            if _range_of_base(recording, operand) != known:
                continue
            base = operand.begin or operand.address
            bases.append(base - known.begin)
            if instruction.site_key == key:
                offsets.append(operand.address - base)
    return min(bases, default=0), min(offsets, default=0)


def _local_origin(
    session: Session, instruction: Instruction, number: int, operand: Operand
) -> tuple[int, str] | None:
    texts = session.names.operand_texts(instruction.step)
    if number >= len(texts):
        return None
    path = origins(
        instruction.file, instruction.line, texts[number], _trail(session, instruction, operand)
    )
    if operand.address != operand.begin:
        offset = next((origin for origin in reversed(path) if origin.has_offset), None)
        if offset is not None and offset.line != instruction.line:
            away = operand.address - operand.begin
            return offset.line, f"the operand begins {away} bytes into its buffer by this offset"
        return None
    if operand.address % DATA_BLOCK_BYTES == 0:
        line = length_line(
            instruction.file, instruction.line, instruction.op, 1 + len(instruction.sources)
        )
        return (line, "the length is decided here") if line != instruction.line else None
    placed = [origin for origin in path if origin.kind == "definition"]
    return (placed[-1].line, "the tensor is placed here") if placed else None


def _unwritten(session: Session, tensor: Tensor, index: int) -> list[Reason]:
    """Nothing wrote the element: the copy that came nearest."""
    recording = session.recording
    writers = session.writers(tensor)
    size = tensor.dtype.size_bytes
    address = tensor.address + index * size
    if not len(writers):
        text = f"nothing writes {tensor.name} in this launch"
        place = source_of_kernel(recording)
        return [Reason("unwritten", place, 0, None, text)]
    _, begin, end = recording.hulls
    below = writers[end[writers] <= address]
    above = writers[begin[writers] > address]
    # A copy that ends early ends right in front of what is missing; one that begins late, behind.
    nearest_below = below[np.argmax(end[below])] if len(below) else None
    nearest_above = above[np.argmin(begin[above])] if len(above) else None
    inside = writers[(begin[writers] <= address) & (end[writers] > address)]
    chosen = int(inside[0]) if len(inside) else None
    text = "goes around it"
    if chosen is None and nearest_below is not None:
        chosen = int(nearest_below)
        last = (int(end[chosen]) - tensor.address) // size
        text = f"ends at {tensor.name}[{last - 1}]"
    if nearest_above is not None and not len(inside):
        other = int(nearest_above)
        is_first_of_core = nearest_below is None or (
            recording.core_of[other] != recording.core_of[int(nearest_below)]
        )
        if nearest_below is None or (is_first_of_core and _begins_late(recording, other, tensor)):
            chosen = other
            first = (int(begin[other]) - tensor.address) // size
            text = f"begins at {tensor.name}[{first}]"
    assert chosen is not None
    instruction = recording.instruction(chosen)
    line = instruction.line
    whole = f"nothing writes {_element_name(tensor, index)}: the nearest copy {text}"
    if text.startswith("begins") and instruction.dst is not None:
        traced = _global_origin(session, instruction, 0, instruction.dst)
        line = traced[0] if traced is not None else line
        whole += f"; {traced[1]}" if traced is not None else ""
    else:
        operands = 1 + len(instruction.sources)
        line = length_line(instruction.file, line, _called(instruction.op), operands)
    return [Reason("unwritten", instruction.file, line, chosen, whole, instruction.line)]


def _begins_late(recording: Recording, step: int, tensor: Tensor) -> bool:
    """Whether copies of one site all lie one way off whole copies from the tensor's start."""
    _, begin, end = recording.hulls
    length = int(end[step] - begin[step])
    return length > 0 and (int(begin[step]) - tensor.address) % length != 0


def source_of_kernel(recording: Recording) -> Path | None:
    """Return the file that most of a launch's instructions come from."""
    if not recording.step_count:
        return None
    sites, counts = np.unique(recording.site_of, return_counts=True)
    most: int = sites[np.argmax(counts)]
    return recording.sites[most][0]


def _holes(
    session: Session, nodes: Sequence[dict[str, Any]], instructions: Sequence[Instruction]
) -> list[Reason]:
    """Operands of which a part was never written, or is what an earlier tile left."""
    found = []
    for node, instruction in zip(nodes, instructions, strict=True):
        used = {piece.operand for piece in node["sources"]}
        for piece in instruction.read:
            if piece.space == "GM" or piece.operand not in used:
                continue
            asked = [p for p in node["sources"] if p.operand == piece.operand]
            reason = _hole(session, instruction, piece, asked)
            if reason is not None:
                found.append(reason)
    return found


def _hole(
    session: Session, instruction: Instruction, piece: Piece, asked: Sequence[Piece]
) -> Reason | None:
    recording = session.recording
    space, begin, end = recording.hulls
    mine = recording.steps_of[instruction.core]
    mine = mine[: np.searchsorted(mine, instruction.step)]
    meets = (
        (space[mine] == spaces().index(piece.space))
        & (begin[mine] < piece.end)
        & (end[mine] > piece.begin)
    )
    writers = mine[meets][::-1]
    tile = recording.tile_of[instruction.step]
    element = piece.dtype.size_bytes
    owner = np.full(piece.size_bytes // element or 1, -1, np.int64)
    for step in writers[:256]:
        first = max(0, (int(begin[step]) - piece.begin) // element)
        last = (int(end[step]) - piece.begin + element - 1) // element
        part = owner[first:last]
        part[part < 0] = step
        if (owner >= 0).all():
            break
    fresh = (owner >= 0) & (recording.tile_of[np.maximum(owner, 0)] == tile)
    if fresh.all() or not fresh.any():
        whole = owner < 0
        if not whole.any():
            return None  # of one age: a constant, or what the last tile left on purpose
        if whole.all():
            fresh = ~whole
    hole = ~fresh if fresh.any() else owner < 0
    in_hole = any(
        hole[
            (p.begin - piece.begin) // element : (p.end - piece.begin + element - 1) // element
        ].any()
        for p in asked
    )
    if not in_hole and int(hole.sum()) * element <= DATA_BLOCK_BYTES:
        # No instruction has to care for what padding up to whole blocks leaves.
        return None
    never = bool((owner[hole] < 0).any())
    names = session.names
    first, last = int(np.flatnonzero(hole)[0]), int(np.flatnonzero(hole)[-1]) + 1
    place = names.place_text(
        instruction.core,
        piece.space,
        piece.begin + first * element,
        (last - first) * element,
        instruction.step,
    )
    what = "nothing has written" if never else "an earlier tile has left"
    kind = "unwritten" if never else "stale"
    text = f"{instruction.op} reads {(last - first)} elements at {place} that {what}"
    culprit = _short_or_shifted(recording, instruction, piece, owner, hole)
    is_elsewhere = False
    if culprit is None and (owner < 0).all():
        culprit = _writer_elsewhere(session, instruction, piece)
        is_elsewhere = culprit is not None
    chosen = recording.instruction(culprit) if culprit is not None else instruction
    line, other = chosen.line, instruction.line
    if culprit is not None:
        does = (
            "writes elsewhere in this tensor" if is_elsewhere else "fills the rest of the operand"
        )
        text += f"; {chosen.op} at line {chosen.line} {does}"
        operands = 1 + len(chosen.sources)
        decided = line
        if not is_elsewhere:
            decided = length_line(chosen.file, line, _called(chosen.op), operands)
        line, other = decided, chosen.line if decided != line else other
    else:
        operand = (chosen.dst, *chosen.sources)[min(piece.operand, len(chosen.sources))]
        traced = None
        if operand is not None:
            traced = _local_origin(session, chosen, piece.operand, operand)
        if traced is not None:
            line, other = traced[0], chosen.line
            text += f"; {traced[1]}"
    return Reason(kind, chosen.file, line, chosen.step, text, other)


def _writer_elsewhere(session: Session, instruction: Instruction, piece: Piece) -> int | None:
    """Return the last instruction that wrote the same tensor, by its name, at another place."""
    recording, names = session.recording, session.names
    texts = names.operand_texts(instruction.step)
    name = texts[piece.operand].partition("[")[0].strip() if piece.operand < len(texts) else ""
    operand = (instruction.dst, *instruction.sources)[min(piece.operand, len(instruction.sources))]
    if not name or operand is None:
        return None
    space, begin, end = recording.hulls
    mine = recording.steps_of[instruction.core]
    mine = mine[: np.searchsorted(mine, instruction.step)]
    inside = (space[mine] == spaces().index(piece.space)) & (begin[mine] >= operand.begin)
    for step in mine[inside & (end[mine] <= operand.end)][::-1][:256]:
        told = names.operand_texts(int(step))
        if told and told[0].partition("[")[0].strip() == name:
            return int(step)
    return None


def _short_or_shifted(
    recording: Recording,
    instruction: Instruction,
    piece: Piece,
    owner: NDArray[np.int64],
    hole: NDArray[np.bool_],
) -> int | None:
    """Return who has written too little; None where the reader itself begins elsewhere."""
    writers = owner[~hole]
    if not len(writers):
        return None
    _, begin, end = recording.hulls
    newest = int(writers.max())
    starts_behind = piece.begin > int(begin[newest])
    is_behind = bool(hole[-1]) and int(end[newest]) < piece.end
    # It reads from the middle of what was written to behind its end.
    if starts_behind and is_behind:
        return None
    return newest


def _misplaced(
    session: Session,
    tensor: Tensor,
    instructions: Sequence[Instruction],
    origins: Sequence[Piece],
) -> list[Reason]:
    """Copies that leave gaps in a tensor of the launch, or cover some of it twice."""
    recording = session.recording
    reasons = []
    outs = [i for i in instructions if i.dst is not None and i.dst.space == "GM"]
    if tensor.space == "GM" and outs:
        counts = _coverage(session, tensor.address, tensor.count, tensor.dtype.size_bytes, True)
        gap, twice = _first_run(counts == 0), _first_run(counts > 1)
        if gap is not None and recording.fault is None:
            last = outs[-1]
            text = f"copies to {tensor.name} leave {tensor.name}[{gap[0]}:{gap[1]}] out"
            if twice is not None:
                text += f" and write {tensor.name}[{twice[0]}:{twice[1]}] more than once"
            reasons.append(_place_reason(session, last, text))
    for piece in origins:
        known = recording.range_at(piece.begin) if piece.space == "GM" else None
        if known is None or not known.name.startswith("input "):
            continue
        reader = next((i for i in instructions if _reads(i, known)), None)
        if reader is None:
            continue
        size = next(s.dtype.size_bytes for s in reader.sources if s.space == "GM")
        # The range ends at a whole data block, the tensor with its last element.
        told = session.names.told_at(known.begin)
        count = (known.size_bytes if told is None else told.size_bytes) // size
        counts = _coverage(session, known.begin, count, size, False)
        gap = _first_run(counts == 0)
        if gap is not None and recording.fault is None:
            text = f"{known.short_name}[{gap[0]}:{gap[1]}] is never read"
            reasons.append(_place_reason(session, reader, text))
    return reasons


def _place_reason(session: Session, instruction: Instruction, text: str) -> Reason:
    """A copy at the wrong place, told where its address goes wrong."""
    for number, operand in enumerate((instruction.dst, *instruction.sources)):
        if operand is not None and operand.space == "GM":
            traced = _global_origin(session, instruction, number, operand)
            if traced is not None:
                line, why = traced
                whole = f"{text}; {why}"
                place = instruction.file
                return Reason("place", place, line, instruction.step, whole, instruction.line)
    return Reason("place", instruction.file, instruction.line, instruction.step, text)


def _reads(instruction: Instruction, known: Range) -> bool:
    return any(
        s.space == "GM" and known.begin <= s.address < known.end for s in instruction.sources
    )


def _coverage(
    session: Session, address: int, count: int, size: int, is_write: bool
) -> NDArray[np.int64]:
    """Return how often each element is written (or read) by the launch's instructions."""
    recording = session.recording
    counts = np.zeros(count + 1, np.int64)
    names = recording.op_names
    if is_write:
        space, begin, end = recording.hulls
        steps = np.flatnonzero((space == 0) & (end > address) & (begin < address + count * size))
    else:
        copies = [n for n, name in enumerate(names) if name.startswith(("DataCopy", "GetValue"))]
        steps = np.flatnonzero(np.isin(recording.op_of, copies))
    if len(steps) > _MOST_COPIES:
        return np.ones(count, np.int64)  # too many to tell
    for step in steps:
        for piece in recording.instruction(int(step)).pieces:
            if piece.space != "GM" or piece.is_write is not is_write:
                continue
            first = max(0, (piece.begin - address) // size)
            last = min(count, (piece.end - address + size - 1) // size)
            if first < last:
                counts[first] += 1
                counts[last] -= 1
    return np.cumsum(counts)[:count]


def _first_run(mask: NDArray[np.bool_]) -> tuple[int, int] | None:
    found = np.flatnonzero(mask)
    if not len(found):
        return None
    breaks = np.flatnonzero(np.diff(found) > 1)
    last = found[breaks[0]] if len(breaks) else found[-1]
    return int(found[0]), int(last) + 1


def _found_on_the_way(session: Session, instructions: Sequence[Instruction]) -> list[Reason]:
    """Findings of `opkit check` at lines that the value came by."""
    lines = {(instruction.file, instruction.line) for instruction in instructions}
    return [
        _finding_reason(session, finding)
        for finding in session.findings
        if any(
            place is not None and (place.file, place.line) in lines
            for place in (finding.location, finding.other)
        )
    ]


def _finding_reason(session: Session, finding: Finding) -> Reason:
    steps = session.finding_steps(finding)
    place = finding.location
    text = f"{finding.message} [{finding.id}]"
    if finding.help:
        text += f"; {finding.help}"
    return Reason(
        "finding",
        None if place is None else place.file,
        0 if place is None else place.line,
        steps[0] if steps else None,
        text,
        0 if finding.other is None else finding.other.line,
    )


def line_text(reason: Reason) -> str:
    """Return the source line that a reason names."""
    return "" if reason.file is None else source_file(reason.file).line(reason.line)
