"""`opkit debug --dap` against the protocol's own schema, over random sessions.

    python benchmarks/dap.py --schema debugAdapterProtocol.json gelu_custom --case NAME

The schema is microsoft/debug-adapter-protocol's. Each session starts the adapter anew, sets
breakpoints and walks at random. Counted: messages that are not valid, answers out of order, a
capability that is announced and refused, motions that no stop follows. Exit 1 if there is any.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from jsonschema import Draft4Validator

LONGEST_SECONDS = 120
MOTIONS = (
    *("next", "stepIn", "stepOut", "stepBack", "continue", "reverseContinue", "goto", "restart"),
)
ANNOUNCED = {
    "supportsStepBack": ("stepBack", "reverseContinue"),
    "supportsGotoTargetsRequest": ("gotoTargets",),
    "supportsRestartRequest": ("restart",),
    "supportsCompletionsRequest": ("completions",),
    "supportsReadMemoryRequest": ("readMemory",),
    "supportsDataBreakpoints": ("dataBreakpointInfo", "setDataBreakpoints"),
}


class Client:
    """Speaks to one adapter and keeps what is wrong with its answers."""

    def __init__(self, schema: dict[str, Any], command: list[str]) -> None:
        self.schema = schema
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.problems: list[str] = []
        self.events: list[dict[str, Any]] = []
        self.messages = self.sent = self.last = 0
        self.said = ""
        # What never answers is ended, and is a problem.
        self.timer = threading.Timer(LONGEST_SECONDS, self.process.kill)
        self.timer.start()

    def check(self, name: str, message: dict[str, Any]) -> None:
        if name not in self.schema["definitions"]:
            self.problems.append(f"the protocol has no {name}")
            return
        given = {"$ref": f"#/definitions/{name}", "definitions": self.schema["definitions"]}
        for error in Draft4Validator(given).iter_errors(message):
            self.problems.append(f"{name}: {'/'.join(map(str, error.path))}: {error.message[:120]}")

    def read(self) -> dict[str, Any]:
        out: IO[bytes] | None = self.process.stdout
        assert out is not None
        length = 0
        while line := out.readline().strip():
            length = int(line.partition(b":")[2])
        if not length:
            raise EOFError
        message: dict[str, Any] = json.loads(out.read(length))
        self.messages += 1
        if message["seq"] <= self.last:
            self.problems.append(f"seq {message['seq']} after {self.last}")
        self.last = message["seq"]
        if message["type"] == "event":
            self.check(f"{message['event'][0].upper()}{message['event'][1:]}Event", message)
            self.events.append(message)
        return message

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        self.sent += 1
        self.said = command
        request = {"seq": self.sent, "type": "request", "command": command, "arguments": arguments}
        raw = json.dumps(request).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(raw) + raw)
        self.process.stdin.flush()
        while (answer := self.read())["type"] == "event":
            pass
        if (answer["request_seq"], answer.get("command")) != (self.sent, command):
            self.problems.append(f"{command}: answered as {answer}"[:200])
        is_known = answer["success"]
        name = f"{command[0].upper()}{command[1:]}Response" if is_known else "ErrorResponse"
        self.check(name, answer)
        return answer

    def stopped(self) -> dict[str, Any] | None:
        """Return the event that ends a motion: a stop, or the session's end."""
        while True:
            for at, event in enumerate(self.events):
                if event["event"] in ("stopped", "terminated"):
                    return self.events.pop(at)
            self.read()


def variables(client: Client, reference: int, depth: int = 0) -> Iterator[dict[str, Any]]:
    answer = client.ask("variables", variablesReference=reference)
    for row in answer.get("body", {}).get("variables", [])[:6]:
        yield row
        if row["variablesReference"] and depth < 2:
            yield from variables(client, row["variablesReference"], depth + 1)


def session(client: Client, kernel: Path, pick: random.Random, steps: int) -> None:
    lines = len(kernel.read_text("utf-8").splitlines())
    source = {"path": str(kernel.resolve())}
    able = client.ask("initialize", adapterID="opkit", linesStartAt1=True)["body"]
    client.ask("launch", stopOnEntry=True)
    asked = [{"line": pick.randint(1, lines)} for _ in range(3)]
    asked += [{"line": pick.randint(1, lines), "hitCondition": pick.choice([">2", "3", "often"])}]
    asked += [{"line": pick.randint(1, lines), "logMessage": "tile {tile}"}]
    asked += [{"line": pick.randint(1, lines), "condition": pick.choice(["block == 1", "1 +"])}]
    client.ask("setBreakpoints", source=source, breakpoints=asked)
    client.ask("setExceptionBreakpoints", filters=pick.choice([[], ["nan"]]))
    client.ask("configurationDone")
    ended = client.stopped()
    seen: list[dict[str, Any]] = []
    for _ in range(steps):
        if ended is not None and ended["event"] == "terminated":
            break
        threads = client.ask("threads")["body"]["threads"]
        thread = pick.choice(threads)["id"]
        frames = client.ask("stackTrace", threadId=thread).get("body", {}).get("stackFrames", [])
        if frames:
            scopes = client.ask("scopes", frameId=frames[0]["id"])["body"]["scopes"]
            for scope in scopes:
                seen += variables(client, scope["variablesReference"])
        name = pick.choice(seen)["name"] if seen else "x"
        client.ask("evaluate", expression=pick.choice([name, f"{name}[0]", "1 +", "why"]))
        client.ask("completions", text=name[:1], column=2)
        memory = next((row["memoryReference"] for row in seen if row.get("memoryReference")), "")
        answer = client.ask("readMemory", memoryReference=memory or "none", count=64)
        if memory and able.get("supportsReadMemoryRequest") and not answer["success"]:
            client.problems.append(f"readMemory of {memory} is refused")
        info = client.ask("dataBreakpointInfo", name=name, variablesReference=0)
        data = info.get("body", {}).get("dataId") if info["success"] else None
        client.ask("setDataBreakpoints", breakpoints=[{"dataId": data}] if data else [])
        client.ask(pick.choice(["disassemble", "noSuchRequest", "source"]), memoryReference="0")
        motion = pick.choice(MOTIONS)
        extra: dict[str, Any] = {}
        if motion == "goto":
            found = client.ask("gotoTargets", source=source, line=pick.randint(1, lines))
            targets = found.get("body", {}).get("targets", [])
            if not targets:
                continue
            extra = {"targetId": targets[0]["id"]}
        arguments = {} if motion == "restart" else {"threadId": thread}
        answer = client.ask(motion, **arguments, **extra)
        if answer["success"] and motion == "restart":
            # The client then sends its breakpoints again, here none.
            client.ask("configurationDone")
        if answer["success"]:
            ended = client.stopped()
    for flag, commands in ANNOUNCED.items():
        if not able.get(flag):
            client.problems.append(f"{flag} is not announced: {', '.join(commands)}")
    client.ask("disconnect")
    assert client.process.stdin is not None
    client.process.stdin.close()
    if client.process.wait(60) != 0:
        client.problems.append(f"the adapter ended with {client.process.returncode}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schema", type=Path, required=True)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("project", type=Path)
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what opkit debug takes")
    options = parser.parse_args()
    schema = json.loads(options.schema.read_text("utf-8"))
    (kernel, *_) = sorted((options.project / "op_kernel").glob("*.cpp"))
    command = [sys.executable, "-m", "opkit", "debug", str(options.project), *options.arguments]
    problems: dict[str, int] = {}
    messages = 0
    for number in range(options.sessions):
        client = Client(schema, [*command, "--dap"])
        try:
            session(client, kernel, random.Random(number), options.steps)
        except (EOFError, KeyError) as err:
            client.problems.append(f"no answer or event after {client.said}: {err!r}")
        finally:
            client.timer.cancel()
            client.process.kill()
            client.process.wait()
        messages += client.messages
        for problem in client.problems:
            kind = re.sub(r"\d+", "N", problem)
            problems[kind] = problems.get(kind, 0) + 1
    for problem, count in sorted(problems.items(), key=lambda item: -item[1]):
        print(f"{count:>5}  {problem}")
    total = sum(problems.values())
    print(f"{options.sessions} sessions, {messages} messages: {total} problems")
    raise SystemExit(1 if problems else 0)


if __name__ == "__main__":
    main()
