"""A place in a recorded launch, and the ways to move it: forwards and backwards alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opkit.debugging.expressions import Expression, Message
from opkit.debugging.recording import Recording, spaces
from opkit.debugging.source_names import source_file
from opkit.debugging.tensors import Names, Tensor, values_of
from opkit.errors import UsageError
from opkit.sanitizer import Finding
from opkit.schema import nearest

__all__ = ["Breakpoint", "Session", "Stop", "Unit"]

_MOST_MESSAGES = 1000


class Unit(Enum):
    """How far a step goes."""

    INSTRUCTION = "instruction"
    LINE = "line"
    TILE = "tile"


@dataclass
class Breakpoint:
    """Where to stop."""

    number: int
    text: str
    """As the user gave it."""
    steps: NDArray[np.int64] | None
    """The instructions that it may stop before; None: it stops behind those in `after`."""
    after: NDArray[np.int64] | None = None
    """Instructions whose results it looks at: it stops behind them."""
    condition: Expression | None = None
    looks: Callable[[int], bool] | None = None
    """Asked of each candidate, in place of a condition."""
    counts: Callable[[int], bool] | None = None
    """Asked of each hit's number, which is counted from the launch's beginning."""
    message: Message | None = None
    """What is written whenever the launch passes; such a breakpoint does not stop."""
    hits: int = 0
    enabled: bool = True

    def places(self) -> NDArray[np.int64]:
        """Return the positions where it may stop, in order."""
        if self.after is not None:
            return self.after + 1
        assert self.steps is not None
        return self.steps


@dataclass(frozen=True)
class Stop:
    """Why the session stands where it stands."""

    reason: str
    """`start`, `step`, `breakpoint`, `end`, `fault` or `goto`."""
    text: str
    breakpoint: int | None = None
    log: tuple[str, ...] = ()
    """What the messages of `log` were on the way here, in the order of the way."""


@dataclass
class Session:
    """One launch under the debugger."""

    recording: Recording
    names: Names = field(init=False)
    goldens: dict[str, NDArray[Any]] = field(default_factory=dict)
    """What outputs should be, by name, flat."""
    wrong: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    """Which of their elements miss the standard, by name, flat."""
    worst: dict[str, int] = field(default_factory=dict)
    """The element furthest off of each output that misses the standard, by name, flat."""
    findings: tuple[Finding, ...] = ()
    """What `opkit check` says of the launch."""
    position: int = 0
    """The instruction that comes next."""
    core: int = 0
    """The one that is looked at."""
    breakpoints: list[Breakpoint] = field(default_factory=list)
    stop: Stop = Stop("start", "at the beginning of the launch")
    _next_number: int = 1

    def __post_init__(self) -> None:
        """Begin in front of the first instruction."""
        self.names = Names(self.recording)
        if self.recording.step_count:
            self.core = int(self.recording.core_of[0])

    # Where it stands.

    @property
    def step(self) -> int | None:
        """The core's next instruction; None behind its last."""
        steps = self.recording.steps_of[self.core]
        at = int(np.searchsorted(steps, self.position))
        return int(steps[at]) if at < len(steps) else None

    @property
    def place(self) -> tuple[Path, int] | None:
        """File and line of the next instruction; of the last one behind the end."""
        steps = self.recording.steps_of[self.core]
        step = self.step if self.step is not None else int(steps[-1]) if len(steps) else None
        return None if step is None else self.recording.sites[self.recording.site_of[step]]

    def tensor(self, name: str) -> Tensor:
        """Return what a name means here."""
        return self.names.find(name, self.position, self.core)

    def values(self, name: str) -> NDArray[np.float64]:
        """Return a tensor's elements as they are now, in its shape where that is known.

        Raises:
            UsageError: nothing has this name, or the bytes are no part of the recording.
        """
        return self._values_at(self.position, self.core)(name)

    # Moving.

    def goto(self, position: int, *, core: int | None = None, reason: str = "goto") -> Stop:
        """Stand before an instruction, by its number in the launch.

        Raises:
            UsageError: there is none.
        """
        count = self.recording.step_count
        if not 0 <= position <= count:
            raise UsageError(
                f"there is no instruction {position}", help=f"the launch has 0 to {count}"
            )
        self.position = position
        if core is not None:
            self.core = core
        elif position < count:
            self.core = int(self.recording.core_of[position])
        return self._stopped(reason, f"before instruction {position} of {count}")

    def choose_core(self, core: int) -> None:
        """Look at another core; time does not move.

        Raises:
            UsageError: the launch has no such core.
        """
        count = len(self.recording.cores)
        if not 0 <= core < count:
            raise UsageError(f"there is no core {core}", help=f"the launch has 0 to {count - 1}")
        self.core = core

    def move(self, unit: Unit, count: int = 1) -> Stop:
        """Step on its core, backwards where `count` is negative."""
        begin = self.position
        steps = self.recording.steps_of[self.core]
        at = int(np.searchsorted(steps, self.position))
        for _ in range(abs(count)):
            at = self._next(steps, at, unit) if count > 0 else self._previous(steps, at, unit)
        return self._logged(begin, self._at(steps, at, unit))

    def _at(self, steps: NDArray[np.int64], at: int, unit: Unit) -> Stop:
        if at < len(steps):
            self.position = int(steps[at])
            return self._stopped("step", f"a step by {unit.value}")
        if len(steps):
            self.position = int(steps[-1]) + 1
        return self._ended()

    def _next(self, steps: NDArray[np.int64], at: int, unit: Unit) -> int:
        if at >= len(steps) or unit is Unit.INSTRUCTION:
            return min(at + 1, len(steps))
        marks = self._marks(unit)[steps]
        different = np.flatnonzero(marks[at:] != marks[at])
        return at + int(different[0]) if len(different) else len(steps)

    def _previous(self, steps: NDArray[np.int64], at: int, unit: Unit) -> int:
        if unit is Unit.INSTRUCTION or at == 0:
            return max(at - 1, 0)
        marks = self._marks(unit)[steps]
        before = at - 1
        # To where the line or tile before this place begins.
        different = np.flatnonzero(marks[:before] != marks[before])
        return int(different[-1]) + 1 if len(different) else 0

    def _marks(self, unit: Unit) -> NDArray[np.int64]:
        return self.recording.line_of if unit is Unit.LINE else self.recording.tile_of

    def run(self, *, backwards: bool = False) -> Stop:
        """Go to the next breakpoint, or to the end (the beginning) of the launch."""
        return self._logged(self.position, self._run(backwards))

    def _run(self, backwards: bool) -> Stop:
        best: tuple[int, Breakpoint] | None = None
        for breakpoint in self.breakpoints:
            if not breakpoint.enabled or breakpoint.message is not None:
                continue
            limit = None if best is None else best[0]
            found = self._find(breakpoint, backwards, limit)
            if found is not None:
                best = (found, breakpoint)
        if best is None:
            if backwards:
                self.position = 0
                self.core = int(self.recording.core_of[0]) if self.recording.step_count else 0
                return self._stopped("start", "at the beginning of the launch")
            self.position = self.recording.step_count
            return self._ended(whole=True)
        position, breakpoint = best
        breakpoint.hits += 1
        self.position = position
        # Behind a result it is the core that has made it that is looked at.
        at = position - 1 if breakpoint.after is not None else position
        if at < self.recording.step_count:
            self.core = int(self.recording.core_of[at])
        text = f"breakpoint {breakpoint.number}: {breakpoint.text}"
        return self._stopped("breakpoint", text, breakpoint.number)

    def _find(self, breakpoint: Breakpoint, backwards: bool, limit: int | None) -> int | None:
        for place in self._ahead(breakpoint, self.position, backwards):
            if limit is not None and (place <= limit if backwards else place >= limit):
                return None
            if self._holds(breakpoint, int(place)):
                return int(place)
        return None

    def _ahead(self, breakpoint: Breakpoint, begin: int, backwards: bool) -> NDArray[np.int64]:
        """Return a breakpoint's places in a direction, nearest first; hits are counted already."""
        places = breakpoint.places()
        if breakpoint.counts is not None:
            held = [place for place in places if self._holds(breakpoint, int(place))]
            counted = [place for hit, place in enumerate(held, 1) if breakpoint.counts(hit)]
            places = np.asarray(counted, np.int64)
        if backwards:
            return places[: np.searchsorted(places, begin)][::-1]
        return places[np.searchsorted(places, begin, side="right") :]

    def _logged(self, begin: int, stop: Stop) -> Stop:
        """Return where a way ended, with what the messages on it are."""
        backwards = self.position < begin
        passed: list[tuple[int, Breakpoint, Message]] = []
        for breakpoint in self.breakpoints:
            if breakpoint.message is None or not breakpoint.enabled:
                continue
            for place in map(int, self._ahead(breakpoint, begin, backwards)):
                if place < self.position if backwards else place > self.position:
                    break
                if self._holds(breakpoint, place):
                    breakpoint.hits += 1
                    passed.append((place, breakpoint, breakpoint.message))
        passed.sort(key=lambda row: row[0], reverse=backwards)
        lines = [
            message.filled(self._values_at(place, self._core_at(breakpoint, place)))
            for place, breakpoint, message in passed[:_MOST_MESSAGES]
        ]
        left_out = len(passed) - len(lines)
        more = (f"{left_out} more messages are left out",) if left_out else ()
        self.stop = replace(stop, log=(*lines, *more))
        return self.stop

    def _holds(self, breakpoint: Breakpoint, place: int) -> bool:
        if breakpoint.looks is not None:
            return breakpoint.looks(place)
        if breakpoint.condition is None:
            return True
        try:
            values = self._values_at(place, self._core_at(breakpoint, place))
            return breakpoint.condition.holds(values)
        except UsageError:
            # Its tensors are not there yet, or not on this core.
            return False

    def _core_at(self, breakpoint: Breakpoint, place: int) -> int:
        at = place - 1 if breakpoint.after is not None else place
        return int(self.recording.core_of[at]) if at < self.recording.step_count else self.core

    def _values_at(self, place: int, core: int) -> Callable[[str], NDArray[np.float64]]:
        """Return what gives a name's elements before an instruction, as a core names them."""

        def values(name: str) -> NDArray[np.float64]:
            tensor = self.names.find(name, place, core)
            found = values_of(self.recording, tensor, place)
            if found is None:
                raise UsageError(
                    f"{name}: {tensor.count} elements of {tensor.space} at {tensor.address:#x} are"
                    " no part of the recording"
                )
            return found.reshape(tensor.shape) if tensor.shape else found

        return values

    def _stopped(self, reason: str, text: str, breakpoint: int | None = None) -> Stop:
        self.stop = Stop(reason, text, breakpoint)
        return self.stop

    def _ended(self, *, whole: bool = False) -> Stop:
        fault = self.recording.fault
        if fault is not None and (whole or self._faulted_here()):
            self._stand_at_fault()
            return self._stopped("fault", f"{fault.message} [{fault.category}]")
        if self.recording.is_cut:
            return self._stopped("end", "the recording ends here: it has reached its limit")
        what = "the launch" if whole else f"core {self.core}"
        return self._stopped("end", f"at the end of {what}")

    def _faulted_here(self) -> bool:
        return (
            self.fault_step() is not None
            and self.recording.core_of[self.fault_step() or 0] == self.core
        )

    def fault_step(self) -> int | None:
        """Return the instruction that ended the launch; None where none did."""
        fault = self.recording.fault
        if fault is None:
            return None
        open_steps = np.flatnonzero(~self.recording.is_complete)
        for step in open_steps:
            file, line = self.recording.sites[self.recording.site_of[step]]
            _, block, _ = self.recording.cores[self.recording.core_of[step]]
            if fault.file == file and fault.line == line and fault.block == block:
                return int(step)
        return int(open_steps[0]) if len(open_steps) else None

    def _stand_at_fault(self) -> None:
        step = self.fault_step()
        if step is not None:
            self.position = step
            self.core = int(self.recording.core_of[step])

    # Breakpoints.

    def add_breakpoint(
        self,
        text: str,
        *,
        steps: NDArray[Any] | None = None,
        after: NDArray[Any] | None = None,
        condition: Expression | None = None,
        looks: Callable[[int], bool] | None = None,
        message: Message | None = None,
    ) -> Breakpoint:
        """Add a breakpoint and return it; one with a message does not stop."""
        breakpoint = Breakpoint(
            self._next_number,
            text,
            None if steps is None else np.asarray(steps, np.int64),
            None if after is None else np.asarray(after, np.int64),
            condition,
            looks,
            message=message,
        )
        self._next_number += 1
        self.breakpoints.append(breakpoint)
        return breakpoint

    def delete_breakpoint(self, number: int) -> None:
        """Take a breakpoint away.

        Raises:
            UsageError: there is none of that number.
        """
        kept = [one for one in self.breakpoints if one.number != number]
        if len(kept) == len(self.breakpoints):
            raise UsageError(f"there is no breakpoint {number}", help='"breakpoints" lists them')
        self.breakpoints = kept

    def steps_at_line(self, file: str, line: int) -> tuple[NDArray[np.int64], int]:
        """Return the instructions at a source line, or at the next line that has any, and which.

        Only the first instruction of a visit counts.

        Raises:
            UsageError: the launch has no such file, or no instruction at or behind the line.
        """
        recording = self.recording
        sites = [(i, p, n) for i, (p, n) in enumerate(recording.sites) if _is_file(p, file)]
        if not sites:
            files = sorted({path.name for path, _ in recording.sites})
            near = nearest(Path(file).name, files)
            raise UsageError(
                f"no instruction of {recording.kernel} comes from {file}",
                help=f'did you mean "{near}"?' if near else "files: " + ", ".join(files),
            )
        # Some sites are of calls that are no instruction, such as those of queues.
        used = set(np.unique(recording.site_of).tolist())
        lines = sorted({n for i, _, n in sites if i in used})
        found = next((n for n in lines if n >= line), None)
        if found is None:
            raise UsageError(
                f"{file}:{line}: no instruction comes from there or behind it",
                help=f"the last line with one is {lines[-1]}" if lines else None,
            )
        wanted = [i for i, _, n in sites if n == found]
        return self._first_of_visits(np.flatnonzero(np.isin(recording.site_of, wanted))), found

    def _first_of_visits(self, steps: NDArray[np.int64]) -> NDArray[np.int64]:
        """Leave out instructions whose core has just executed one of the same."""
        recording = self.recording
        ranks = np.zeros(recording.step_count, np.int64)
        for of_core in recording.steps_of:
            ranks[of_core] = np.arange(len(of_core))
        kept = []
        last: dict[int, int] = {}
        for step in steps:
            core = int(recording.core_of[step])
            if last.get(core) != ranks[step] - 1:
                kept.append(int(step))
            last[core] = int(ranks[step])
        return np.array(kept, np.int64)

    def steps_of_instruction(self, op: str) -> NDArray[np.int64]:
        """Return the instructions of a name.

        Raises:
            UsageError: the launch has none, or the name is no instruction's.
        """
        recording = self.recording
        names = {name.lower(): number for number, name in enumerate(recording.op_names)}
        number = names.get(op.lower())
        if number is None:
            near = nearest(op, list(recording.op_names))
            raise UsageError(
                f'there is no instruction "{op}"',
                help=f'did you mean "{near}"?' if near else '"opkit isa" lists them',
            )
        steps = np.flatnonzero(recording.op_of == number)
        if not len(steps):
            used = sorted({recording.op_names[n] for n in np.unique(recording.op_of)})
            raise UsageError(
                f"{recording.kernel} issues no {op}", help="it issues " + ", ".join(used)
            )
        return steps

    def writers(self, tensor: Tensor) -> NDArray[np.int64]:
        """Return the instructions that write some of a tensor."""
        space, begin, end = self.recording.hulls
        found = (space == spaces().index(tensor.space)) & (end > tensor.address)
        found &= begin < tensor.end
        if tensor.space != "GM":
            found &= self.recording.core_of == tensor.core
        return np.flatnonzero(found)

    def steps_of_findings(self, wanted: str = "") -> NDArray[np.int64]:
        """Return the instructions that findings of `opkit check` point at.

        Raises:
            UsageError: there are none.
        """
        steps = [
            step
            for finding in self.findings
            if finding.id.startswith(wanted.upper())
            for step in self.finding_steps(finding)
        ]
        if not steps:
            what = f"no {wanted.upper()}" if wanted else "nothing"
            raise UsageError(
                f"opkit check finds {what} in this launch", help='"findings" tells what there is'
            )
        return np.unique(np.array(steps, np.int64))

    def finding_steps(self, finding: Finding) -> list[int]:
        """Return the instructions of a finding: its own on its core, or those of its line."""
        recording = self.recording
        if finding.location is None:
            return []
        file, line = finding.location.file, finding.location.line
        sites = [i for i, (p, n) in enumerate(recording.sites) if n == line and p == file]
        steps = np.flatnonzero(np.isin(recording.site_of, sites))
        blocks = np.array([core[1] for core in recording.cores] or [0])
        mine = steps[blocks[recording.core_of[steps]] == finding.block] if len(steps) else steps
        exact = mine[recording.number_of[mine] == finding.instruction] if len(mine) else mine
        chosen = exact if len(exact) else mine[:1] if len(mine) else steps[:1]
        return [int(step) for step in chosen]

    def lines_around(self, count: int = 5) -> Iterator[tuple[int, str]]:
        """Yield the source around the place, with line numbers."""
        place = self.place
        if place is None:
            return
        lines: Sequence[str] = source_file(place[0]).lines
        first = max(1, place[1] - count)
        for number in range(first, min(len(lines), place[1] + count) + 1):
            yield number, lines[number - 1]


def _is_file(path: Path, wanted: str) -> bool:
    parts = Path(wanted).parts
    return path.parts[-len(parts) :] == parts or path == Path(wanted)
