"""The debugger's language: one command a line, in; a result as data and as text, out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opkit.debugging.answers import answer_data, answer_text
from opkit.debugging.expressions import Expression, Message, short
from opkit.debugging.queues import pipes_at, slots_at
from opkit.debugging.recording import Instruction
from opkit.debugging.session import Session, Stop, Unit
from opkit.debugging.source_names import source_file
from opkit.debugging.targets import Target
from opkit.debugging.tensors import Tensor, parse_place, values_of
from opkit.debugging.why import Answer, explain, explain_launch
from opkit.errors import UsageError
from opkit.schema import nearest

__all__ = ["COMMANDS", "Debugger", "Result"]

_UNITS = {unit.value: unit for unit in Unit}
# name, short forms, usage, what it does
COMMANDS: tuple[tuple[str, tuple[str, ...], str, str], ...] = (
    ("run", ("r", "continue", "c"), "run", "go on to the next breakpoint, or to the end"),
    ("back", ("rc", "reverse-continue"), "back", "go back to the breakpoint before"),
    ("step", ("s",), "step [instruction|line|tile] [N]", "go N on, by instruction"),
    ("stepback", ("bs",), "stepback [instruction|line|tile] [N]", "go N back"),
    ("next", ("n",), "next [N]", "go to the core's next source line"),
    ("prev", ("p",), "prev [N]", "go to the source line before"),
    ("tile", ("t",), "tile [N]", "go to the core's next tile; -N goes back"),
    ("start", (), "start", "go to the beginning of the launch"),
    ("end", (), "end", "go to the end of the launch"),
    ("goto", (), "goto N | goto core C [N]", "go to an instruction of the launch, of a core"),
    ("core", (), "core [N]", "look at another core; tell which there are"),
    (
        "break",
        ("b",),
        "break PLACE [core N] [tile N] [if EXPR]",
        "stop at FILE:LINE, LINE, INSTRUCTION, finding [CLASS] or fault",
    ),
    (
        "watch",
        ("w",),
        "watch TENSOR[i:j] [nan|inf|golden|if EXPR]",
        "stop behind whatever writes it, or makes it a NaN, an infinity, other than the golden",
    ),
    (
        "log",
        (),
        "log PLACE [core N] [tile N] [if EXPR] : TEXT",
        "write a text whenever the launch passes, as x begins with {x[0]}; it does not stop",
    ),
    ("delete", ("d",), "delete N", "take a breakpoint away"),
    ("breakpoints", ("info",), "breakpoints", "list the breakpoints"),
    ("print", ("x",), "print EXPR", "tell a tensor or an expression: y, y[3:8], max(abs(y))"),
    ("tensors", (), "tensors", "list the names that print takes here"),
    ("where", (), "where", "tell the place, with the instruction that comes next"),
    ("list", ("l",), "list", "show the source around the place"),
    ("instruction", ("i",), "instruction", "tell the next instruction's operands"),
    ("queues", (), "queues", "tell the core's buffers and what state they are in"),
    ("flags", (), "flags", "tell the core's signals that nobody has waited for"),
    ("pipes", (), "pipes", "tell what each pipe of the core has done"),
    ("findings", (), "findings", "tell what opkit check finds in this launch"),
    ("why", (), "why [TENSOR[INDEX]]", "tell how a value came about, and what is off first"),
    ("help", ("h",), "help", "list the commands"),
    ("quit", ("q", "exit"), "quit", "leave"),
)
_NAMES = {short: name for name, shorts, _, _ in COMMANDS for short in (name, *shorts)}


@dataclass(frozen=True)
class Result:
    """What a command came to."""

    command: str
    data: Mapping[str, Any]
    text: str
    quits: bool = False


class Debugger:
    """Takes commands for one target."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.session: Session = target.session

    def run(self, line: str) -> Result:
        """Do what a line says; an empty one does nothing.

        Raises:
            UsageError: there is no such command, or it cannot be done.
        """
        words = line.split("#", 1)[0].split() if line.lstrip().startswith("#") else line.split()
        if not words:
            return Result("", {}, "")
        name = _NAMES.get(words[0])
        if name is None:
            near = nearest(words[0], list(_NAMES))
            raise UsageError(
                f'there is no command "{words[0]}"',
                help=f'did you mean "{near}"?' if near else '"help" lists them',
            )
        action: Callable[[list[str], str], Result] = getattr(self, f"_{name}")
        return action(words[1:], line.strip().partition(" ")[2].strip())

    # Moving.

    def _run(self, words: list[str], rest: str) -> Result:
        return self._stopped("run", self.session.run())

    def _back(self, words: list[str], rest: str) -> Result:
        return self._stopped("back", self.session.run(backwards=True))

    def _step(self, words: list[str], rest: str) -> Result:
        unit, count = _unit_and_count("step", words)
        return self._stopped("step", self.session.move(unit, count))

    def _stepback(self, words: list[str], rest: str) -> Result:
        unit, count = _unit_and_count("stepback", words)
        return self._stopped("stepback", self.session.move(unit, -count))

    def _next(self, words: list[str], rest: str) -> Result:
        return self._stopped("next", self.session.move(Unit.LINE, _count("next", words)))

    def _prev(self, words: list[str], rest: str) -> Result:
        return self._stopped("prev", self.session.move(Unit.LINE, -_count("prev", words)))

    def _tile(self, words: list[str], rest: str) -> Result:
        return self._stopped("tile", self.session.move(Unit.TILE, _count("tile", words)))

    def _start(self, words: list[str], rest: str) -> Result:
        return self._stopped("start", self.session.goto(0))

    def _end(self, words: list[str], rest: str) -> Result:
        return self._stopped("end", self.session.goto(self.session.recording.step_count))

    def _goto(self, words: list[str], rest: str) -> Result:
        if words[:1] == ["core"] and len(words) in (2, 3):
            core = _number("goto core", words[1])
            self.session.choose_core(core)
            steps = self.session.recording.steps_of[core]
            number = _number("goto core", words[2]) if len(words) == 3 else 1
            if not 1 <= number <= len(steps):
                raise UsageError(
                    f"core {core} has no instruction {number}", help=f"it has 1 to {len(steps)}"
                )
            return self._stopped("goto", self.session.goto(int(steps[number - 1])))
        if len(words) != 1:
            raise _usage("goto")
        return self._stopped("goto", self.session.goto(_number("goto", words[0])))

    def _core(self, words: list[str], rest: str) -> Result:
        session = self.session
        if words:
            session.choose_core(_number("core", words[0]))
            return self._where([], "")
        rows = []
        for number, (kind, block, sub_block) in enumerate(session.recording.cores):
            steps = session.recording.steps_of[number]
            done = int(np.searchsorted(steps, session.position))
            rows.append(
                {
                    "core": number,
                    "kind": kind,
                    "block": block,
                    "sub_block": sub_block,
                    "done": done,
                    "instructions": len(steps),
                }
            )
        text = "\n".join(
            f"{'*' if row['core'] == session.core else ' '} core {row['core']}: {row['kind']},"
            f" block {row['block']}, {row['done']} of {row['instructions']} instructions done"
            for row in rows
        )
        return Result("core", {"cores": rows, "core": session.core}, text)

    def _stopped(self, command: str, stop: Stop) -> Result:
        where = self._where([], "")
        data = {
            "reason": stop.reason,
            "why": stop.text,
            "breakpoint": stop.breakpoint,
            "log": list(stop.log),
            **where.data,
        }
        lines = [*stop.log, *([stop.text] if stop.text else []), where.text]
        return Result(command, data, "\n".join(lines))

    # Breakpoints.

    def _break(self, words: list[str], rest: str) -> Result:
        return self._at_place("break", rest)

    def _log(self, words: list[str], rest: str) -> Result:
        place, colon, text = rest.partition(" : ")
        if not colon or not text.strip():
            raise _usage("log")
        return self._at_place("log", place.strip(), Message(text.strip()))

    def _at_place(self, command: str, rest: str, message: Message | None = None) -> Result:
        session = self.session
        head, _, condition_text = rest.partition(" if ")
        condition = Expression(condition_text) if condition_text else None
        words = head.split()
        if not words:
            raise _usage(command)
        limits: dict[str, int] = {}
        place = [words.pop(0)]
        while words:
            word = words.pop(0)
            if word in ("core", "tile") and words:
                limits[word] = _number(word, words.pop(0))
            elif place[0] == "finding" and len(place) == 1:
                place.append(word)
            else:
                raise _usage(command)
        steps, text = self._break_steps(place)
        recording = session.recording
        if "core" in limits:
            if limits["core"] >= len(recording.cores):
                last = len(recording.cores) - 1
                raise UsageError(
                    f"there is no core {limits['core']}", help=f"the launch has 0 to {last}"
                )
            steps = steps[recording.core_of[steps] == limits["core"]]
        if "tile" in limits:
            steps = steps[recording.tile_of[steps] == limits["tile"]]
        if not len(steps):
            raise UsageError(f"{command} {rest}: no instruction of this launch is meant")
        for asked in (condition, message):
            if asked is not None:
                self._check_names(asked.names, steps)
        text = f"{text} {rest[len(place[0]) :].strip()}".strip()
        breakpoint = session.add_breakpoint(
            text if message is None else f"log {text} : {message.text}",
            steps=steps,
            condition=condition,
            message=message,
        )
        return self._added(command, breakpoint.number, breakpoint.text, len(steps))

    def _break_steps(self, place: Sequence[str]) -> tuple[NDArray[np.int64], str]:
        session = self.session
        word = place[0]
        if word == "finding":
            return session.steps_of_findings(place[1] if len(place) > 1 else ""), "finding"
        if word == "fault":
            step = session.fault_step()
            if step is None:
                raise UsageError("this launch has not faulted")
            return np.array([step], np.int64), "fault"
        if word.isdigit():
            here = session.place
            if here is None:
                raise UsageError("this launch has no instruction")
            steps, line = session.steps_at_line(str(here[0]), int(word))
            return steps, f"{here[0].name}:{line}"
        file, colon, line_text = word.rpartition(":")
        if colon and line_text.isdigit():
            steps, line = session.steps_at_line(file, int(line_text))
            return steps, f"{Path(file).name}:{line}"
        return session.steps_of_instruction(word), word

    def _check_names(self, names: Sequence[str], steps: NDArray[np.int64]) -> None:
        """Names that are known nowhere are told at once, not by never stopping."""
        session = self.session
        cores = np.unique(session.recording.core_of[steps])
        for name in names:
            for core in cores:
                try:
                    session.names.find(name, int(steps[0]), int(core))
                    break
                except UsageError as error:
                    last = error
            else:
                raise last

    def _watch(self, words: list[str], rest: str) -> Result:
        session = self.session
        head, _, condition_text = rest.partition(" if ")
        words = head.split()
        kinds = ("nan", "inf", "golden")
        kind = words.pop() if len(words) > 1 and words[-1] in kinds else ""
        if len(words) != 1:
            raise _usage("watch")
        tensor, label = self._part(words[0])
        writers = session.writers(tensor)
        if not len(writers):
            raise UsageError(f"no instruction of this launch writes {label}")
        condition = Expression(condition_text) if condition_text else None
        looks = None
        if kind in ("nan", "inf"):
            looks = self._not_finite(tensor, also_infinite=kind == "inf")
        elif kind == "golden":
            looks = self._off_golden(tensor)
        if condition is not None:
            self._check_names(condition.names, writers)
        text = f"watch {label}" + (f" {kind}" if kind else "")
        text += f" if {condition_text}" if condition_text else ""
        breakpoint = session.add_breakpoint(text, after=writers, condition=condition, looks=looks)
        return self._added("watch", breakpoint.number, breakpoint.text, len(writers))

    def _not_finite(self, tensor: Tensor, *, also_infinite: bool) -> Callable[[int], bool]:
        recording = self.session.recording

        def looks(place: int) -> bool:
            core = -1 if tensor.space == "GM" else tensor.core
            found = recording.find_nan(
                place - 1,
                place,
                tensor.space,
                tensor.address,
                tensor.end,
                core=core,
                also_infinite=also_infinite,
            )
            return found is not None

        return looks

    def _off_golden(self, tensor: Tensor) -> Callable[[int], bool]:
        session = self.session
        name = tensor.name
        wrong = session.wrong.get(name)
        if wrong is None:
            told = ", ".join(session.wrong) or "none"
            raise UsageError(
                f"nothing says what {name} should be",
                help=f"outputs with a golden: {told}",
            )
        known = session.names.tensors[name]
        first = (tensor.address - known.address) // tensor.dtype.size_bytes
        masked = np.zeros(known.count, np.bool_)
        masked[first : first + tensor.count] = wrong[first : first + tensor.count]
        final = values_of(session.recording, known, session.recording.step_count)
        assert final is not None

        def looks(place: int) -> bool:
            for piece in session.recording.instruction(place - 1).written:
                size = known.dtype.size_bytes
                begin = max(0, (piece.begin - known.address) // size)
                end = min(known.count, (piece.end - known.address + size - 1) // size)
                if begin >= end or not masked[begin:end].any():
                    continue
                now = values_of(session.recording, known.part(begin, end), place)
                # An element that is written again later is judged by its last value.
                same = now is not None and np.array_equal(
                    now[masked[begin:end]], final[begin:end][masked[begin:end]], equal_nan=True
                )
                if same:
                    return True
            return False

        return looks

    def _added(self, command: str, number: int, text: str, places: int) -> Result:
        data = {"breakpoint": number, "text": text, "places": places}
        return Result(command, data, f"breakpoint {number}: {text} ({places} places)")

    def _delete(self, words: list[str], rest: str) -> Result:
        if len(words) != 1:
            raise _usage("delete")
        number = _number("delete", words[0])
        self.session.delete_breakpoint(number)
        return Result("delete", {"breakpoint": number}, f"breakpoint {number} is gone")

    def _breakpoints(self, words: list[str], rest: str) -> Result:
        rows = [
            {"breakpoint": b.number, "text": b.text, "places": len(b.places()), "hits": b.hits}
            for b in self.session.breakpoints
        ]
        text = "\n".join(
            f"{row['breakpoint']}: {row['text']} ({row['places']} places, {row['hits']} hits)"
            for row in rows
        )
        return Result("breakpoints", {"breakpoints": rows}, text or "there are none")

    # Looking.

    def _whole(self, text: str) -> tuple[Tensor, int, int]:
        """Return the tensor of `NAME`, `NAME[i]`, `NAME[i:j]` or `UB:256:float16:64`, and which
        of its elements are meant."""
        session = self.session
        if parse_place(text, session.core) is not None:
            tensor = session.tensor(text)
            if tensor.space == "GM":
                tensor = self._global_place(tensor)
            return tensor, 0, tensor.count
        found = re.fullmatch(r"([^\[\]]+)(?:\[([-\d,: ]+)\])?", text)
        if found is None:
            raise UsageError(f'"{text}" is no tensor', help="write y, y[1234] or y[0:16]")
        tensor = session.tensor(found[1])
        start, stop = (0, tensor.count) if found[2] is None else _range_of(found[2], tensor)
        return tensor, start, stop

    def _part(self, text: str) -> tuple[Tensor, str]:
        """Return the elements that a text means."""
        tensor, start, stop = self._whole(text)
        return (tensor if stop - start == tensor.count else tensor.part(start, stop)), text

    def place(self, text: str) -> str:
        """Return the memory of `y`, `y[3]` or `y[0:16]` as `UB:256:float16:16`.

        Raises:
            UsageError: nothing has this name, or the elements lie outside.
        """
        return self._part(text)[0].place

    def _global_place(self, tensor: Tensor) -> Tensor:
        known = self.session.recording.range_at(tensor.address)
        if known is None:
            raise UsageError(f"{tensor.name}: no tensor of this launch lies there")
        return tensor

    def _print(self, words: list[str], rest: str) -> Result:
        if not rest:
            raise _usage("print")
        simple = re.fullmatch(r"[A-Za-z_#\d:x]+(?:\[[-\d,: ]+\])?", rest)
        if simple is not None and not rest.isdigit():
            tensor, label = self._part(rest)
            found = values_of(self.session.recording, tensor, self.session.position)
            if found is None:
                raise UsageError(f"{label} is no part of the recording")
            return self._printed(label, tensor, found)
        value = Expression(rest).value(self.session.values)
        array = np.asarray(value)
        shown: Any = array.reshape(-1)[:64].tolist() if array.ndim else array.item()
        data = {"expression": rest, "value": shown, "shape": list(array.shape)}
        return Result("print", data, f"{rest} = {short(array)}")

    def _printed(self, label: str, tensor: Tensor, found: NDArray[np.float64]) -> Result:
        finite = found[np.isfinite(found)] if found.dtype.kind == "f" else found
        summary: dict[str, Any] = {
            "nan": int(np.isnan(found).sum()) if found.dtype.kind == "f" else 0,
            "inf": int(np.isinf(found).sum()) if found.dtype.kind == "f" else 0,
        }
        if finite.size:
            summary |= {"min": finite.min().item(), "max": finite.max().item()}
        data = {
            "name": label,
            "space": tensor.space,
            "address": tensor.address,
            "core": tensor.core if tensor.space != "GM" else None,
            "dtype": tensor.dtype.name,
            "count": tensor.count,
            "shape": list(tensor.shape or (tensor.count,)),
            "values": found[:64].tolist(),
            **summary,
        }
        where = tensor.space if tensor.space == "GM" else f"{tensor.space} of core {tensor.core}"
        head = f"{label}: {tensor.dtype.name} x {tensor.count} in {where}"
        if tensor.space != "GM":
            head += f" at {tensor.address}"
        parts = [f"{key} {value:.6g}" for key, value in summary.items() if value or key[0] == "m"]
        return Result("print", data, f"{head}\n  {short(found)}\n  {', '.join(parts)}")

    def _tensors(self, words: list[str], rest: str) -> Result:
        session = self.session
        rows = []
        for name in session.names.known(session.core):
            try:
                tensor = session.tensor(name)
            except UsageError:
                continue
            rows.append(
                {
                    "name": name,
                    "space": tensor.space,
                    "dtype": tensor.dtype.name,
                    "count": tensor.count,
                    "address": tensor.address,
                }
            )
        text = "\n".join(
            f"{row['name']:<24} {row['space']:<4} {row['dtype']:<9} x {row['count']}"
            for row in rows
        )
        return Result("tensors", {"tensors": rows}, text or "there are none")

    def _where(self, words: list[str], rest: str) -> Result:
        session = self.session
        recording = session.recording
        step = session.step
        place = session.place
        kind, block, sub_block = recording.cores[session.core] if recording.cores else ("", 0, 0)
        data: dict[str, Any] = {
            "position": session.position,
            "of": recording.step_count,
            "core": session.core,
            "kind": kind,
            "block": block,
            "sub_block": sub_block,
            "file": None if place is None else str(place[0]),
            "line": None if place is None else place[1],
            "tile": None if step is None else int(recording.tile_of[step]),
            "instruction": None if step is None else recording.op_names[recording.op_of[step]],
            "number": None if step is None else int(recording.number_of[step]),
        }
        if place is None:
            return Result("where", data, "the launch has no instruction")
        source = source_file(place[0]).line(place[1])
        next_up = "behind its last instruction"
        if step is not None:
            next_up = f"instruction {data['number']} ({data['instruction']}), tile {data['tile']}"
        text = (
            f"core {session.core} ({kind}, block {block}): {next_up}\n"
            f"  {place[0].name}:{place[1]}  {source}"
        )
        return Result("where", data, text)

    def _list(self, words: list[str], rest: str) -> Result:
        place = self.session.place
        rows = list(self.session.lines_around())
        here = place[1] if place is not None else 0
        text = "\n".join(f"{'>' if n == here else ' '} {n:>5}  {line}" for n, line in rows)
        data = {"line": here, "lines": [{"line": n, "text": line} for n, line in rows]}
        return Result("list", data, text or "the source cannot be read")

    def _instruction(self, words: list[str], rest: str) -> Result:
        step = self.session.step
        if step is None:
            raise UsageError(f"core {self.session.core} is behind its last instruction")
        instruction = self.session.recording.instruction(step)
        rows = self._operand_rows(instruction)
        data = {
            "op": instruction.op,
            "pipe": instruction.pipe,
            "file": str(instruction.file),
            "line": instruction.line,
            "number": instruction.number,
            "scalar": instruction.scalar,
            "operands": rows,
        }
        text = f"{instruction.op} on {instruction.pipe}"
        if instruction.op in ("SetFlag", "WaitFlag"):
            text += f": {instruction.pipe}_{instruction.peer_pipe} id {instruction.event_id}"
        lines = [
            f"  {'writes' if row['writes'] else 'reads '} {row['place']:<20} {row['dtype']:<9}"
            f" {row['bytes']} bytes  {row['text']}"
            for row in rows
        ]
        if instruction.scalar is not None:
            lines.append(f"  scalar {instruction.scalar!r}")
        return Result("instruction", data, "\n".join([text, *lines]))

    def _operand_rows(self, instruction: Instruction) -> list[dict[str, Any]]:
        texts = self.session.names.operand_texts(instruction.step)
        rows = []
        for piece in instruction.pieces[:16]:
            rows.append(
                {
                    "operand": piece.operand,
                    "writes": piece.is_write,
                    "text": texts[piece.operand] if piece.operand < len(texts) else "",
                    "place": self.session.names.place_text(
                        instruction.core,
                        piece.space,
                        piece.begin,
                        piece.size_bytes,
                        instruction.step,
                    ),
                    "space": piece.space,
                    "begin": piece.begin,
                    "bytes": piece.size_bytes,
                    "dtype": piece.dtype.name,
                }
            )
        return rows

    def _queues(self, words: list[str], rest: str) -> Result:
        session = self.session
        slots = slots_at(session.recording, session.position, session.core)
        rows = [
            {
                "name": slot.name,
                "slot": slot.number,
                "space": slot.space,
                "address": slot.address,
                "bytes": slot.size_bytes,
                "state": slot.state,
                "line": slot.line,
            }
            for slot in slots
        ]
        text = "\n".join(
            f"{row['name']}#{row['slot']}: {row['state']} since line {row['line']},"
            f" {row['bytes']} bytes of {row['space']} at {row['address']}"
            for row in rows
        )
        return Result("queues", {"queues": rows}, text or "no buffer is placed yet")

    def _flags(self, words: list[str], rest: str) -> Result:
        session = self.session
        rows = [
            {"from": first, "to": second, "id": number, "count": count}
            for first, second, number, count in session.recording.flags(
                session.position, session.core
            )
        ]
        text = "\n".join(f"{r['from']}_{r['to']} id {r['id']}: {r['count']}" for r in rows)
        return Result("flags", {"flags": rows}, text or "no signal waits")

    def _pipes(self, words: list[str], rest: str) -> Result:
        session = self.session
        rows = [
            {
                "pipe": state.pipe,
                "instructions": state.instructions,
                "last": state.last_op,
                "line": state.line,
            }
            for state in pipes_at(session.recording, session.position, session.core)
        ]
        text = "\n".join(
            f"{r['pipe']:<5} {r['instructions']:>6} instructions, the last {r['last']} at line"
            f" {r['line']}"
            for r in rows
        )
        return Result("pipes", {"pipes": rows}, text or "no pipe has done anything yet")

    def _findings(self, words: list[str], rest: str) -> Result:
        rows = [
            {
                "id": finding.id,
                "message": finding.message,
                "file": None if finding.location is None else str(finding.location.file),
                "line": None if finding.location is None else finding.location.line,
                "block": finding.block,
                "steps": self.session.finding_steps(finding),
            }
            for finding in self.session.findings
        ]
        text = "\n".join(f"[{r['id']}] line {r['line']}: {r['message']}" for r in rows)
        return Result("findings", {"findings": rows}, text or "opkit check finds nothing")

    # Why.

    def _why(self, words: list[str], rest: str) -> Result:
        answer = self._explained(*self._whole(rest)) if rest else self._worst()
        return Result("why", answer_data(answer), answer_text(answer))

    def _explained(self, tensor: Tensor, start: int, stop: int) -> Answer:
        """Explain the first of some elements; the first that is off where that is known."""
        session = self.session
        index = start
        if tensor.space == "GM":
            # By the name that the launch gives it, what it should be is known.
            told = session.names.told_at(tensor.address)
            tensor = told if told is not None and told.dtype == tensor.dtype else tensor
            wrong = session.wrong.get(tensor.name)
            if wrong is not None and stop - start > 1:
                off = np.flatnonzero(wrong[start:stop])
                index += int(off[0]) if len(off) else 0
            if not self._is_written(tensor, index):
                # Nothing has written it yet: as it will be in the end.
                return self._explained_in_the_end(tensor, index)
        return explain(session, tensor, index, precision=self.target.precision)

    def _is_written(self, tensor: Tensor, index: int) -> bool:
        address = tensor.address + index * tensor.dtype.size_bytes
        writers = self.session.writers(tensor)
        writers = writers[writers < self.session.position]
        _, begin, end = self.session.recording.hulls
        return bool(((begin[writers] <= address) & (end[writers] > address)).any())

    def _explained_in_the_end(self, tensor: Tensor, index: int) -> Answer:
        session = self.session
        keep = session.position, session.core
        session.position = session.recording.step_count
        try:
            return explain(session, tensor, index, precision=self.target.precision)
        finally:
            session.position, session.core = keep

    def _worst(self) -> Answer:
        """Explain the launch's first failing element; or its fault, or what is found."""
        session = self.session
        answer = explain_launch(session) if session.recording.fault is not None else None
        if answer is not None:
            return answer
        for name, wrong in session.wrong.items():
            off = np.flatnonzero(wrong)
            if not len(off):
                continue
            worst = session.worst.get(name, int(off[0]))
            return self._explained_in_the_end(session.names.tensors[name], worst)
        answer = explain_launch(session)
        if answer is None:
            raise UsageError(
                "nothing says that this launch is wrong", help="name a value: why y[1234]"
            )
        return answer

    def _help(self, words: list[str], rest: str) -> Result:
        rows = [
            {"command": name, "short": list(shorts), "usage": usage, "text": text}
            for name, shorts, usage, text in COMMANDS
        ]
        text = "\n".join(
            f"{usage:<44} {text}" + (f" ({', '.join(shorts)})" if shorts else "")
            for _, shorts, usage, text in COMMANDS
        )
        return Result("help", {"commands": rows}, text)

    def _quit(self, words: list[str], rest: str) -> Result:
        return Result("quit", {}, "", quits=True)


def _range_of(text: str, tensor: Tensor) -> tuple[int, int]:
    """Return the flat elements that a subscript means."""
    parts = [part.strip() for part in text.split(",")]
    try:
        if len(parts) > 1:
            index = [int(part) for part in parts]
            if len(index) != len(tensor.shape):
                raise UsageError(f"{tensor.name} has the shape {list(tensor.shape)}")
            flat = int(np.ravel_multi_index(index, tensor.shape))
            return flat, flat + 1
        if ":" in text:
            first, _, last = text.partition(":")
            start = int(first or 0)
            stop = int(last or tensor.count)
        else:
            start = int(text)
            stop = start + 1
    except ValueError as error:
        raise UsageError(f"{tensor.name}[{text}]: {error}") from None
    if not 0 <= start < stop <= tensor.count:
        raise UsageError(f"{tensor.name} has {tensor.count} elements, [{text}] is outside")
    return start, stop


def _unit_and_count(command: str, words: Sequence[str]) -> tuple[Unit, int]:
    unit = Unit.INSTRUCTION
    rest = list(words)
    if rest and rest[0] in _UNITS:
        unit = _UNITS[rest.pop(0)]
    return unit, _count(command, rest)


def _count(command: str, words: Sequence[str]) -> int:
    if not words:
        return 1
    if len(words) > 1:
        raise _usage(command)
    return _number(command, words[0])


def _number(command: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(f'{command}: "{text}" is no number') from None


def _usage(command: str) -> UsageError:
    usage = next(usage for name, _, usage, _ in COMMANDS if name == command)
    return UsageError(f"{command} is written {usage}")
