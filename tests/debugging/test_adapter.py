"""The Debug Adapter Protocol, as an editor speaks it."""

from __future__ import annotations

import io
import json
import socket
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

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
    scope = client.ask("scopes", frameId=frame["id"])["scopes"][0]
    tensors = client.ask("variables", variablesReference=scope["variablesReference"])["variables"]
    (tensor,) = [row for row in tensors if row["name"] == "xLocal"]
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
