"""The Debug Adapter Protocol, as an editor speaks it."""

from __future__ import annotations

import base64
import io
import json
import socket
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np
import pytest

from opkit.debugging import Adapter, Debugger, Target, serve_port, serve_streams
from opkit.errors import UsageError

Record = Callable[..., Debugger]


class Client:
    """The other side: sends requests, keeps events until somebody asks for them."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._sequence = 0
        self._events: list[dict[str, Any]] = []

    def request(self, command: str, **arguments: Any) -> dict[str, Any]:
        self._sequence += 1
        message = {
            "seq": self._sequence,
            "type": "request",
            "command": command,
            "arguments": arguments,
        }
        raw = json.dumps(message).encode()
        self._stream.write(f"Content-Length: {len(raw)}\r\n\r\n".encode() + raw)
        self._stream.flush()
        while True:
            answer = self._read()
            if answer["type"] == "response":
                assert answer["request_seq"] == self._sequence
                return answer
            self._events.append(answer)

    def ask(self, command: str, **arguments: Any) -> Any:
        answer = self.request(command, **arguments)
        assert answer["success"], answer
        return answer.get("body")

    def event(self, name: str) -> Any:
        while True:
            for number, event in enumerate(self._events):
                if event["event"] == name:
                    return self._events.pop(number)["body"]
            self._events.append(self._read())

    def _read(self) -> dict[str, Any]:
        length = 0
        while (line := self._stream.readline().strip()) or not length:
            assert line, "the server has closed the connection"
            length = int(line.partition(b":")[2])
        message = json.loads(self._stream.read(length))
        assert isinstance(message, dict)
        return message


@pytest.fixture
def connect(record: Record) -> Any:
    """Return a function that starts a server on a free port and connects a client to it."""
    threads: list[threading.Thread] = []
    sockets: list[socket.socket] = []

    def start(target: Callable[[], Target]) -> Client:
        ports: list[int] = []
        is_up = threading.Event()

        def told(port: int) -> None:
            ports.append(port)
            is_up.set()

        thread = threading.Thread(target=serve_port, args=(target, 0, told), daemon=True)
        thread.start()
        threads.append(thread)
        assert is_up.wait(60)
        connection = socket.create_connection(("127.0.0.1", ports[0]), timeout=60)
        sockets.append(connection)
        return Client(connection.makefile("rwb"))  # type: ignore[arg-type]

    yield start
    for connection in sockets:
        connection.close()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def test_an_editor_steps_through_a_launch_in_both_directions(
    connect: Any, record: Record, line_of: Callable[[Debugger, str], int]
) -> None:
    debugger = record()
    path = str(debugger.source)  # type: ignore[attr-defined]
    line = line_of(debugger, "Add(zLocal")
    client = connect(lambda: debugger.target)
    assert client.ask("initialize", adapterID="opkit")["supportsStepBack"]
    client.ask("launch", stopOnEntry=True)
    client.event("initialized")
    (verified,) = client.ask("setBreakpoints", source={"path": path}, breakpoints=[{"line": line}])[
        "breakpoints"
    ]
    assert (verified["verified"], verified["line"]) == (True, line)
    client.ask("setExceptionBreakpoints", filters=["nan"])
    client.ask("configurationDone")
    assert client.event("stopped")["reason"] == "entry"

    assert len(client.ask("threads")["threads"]) == 2
    client.ask("continue", threadId=1)
    stopped = client.event("stopped")
    assert (stopped["reason"], stopped["hitBreakpointIds"]) == ("breakpoint", [verified["id"]])
    (frame,) = client.ask("stackTrace", threadId=stopped["threadId"])["stackFrames"]
    assert (frame["line"], frame["source"]["path"]) == (line, path)
    scopes = client.ask("scopes", frameId=frame["id"])["scopes"]
    shown = {
        scope["name"]: {
            row["name"]: row["value"]
            for row in client.ask("variables", variablesReference=scope["variablesReference"])[
                "variables"
            ]
        }
        for scope in scopes
    }
    assert "[0, 1, 2," in shown["Tensors"]["xLocal"]
    assert shown["Queues"]["xQueue#0"].startswith("dequeued")
    assert client.ask("evaluate", expression="xLocal[3]", context="hover")["result"]
    assert "3" in client.ask("evaluate", expression="print xLocal[3]", context="repl")["result"]

    client.ask("next", threadId=1)
    assert client.event("stopped")["reason"] == "step"
    (after,) = client.ask("stackTrace", threadId=1)["stackFrames"]
    assert after["line"] > line
    client.ask("stepBack", threadId=1)
    client.event("stopped")
    assert client.ask("stackTrace", threadId=1)["stackFrames"][0]["line"] == line
    client.ask("stepOut", threadId=1)
    client.event("stopped")
    client.ask("reverseContinue", threadId=1)
    assert client.event("stopped")["reason"] == "breakpoint"
    client.ask("stepIn", threadId=1)
    client.event("stopped")
    (goal,) = client.ask("gotoTargets", source={"path": path}, line=line)["targets"]
    client.ask("goto", threadId=1, targetId=goal["id"])
    assert client.event("stopped")["reason"] == "goto"
    client.ask("disconnect")
    client.event("terminated")


def test_each_line_of_a_source_is_a_goal_or_says_why_not(connect: Any, record: Record) -> None:
    # Lines of queue calls alone used to end the adapter.
    debugger = record()
    path = debugger.source  # type: ignore[attr-defined]
    client = connect(lambda: debugger.target)
    client.ask("initialize", adapterID="opkit")
    client.ask("launch", stopOnEntry=True)
    client.ask("configurationDone")
    for line in range(1, len(path.read_text("utf-8").splitlines()) + 2):
        answer = client.request("gotoTargets", source={"path": str(path)}, line=line)
        assert answer["success"] or "no instruction" in answer["message"]
    client.ask("disconnect")


def test_a_breakpoint_counts_its_hits_in_both_directions(
    connect: Any, record: Record, line_of: Callable[[Debugger, str], int]
) -> None:
    debugger = record()
    path = str(debugger.source)  # type: ignore[attr-defined]
    line = line_of(debugger, "Add(zLocal")
    client = connect(lambda: debugger.target)
    assert client.ask("initialize", adapterID="opkit")["supportsHitConditionalBreakpoints"]
    client.ask("launch", stopOnEntry=True)
    wanted = [{"line": line, "hitCondition": "2"}, {"line": line, "hitCondition": "often"}]
    good, bad = client.ask("setBreakpoints", source={"path": path}, breakpoints=wanted)[
        "breakpoints"
    ]
    assert (good["verified"], bad["verified"]) == (True, False)
    assert "counts no hits" in bad["message"]
    client.ask("configurationDone")
    client.event("stopped")
    client.ask("continue", threadId=1)
    assert client.event("stopped")["hitBreakpointIds"] == [good["id"]]
    (one,) = debugger.session.breakpoints
    second = debugger.session.position
    assert second == sorted(one.places().tolist())[1]
    client.ask("continue", threadId=1)
    assert client.event("stopped")["reason"] != "breakpoint"
    client.ask("reverseContinue", threadId=1)
    client.event("stopped")
    # Going back it is the same hit, not the second one from the end.
    assert debugger.session.position == second
    client.ask("disconnect")


def test_a_tensor_opens_into_its_elements(
    connect: Any, record: Record, line_of: Callable[[Debugger, str], int]
) -> None:
    debugger = record()
    path = str(debugger.source)  # type: ignore[attr-defined]
    client = connect(lambda: debugger.target)
    client.ask("initialize", adapterID="opkit")
    client.ask("launch", stopOnEntry=True)
    line = line_of(debugger, "Add(zLocal")
    client.ask("setBreakpoints", source={"path": path}, breakpoints=[{"line": line}])
    client.ask("configurationDone")
    client.event("stopped")
    client.ask("continue", threadId=1)
    thread = client.event("stopped")["threadId"]
    (frame,) = client.ask("stackTrace", threadId=thread)["stackFrames"]
    tensor = variable(client, frame, "xLocal")
    # Tensors used to be one line of eight numbers.
    rows = client.ask("variables", variablesReference=tensor["variablesReference"])["variables"]
    assert [row["name"] for row in rows[:3]] == ["[0]", "[1]", "[2]"]
    assert [row["value"] for row in rows[:3]] == ["0", "1", "2"]
    part = client.ask(
        "variables", variablesReference=tensor["variablesReference"], start=5, count=2
    )["variables"]
    assert [(row["name"], row["value"]) for row in part] == [("[5]", "5"), ("[6]", "6")]
    client.ask("disconnect")


def test_a_fault_is_an_exception(connect: Any, record: Record) -> None:
    debugger = record(shift_in=" + 512")
    client = connect(lambda: debugger.target)
    client.ask("initialize")
    client.ask("launch", stopOnEntry=False)
    client.ask("setExceptionBreakpoints", filters=["finding"])
    client.ask("configurationDone")
    stopped = client.event("stopped")
    while stopped["reason"] != "exception":
        client.ask("continue", threadId=stopped["threadId"])
        stopped = client.event("stopped")
    info = client.ask("exceptionInfo", threadId=1)
    assert info["exceptionId"] == "OutOfBounds"
    client.ask("disconnect")


def test_what_cannot_be_done_is_answered_and_the_session_goes_on(
    connect: Any, record: Record
) -> None:
    debugger = record()
    client = connect(lambda: debugger.target)
    assert not client.request("threads")["success"]
    assert not client.request("juggle")["success"]
    client.ask("initialize")
    client.ask("launch")
    assert not client.request("scopes")["success"]
    answer = client.request("evaluate", expression="nothing", context="hover")
    assert "nothing" in answer["message"]
    (row,) = client.ask(
        "setBreakpoints", source={"path": "/elsewhere.cpp"}, breakpoints=[{"line": 3}]
    )["breakpoints"]
    assert not row["verified"] and "elsewhere.cpp" in row["message"]
    (row,) = client.ask("setFunctionBreakpoints", breakpoints=[{"name": "Muls"}])["breakpoints"]
    assert row["verified"]
    client.ask("disconnect")


def test_a_launch_that_fails_ends_the_session_with_its_message(connect: Any) -> None:
    def target() -> Target:
        raise UsageError("there is no such case")

    client = connect(target)
    client.ask("initialize")
    answer = client.request("launch")
    assert "no such case" in answer["message"]
    client.event("terminated")
    client.ask("disconnect")


def test_streams_end_with_the_client(record: Record) -> None:
    debugger = record()
    taken = io.BytesIO()
    serve_streams(lambda: debugger.target, io.BytesIO(b""), taken)
    assert taken.getvalue() == b""
    with pytest.raises(UsageError, match="no JSON"):
        serve_streams(lambda: debugger.target, io.BytesIO(b"Content-Length: 3\r\n\r\nabc"), taken)


@pytest.mark.parametrize(
    ("sent", "wrong"),
    [
        # The first used to be skipped without a word, the second to use up the memory.
        (b"nonsense\n", "'nonsense' is no header"),
        (b"Content-Length: 99999999\r\n\r\n", "a message of 99999999 bytes"),
        (b"Content-Length: 99999999999999\r\n\r\n", "the length '99999999999999'"),
        (b"Content-Length: -1\r\n\r\n", "the length '-1'"),
    ],
)
def test_what_is_no_message_is_refused(record: Record, sent: bytes, wrong: str) -> None:
    debugger = record()
    with pytest.raises(UsageError, match=wrong):
        serve_streams(lambda: debugger.target, io.BytesIO(sent), io.BytesIO())


def test_a_taken_port_is_said() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen(1)
        with pytest.raises(UsageError, match="cannot be served"):
            serve_port(lambda: pytest.fail("started"), other.getsockname()[1], lambda _: None)


def test_the_adapter_needs_no_socket(record: Record) -> None:
    debugger = record()
    sent: list[dict[str, Any]] = []
    adapter = Adapter(lambda: debugger.target, sent.append)
    adapter.take({"seq": 1, "command": "initialize"})
    adapter.take({"seq": 2, "command": "terminate"})
    assert adapter.is_over
    assert [message["seq"] for message in sent] == list(range(1, len(sent) + 1))


def variable(client: Any, frame: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the row of a local variable, as the client is shown it."""
    scope = client.ask("scopes", frameId=frame["id"])["scopes"][0]
    rows = client.ask("variables", variablesReference=scope["variablesReference"])["variables"]
    (row,) = [row for row in rows if row["name"] == name]
    return dict(row)


def at_the_add(
    connect: Any, record: Record, line_of: Callable[[Debugger, str], int], **wanted: Any
) -> tuple[Client, Debugger, dict[str, Any], int]:
    """Return a client whose launch stands at its first Add, its frame and the Add's line."""
    debugger = record()
    path = str(debugger.source)  # type: ignore[attr-defined]
    client = connect(lambda: debugger.target)
    client.ask("initialize", adapterID="opkit")
    client.ask("launch", stopOnEntry=True)
    line = line_of(debugger, "Add(zLocal")
    client.ask("setBreakpoints", source={"path": path}, breakpoints=[{"line": line, **wanted}])
    client.ask("configurationDone")
    client.event("stopped")
    client.ask("continue", threadId=1)
    thread = client.event("stopped")["threadId"]
    (frame,) = client.ask("stackTrace", threadId=thread)["stackFrames"]
    return client, debugger, frame, line


def test_a_log_point_writes_and_does_not_stop(
    connect: Any, record: Record, line_of: Callable[[Debugger, str], int]
) -> None:
    client, debugger, _, _ = at_the_add(
        connect, record, line_of, logMessage="x begins with {xLocal[0]}, {{n}} {len(xLocal)}"
    )
    # Log points used to be taken for breakpoints.
    assert debugger.session.stop.reason == "end"
    events = [client.event("output")["output"] for _ in range(9)]
    begins = [64 * tile for tile in range(8)]
    assert sorted(events[1:]) == sorted(f"x begins with {n}, {{n}} 64\n" for n in begins)
    client.ask("reverseContinue", threadId=1)
    client.event("stopped")
    assert [client.event("output")["output"] for _ in range(8)] == events[:0:-1]
    client.ask("disconnect")


def test_a_log_point_of_a_condition_writes_where_it_holds(
    connect: Any, record: Record, line_of: Callable[[Debugger, str], int]
) -> None:
    wanted = {"logMessage": "{xLocal[0]}", "condition": "xLocal[0] > 400"}
    client, _, _, _ = at_the_add(connect, record, line_of, **wanted)
    client.event("output")
    assert client.event("output")["output"] == "448\n"
    client.ask("disconnect")


def test_memory_that_changes_stops_whatever_its_name_means_then(
    connect: Any, record: Record, line_of: Callable[[Debugger, str], int]
) -> None:
    client, debugger, frame, _ = at_the_add(connect, record, line_of)
    tensor = variable(client, frame, "xLocal")
    info = client.ask(
        "dataBreakpointInfo", variablesReference=tensor["variablesReference"], name="[5]"
    )
    assert info["description"] == "xLocal[5]" and info["accessTypes"] == ["write"]
    wanted = {"dataId": info["dataId"], "accessType": "write"}
    (row,) = client.ask("setDataBreakpoints", breakpoints=[wanted])["breakpoints"]
    client.ask("setBreakpoints", source={"path": str(debugger.source)}, breakpoints=[])  # type: ignore[attr-defined]
    client.ask("continue", threadId=1)
    assert client.event("stopped")["hitBreakpointIds"] == [row["id"]]
    # Two buffers a queue: xLocal is the other one in between, and this memory is written again
    # by the copy of two tiles later.
    (shown,) = client.ask("evaluate", expression=info["dataId"].split("/")[1], frameId=1)[
        "result"
    ].splitlines()[1:2]
    assert "133" in shown
    unknown = client.ask("dataBreakpointInfo", name="nothing", frameId=frame["id"])
    assert unknown["dataId"] is None and "nothing" in unknown["description"]
    client.ask("disconnect")


def test_memory_is_read_as_bytes(
    connect: Any, record: Record, line_of: Callable[[Debugger, str], int]
) -> None:
    client, _, frame, _ = at_the_add(connect, record, line_of)
    tensor = variable(client, frame, "xLocal")
    body = client.ask("readMemory", memoryReference=tensor["memoryReference"], offset=4, count=8)
    raw = base64.b64decode(body["data"])
    assert np.frombuffer(raw, np.float32).tolist() == [1.0, 2.0]
    body = client.ask(
        "readMemory", memoryReference=tensor["memoryReference"], offset=1 << 24, count=8
    )
    assert body["unreadableBytes"] == 8 and "data" not in body
    client.ask("disconnect")


def test_the_console_completes_commands_names_and_functions(
    connect: Any, record: Record, line_of: Callable[[Debugger, str], int]
) -> None:
    client, _, frame, _ = at_the_add(connect, record, line_of)

    def offered(text: str) -> list[str]:
        column = len(text) + 1
        found = client.ask("completions", text=text, column=column, frameId=frame["id"])["targets"]
        assert all(text[row["start"] :].startswith(text[-row["length"] :]) for row in found)
        return [row["label"] for row in found]

    assert offered("stepb") == ["stepback"]
    assert offered("print xLo") == ["xLocal"]
    assert offered("print max(abs(zLo") == ["zLocal"]
    assert "isnan" in offered("print is") and "print" not in offered("print p")
    client.ask("disconnect")


def test_a_restart_records_the_launch_again(connect: Any, record: Record) -> None:
    debuggers: list[Debugger] = []

    def target() -> Target:
        debuggers.append(record())
        return debuggers[-1].target

    client = connect(target)
    client.ask("initialize", adapterID="opkit")
    client.ask("launch", stopOnEntry=True)
    client.event("initialized")
    client.ask("setFunctionBreakpoints", breakpoints=[{"name": "Muls"}])
    client.ask("configurationDone")
    client.event("stopped")
    client.ask("continue", threadId=1)
    client.event("stopped")
    client.ask("restart")
    client.event("initialized")
    client.ask("configurationDone")
    assert client.event("stopped")["reason"] == "entry"
    # A breakpoint of the launch before must not be looked for in this one.
    assert len(debuggers) == 2 and debuggers[1].session.breakpoints == []
    assert debuggers[1].session.position == 0
    client.ask("setFunctionBreakpoints", breakpoints=[{"name": "Add"}])
    client.ask("continue", threadId=1)
    assert client.event("stopped")["reason"] == "breakpoint"
    client.ask("disconnect")
