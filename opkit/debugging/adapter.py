"""The Debug Adapter Protocol: a recorded launch in an editor, with its buttons.

Threads are cores, frames are the place of a core, scopes are its memories, queues and registers.
Source: Debug Adapter Protocol, specification, base protocol and requests.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from opkit.debugging.commands import COMMANDS, Debugger
from opkit.debugging.expressions import FUNCTIONS
from opkit.debugging.queues import pipes_at, slots_at
from opkit.debugging.session import Session, Stop, Unit
from opkit.debugging.source_names import source_file
from opkit.debugging.targets import Target
from opkit.debugging.tensors import values_of
from opkit.errors import OpkitError, UsageError

__all__ = ["Adapter"]

_MOST_ELEMENTS = 256
_MOST_BYTES = 1 << 16
_FIRST_TENSOR = 1 << 20
"""References from here on are tensors; those of scopes are smaller."""
_SCOPES = ("Tensors", "Queues", "Flags", "Pipes", "Findings")
_CAPABILITIES = {
    "supportsConfigurationDoneRequest": True,
    "supportsStepBack": True,
    "supportsConditionalBreakpoints": True,
    "supportsHitConditionalBreakpoints": True,
    "supportsLogPoints": True,
    "supportsDataBreakpoints": True,
    "supportsFunctionBreakpoints": True,
    "supportsCompletionsRequest": True,
    "supportsReadMemoryRequest": True,
    "supportsEvaluateForHovers": True,
    "supportsGotoTargetsRequest": True,
    "supportsSteppingGranularity": True,
    "supportsTerminateRequest": True,
    "supportsRestartRequest": True,
    "exceptionBreakpointFilters": [
        {"filter": "finding", "label": "Findings of opkit check", "default": False},
        {"filter": "nan", "label": "The first NaN in an output", "default": False},
        {"filter": "golden", "label": "The first value that is off the golden", "default": False},
    ],
}


class Adapter:
    """One client's session: takes requests, gives responses and events."""

    def __init__(self, target: Callable[[], Target], send: Callable[[dict[str, Any]], None]):
        self._target = target
        self._send_message = send
        self._sequence = 0
        self._debugger: Debugger | None = None
        self._by_source: dict[str, list[int]] = {}
        self._of_functions: list[int] = []
        self._of_data: list[int] = []
        self._of_filters: list[int] = []
        self._filters: list[str] = []
        self._tensors: list[tuple[int, str]] = []
        """Thread and name of each tensor that a client may open; good until the next stop."""
        self._stops_on_entry = True
        self.is_over = False

    def take(self, request: Mapping[str, Any]) -> None:
        """Answer one request."""
        name = str(request.get("command", ""))
        action = getattr(self, f"_{name}", None)
        arguments = request.get("arguments") or {}
        if action is None or not name.isalpha() or not isinstance(arguments, dict):
            self._respond(request, error=f'there is no request "{name}"')
            return
        try:
            body, after = action(arguments)
        except OpkitError as error:
            text = str(error)
            self._respond(request, error=text)
            if name in ("launch", "attach"):
                self._event("output", {"category": "stderr", "output": text + "\n"})
                self._event("terminated", {})
            return
        except (KeyError, TypeError, ValueError) as error:
            self._respond(request, error=f"{name}: {type(error).__name__}: {error}")
            return
        self._respond(request, body=body)
        if after is not None:
            after()

    # Messages.

    def _send(self, message: dict[str, Any]) -> None:
        self._sequence += 1
        self._send_message({"seq": self._sequence, **message})

    def _event(self, name: str, body: Mapping[str, Any]) -> None:
        self._send({"type": "event", "event": name, "body": dict(body)})

    def _respond(
        self, request: Mapping[str, Any], *, body: Any = None, error: str | None = None
    ) -> None:
        message: dict[str, Any] = {
            "type": "response",
            "request_seq": request.get("seq", 0),
            "command": request.get("command", ""),
            "success": error is None,
        }
        if error is not None:
            message["message"] = error
            message["body"] = {"error": {"id": 1, "format": error}}
        elif body is not None:
            message["body"] = body
        self._send(message)

    @property
    def _ready(self) -> Debugger:
        if self._debugger is None:
            raise UsageError("nothing is launched yet")
        return self._debugger

    @property
    def _session(self) -> Session:
        return self._ready.session

    # The life of a session.

    def _initialize(self, arguments: Mapping[str, Any]) -> Any:
        return _CAPABILITIES, None

    def _launch(self, arguments: Mapping[str, Any]) -> Any:
        target = self._target()
        self._debugger = Debugger(target)
        self._stops_on_entry = bool(arguments.get("stopOnEntry", True))
        recording = target.session.recording
        text = f"{target.title}: {recording.kernel}, {recording.step_count} instructions\n"
        self._event("output", {"category": "console", "output": text})
        return None, lambda: self._event("initialized", {})

    _attach = _launch

    def _restart(self, arguments: Mapping[str, Any]) -> Any:
        """Build and record the launch again; the client then sends its breakpoints again."""
        for numbers in (self._of_functions, self._of_data, self._of_filters):
            numbers.clear()
        self._by_source.clear()
        return self._launch({"stopOnEntry": self._stops_on_entry, **arguments})

    def _configurationDone(self, arguments: Mapping[str, Any]) -> Any:
        def after() -> None:
            self._use_filters()
            if self._stops_on_entry:
                self._stopped(self._session.stop)
            else:
                self._stopped(self._session.run())

        return None, after

    def _disconnect(self, arguments: Mapping[str, Any]) -> Any:
        self.is_over = True
        return None, lambda: self._event("terminated", {})

    _terminate = _disconnect

    def _stopped(self, stop: Stop) -> None:
        self._tensors.clear()
        for line in stop.log:
            self._event("output", {"category": "console", "output": line + "\n"})
        reasons = {"start": "entry", "fault": "exception", "end": "pause", "goto": "goto"}
        reason = reasons.get(stop.reason, stop.reason)
        body: dict[str, Any] = {
            "reason": reason,
            "description": stop.text,
            "text": stop.text,
            "threadId": self._session.core + 1,
            "allThreadsStopped": True,
        }
        if stop.breakpoint is not None:
            body["hitBreakpointIds"] = [stop.breakpoint]
        self._event("stopped", body)

    # Breakpoints.

    def _setBreakpoints(self, arguments: Mapping[str, Any]) -> Any:
        path = str(arguments["source"].get("path") or arguments["source"].get("name"))
        for number in self._by_source.pop(path, ()):
            self._session.delete_breakpoint(number)
        found = []
        numbers = []
        for wanted in arguments.get("breakpoints") or ():
            place = f"{_shown(self._session, path)}:{int(wanted['line'])}"
            answer = self._add_at(place, wanted)
            numbers += [answer["id"]] if answer["verified"] else []
            if answer["verified"]:
                _, answer["line"] = self._session.steps_at_line(
                    _shown(self._session, path), int(wanted["line"])
                )
            found.append(answer)
        self._by_source[path] = numbers
        return {"breakpoints": found}, None

    def _setFunctionBreakpoints(self, arguments: Mapping[str, Any]) -> Any:
        for number in self._of_functions:
            self._session.delete_breakpoint(number)
        found = []
        for wanted in arguments.get("breakpoints") or ():
            found.append(self._add_at(wanted["name"], wanted))
        self._of_functions = [answer["id"] for answer in found if answer["verified"]]
        return {"breakpoints": found}, None

    def _dataBreakpointInfo(self, arguments: Mapping[str, Any]) -> Any:
        name = str(arguments["name"])
        reference = int(arguments.get("variablesReference") or 0)
        thread = int(arguments.get("frameId") or 0) or self._session.core + 1
        if reference >= _FIRST_TENSOR:
            thread, owner = self._tensors[reference - _FIRST_TENSOR]
            name = owner + name
        elif reference:
            thread = reference // len(_SCOPES)
        with self._looking_at(thread):
            try:
                place = self._ready.place(name)
            except UsageError as error:
                return {"dataId": None, "description": str(error)}, None
        # A name may mean another buffer when the client sets the breakpoint: memory stays.
        return {
            "dataId": f"{thread}/{place}",
            "description": name,
            "accessTypes": ["write"],
            "canPersist": False,
        }, None

    def _setDataBreakpoints(self, arguments: Mapping[str, Any]) -> Any:
        for number in self._of_data:
            self._session.delete_breakpoint(number)
        found = []
        for wanted in arguments.get("breakpoints") or ():
            thread, _, place = str(wanted["dataId"]).partition("/")
            condition = wanted.get("condition")
            with self._looking_at(int(thread)):
                line = f"watch {place}" + (f" if {condition}" if condition else "")
                found.append(self._add(line, hits=wanted.get("hitCondition")))
        self._of_data = [answer["id"] for answer in found if answer["verified"]]
        return {"breakpoints": found}, None

    def _setExceptionBreakpoints(self, arguments: Mapping[str, Any]) -> Any:
        self._filters = list(arguments.get("filters") or ())
        if self._debugger is not None:
            self._use_filters()
        return {}, None

    def _use_filters(self) -> None:
        for number in self._of_filters:
            self._session.delete_breakpoint(number)
        lines = []
        for name in self._filters:
            if name == "finding":
                lines.append("break finding")
            for output in self._session.wrong if name in ("nan", "golden") else ():
                lines.append(f"watch {output} {name}")
        answers = [self._add(line) for line in lines]
        self._of_filters = [answer["id"] for answer in answers if answer["verified"]]

    def _add_at(self, place: str, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Add a breakpoint as a client wants it; with a message it is one that does not stop."""
        condition = wanted.get("condition")
        line = place + (f" if {condition}" if condition else "")
        message = wanted.get("logMessage")
        line = f"log {line} : {message}" if message else f"break {line}"
        return self._add(line, hits=wanted.get("hitCondition"))

    def _add(self, line: str, *, hits: str | None = None) -> dict[str, Any]:
        try:
            counts = _hit_rule(hits) if hits else None
            result = self._ready.run(line)
        except UsageError as error:
            return {"verified": False, "message": str(error)}
        if counts is not None:
            self._session.breakpoints[-1].counts = counts
        return {"verified": True, "id": result.data["breakpoint"], "message": result.text}

    # Looking.

    def _threads(self, arguments: Mapping[str, Any]) -> Any:
        cores = self._session.recording.cores
        rows = [
            {"id": number + 1, "name": f"core {number}: {kind}, block {block}"}
            for number, (kind, block, _) in enumerate(cores)
        ]
        return {"threads": rows or [{"id": 1, "name": "no core"}]}, None

    def _look_at(self, thread: int) -> None:
        """Look at a core; one frame each, of the same number."""
        self._session.choose_core(thread - 1)

    @contextmanager
    def _looking_at(self, thread: int) -> Iterator[Session]:
        """Look at a core for a while."""
        before = self._session.core
        self._look_at(thread)
        try:
            yield self._session
        finally:
            self._session.core = before

    def _stackTrace(self, arguments: Mapping[str, Any]) -> Any:
        thread = int(arguments["threadId"])
        with self._looking_at(thread) as session:
            place, step = session.place, session.step
        recording = session.recording
        name = "behind its last instruction"
        if step is not None:
            op = recording.op_names[recording.op_of[step]]
            name = f"{recording.kernel}: {op}, tile {int(recording.tile_of[step])}"
        frame: dict[str, Any] = {"id": thread, "name": name, "line": 0, "column": 1}
        if place is not None:
            frame["line"] = place[1]
            frame["source"] = {"name": place[0].name, "path": str(place[0].resolve())}
        return {"stackFrames": [frame], "totalFrames": 1}, None

    def _scopes(self, arguments: Mapping[str, Any]) -> Any:
        thread = int(arguments["frameId"])
        rows = [
            {
                "name": name,
                "variablesReference": thread * len(_SCOPES) + number,
                "expensive": False,
            }
            for number, name in enumerate(_SCOPES)
        ]
        return {"scopes": rows}, None

    def _variables(self, arguments: Mapping[str, Any]) -> Any:
        reference = int(arguments["variablesReference"])
        if reference >= _FIRST_TENSOR:
            return {"variables": self._elements(reference, arguments)}, None
        thread, scope = divmod(reference, len(_SCOPES))
        with self._looking_at(thread) as session:
            rows = getattr(self, f"_show_{_SCOPES[scope].lower()}")(session)
            found = [{"name": n, "value": v, "variablesReference": 0} for n, v in rows]
            if _SCOPES[scope] == "Tensors":
                for row in found:
                    self._tensors.append((thread, row["name"]))
                    row["variablesReference"] = _FIRST_TENSOR + len(self._tensors) - 1
                    row["memoryReference"] = f"{thread}/{self._ready.place(row['name'])}"
        return {"variables": found}, None

    def _elements(self, reference: int, arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the elements of a tensor that a client opens, at most so many at a time."""
        thread, name = self._tensors[reference - _FIRST_TENSOR]
        with self._looking_at(thread) as session:
            tensor = session.tensor(name)
            start = int(arguments.get("start") or 0)
            wanted = int(arguments.get("count") or 0) or _MOST_ELEMENTS
            stop = min(tensor.count, start + min(wanted, _MOST_ELEMENTS))
            values = values_of(session.recording, tensor.part(start, stop), session.position)
        return [
            {"name": f"[{start + index}]", "value": f"{value:.9g}", "variablesReference": 0}
            for index, value in enumerate([] if values is None else values.tolist())
        ]

    def _show_tensors(self, session: Session) -> list[tuple[str, str]]:
        rows = []
        for name in session.names.known(session.core):
            try:
                tensor = session.tensor(name)
            except UsageError:
                continue
            few = tensor.part(0, min(tensor.count, 8))
            found = values_of(session.recording, few, session.position)
            if found is None:
                continue
            shown = ", ".join(f"{value:.6g}" for value in found.tolist())
            more = ", ..." if tensor.count > len(found) else ""
            rows.append(
                (name, f"{tensor.dtype.name} x {tensor.count} {tensor.space} [{shown}{more}]")
            )
        return rows

    def _show_queues(self, session: Session) -> list[tuple[str, str]]:
        return [
            (f"{slot.name}#{slot.number}", f"{slot.state} since line {slot.line}")
            for slot in slots_at(session.recording, session.position, session.core)
        ]

    def _show_flags(self, session: Session) -> list[tuple[str, str]]:
        flags = session.recording.flags(session.position, session.core)
        return [(f"{first}_{second} id {number}", str(n)) for first, second, number, n in flags]

    def _show_pipes(self, session: Session) -> list[tuple[str, str]]:
        return [
            (state.pipe, f"{state.instructions} instructions, the last {state.last_op}")
            for state in pipes_at(session.recording, session.position, session.core)
        ]

    def _show_findings(self, session: Session) -> list[tuple[str, str]]:
        return [
            (f"{f.id} line {f.location.line if f.location else 0}", f.message)
            for f in session.findings
        ]

    def _evaluate(self, arguments: Mapping[str, Any]) -> Any:
        expression = str(arguments["expression"])
        if arguments.get("frameId"):
            self._look_at(int(arguments["frameId"]))
        is_command = arguments.get("context") == "repl"
        line = expression if is_command else f"print {expression}"
        before = self._session.position, self._session.core
        try:
            result = self._ready.run(line)
        except UsageError:
            if not is_command:
                raise
            # In the console an expression is meant as one.
            result = self._ready.run(f"print {expression}")
        moved = (self._session.position, self._session.core) != before
        after = (lambda: self._stopped(self._session.stop)) if moved else None
        return {"result": result.text, "variablesReference": 0}, after

    def _completions(self, arguments: Mapping[str, Any]) -> Any:
        """Complete what is typed into the console: commands first, then names and functions."""
        column = int(arguments["column"]) - 1
        typed = str(arguments["text"])[:column]
        word = re.split(r"[^\w#]", typed)[-1]
        with self._looking_at(int(arguments.get("frameId") or 0) or self._session.core + 1):
            names = self._session.names.known(self._session.core)
        offered = [(name, "variable") for name in names]
        offered += [(name, "function") for name in FUNCTIONS]
        if word == typed:
            offered = [(name, "keyword") for name, *_ in COMMANDS] + offered
        targets = [
            {"label": name, "type": kind, "start": len(typed) - len(word), "length": len(word)}
            for name, kind in offered
            if name.startswith(word)
        ]
        return {"targets": targets}, None

    def _readMemory(self, arguments: Mapping[str, Any]) -> Any:
        """Return bytes as they are now; those that are no part of the recording are missing."""
        thread, _, place = str(arguments["memoryReference"]).partition("/")
        offset, count = int(arguments.get("offset") or 0), int(arguments["count"])
        with self._looking_at(int(thread)) as session:
            tensor = session.tensor(place)
            begin = max(tensor.address + offset, 0)
            count = min(count, _MOST_BYTES)
            core = max(tensor.core, 0)
            raw = session.recording.read(session.position, tensor.space, begin, count, core=core)
        body: dict[str, Any] = {"address": f"{begin:#x}"}
        if raw is None:
            return {**body, "unreadableBytes": count}, None
        return {**body, "data": base64.b64encode(raw).decode("ascii")}, None

    def _exceptionInfo(self, arguments: Mapping[str, Any]) -> Any:
        fault = self._session.recording.fault
        if fault is None:
            raise UsageError("this launch has not faulted")
        body = {"exceptionId": fault.category, "description": fault.message, "breakMode": "always"}
        return body, None

    def _source(self, arguments: Mapping[str, Any]) -> Any:
        path = Path(str((arguments.get("source") or {}).get("path", "")))
        return {"content": "\n".join(source_file(path).lines)}, None

    # Moving.

    def _moved(self, arguments: Mapping[str, Any], move: Callable[[], Stop]) -> Any:
        if "threadId" in arguments:
            self._look_at(int(arguments["threadId"]))
        # Says that nothing is launched before an answer goes out.
        assert self._ready is not None
        return {"allThreadsContinued": True}, lambda: self._stopped(move())

    def _continue(self, arguments: Mapping[str, Any]) -> Any:
        return self._moved({}, lambda: self._session.run())

    def _reverseContinue(self, arguments: Mapping[str, Any]) -> Any:
        return self._moved({}, lambda: self._session.run(backwards=True))

    def _next(self, arguments: Mapping[str, Any]) -> Any:
        unit = _unit(arguments)
        return self._moved(arguments, lambda: self._session.move(unit))

    def _stepIn(self, arguments: Mapping[str, Any]) -> Any:
        return self._moved(arguments, lambda: self._session.move(Unit.INSTRUCTION))

    def _stepOut(self, arguments: Mapping[str, Any]) -> Any:
        return self._moved(arguments, lambda: self._session.move(Unit.TILE))

    def _stepBack(self, arguments: Mapping[str, Any]) -> Any:
        unit = _unit(arguments)
        return self._moved(arguments, lambda: self._session.move(unit, -1))

    def _pause(self, arguments: Mapping[str, Any]) -> Any:
        return None, lambda: self._stopped(self._session.stop)

    def _gotoTargets(self, arguments: Mapping[str, Any]) -> Any:
        path = str(arguments["source"].get("path") or arguments["source"].get("name"))
        steps, line = self._session.steps_at_line(
            _shown(self._session, path), int(arguments["line"])
        )
        mine = steps[self._session.recording.core_of[steps] == self._session.core]
        chosen = mine if len(mine) else steps
        at = min(int(np.searchsorted(chosen, self._session.position)), len(chosen) - 1)
        return {"targets": [{"id": int(chosen[at]), "label": f"line {line}", "line": line}]}, None

    def _goto(self, arguments: Mapping[str, Any]) -> Any:
        step = int(arguments["targetId"])
        return self._moved({}, lambda: self._session.goto(step))


def _unit(arguments: Mapping[str, Any]) -> Unit:
    return Unit.INSTRUCTION if arguments.get("granularity") == "instruction" else Unit.LINE


def _shown(session: Session, path: str) -> str:
    """Return a file as the recording names it; editors give absolute paths."""
    wanted = Path(path)
    for file, _ in session.recording.sites:
        if file == wanted or (file.name == wanted.name and file.resolve() == wanted.resolve()):
            return str(file)
    return path


def _hit_rule(text: str) -> Callable[[int], bool]:
    """Return which hits count: `3`, `== 3`, `> 3`, `>= 3`, `< 3`, `<= 3` or `% 3`.

    Raises:
        UsageError: it is none of these.
    """
    match = re.fullmatch(r"\s*(==|>=|<=|>|<|%)?\s*(\d+)\s*", text)
    if match is None or int(match[2]) == 0:
        raise UsageError(f'"{text}" counts no hits', help="write 3, >= 3 or % 3")
    number = int(match[2])
    rules: dict[str, Callable[[int], bool]] = {
        "==": lambda hit: hit == number,
        ">": lambda hit: hit > number,
        ">=": lambda hit: hit >= number,
        "<": lambda hit: hit < number,
        "<=": lambda hit: hit <= number,
        "%": lambda hit: hit % number == 0,
    }
    return rules[match[1] or "=="]
