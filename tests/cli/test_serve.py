"""`opkit serve` and `opkit dash`, as users start and stop them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from opkit.cli import group
from opkit.cli.console import run_guarded
from opkit.toolchain import OPKIT_COMMAND

pytest.importorskip("fastapi")
pytest.importorskip("sqlalchemy")

PROGRAM = 'def scale(x: "float32[N]"):\n    return x * 3.0\n'
CONFIG = """
[[operators]]
name = "scale"
[operators.versions]
v1 = { source = "scale.py" }
[operators.limits]
attempt_seconds = 60
call_seconds = 60
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "scale.py").write_text(PROGRAM)
    (tmp_path / "service.toml").write_text(CONFIG)
    return tmp_path / "service.toml"


def start(*arguments: str | Path) -> tuple[subprocess.Popen[str], str]:
    """Start a command that serves, and return it with its address."""
    command = [*OPKIT_COMMAND, *map(str, arguments), "--json", "--port", "0"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    text = ""
    for line in process.stdout:
        text += line
        if line.startswith("}"):
            break
    return process, json.loads(text)["address"]


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=60) as answer:
        content = answer.read()
        is_json = answer.headers["Content-Type"] == "application/json"
        return json.loads(content) if is_json else content


def wait_until_ready(address: str) -> None:
    for _ in range(600):
        with contextlib.suppress(urllib.error.HTTPError):
            if get(f"{address}/v2/health/ready") == {"ready": True}:
                return
        time.sleep(0.1)
    pytest.fail("the service is not ready after a minute")


@pytest.fixture
def served(config: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    process, address = start("serve", config)
    yield process, address
    process.kill()
    process.wait()


def test_it_answers_and_ends_with_0_when_it_is_told_to(
    served: tuple[subprocess.Popen[str], str],
) -> None:
    process, address = served
    wait_until_ready(address)
    request = {"inputs": [{"name": "x", "shape": [2], "datatype": "FP32", "data": [1, 2]}]}
    posted = urllib.request.Request(
        f"{address}/v2/models/scale/infer", json.dumps(request).encode(), method="POST"
    )
    answer = get(posted)  # type: ignore[arg-type]
    assert answer["outputs"][0]["data"] == [3, 6]
    dash, page = start("dash", "--service", address)
    assert b"opkit-dash-data" in get(page)
    assert (
        get(page.replace("/dash", "/api/state"))["service"]["operators"][0]["operator"] == "scale"
    )
    for each in (dash, process):
        each.send_signal(signal.SIGTERM)
        assert each.wait(timeout=60) == 0


def test_a_call_that_is_under_way_is_answered_when_the_service_is_told_to_stop(
    served: tuple[subprocess.Popen[str], str],
) -> None:
    process, address = served
    wait_until_ready(address)
    item = {"name": "x", "shape": [2], "datatype": "FP32", "data": [1, 2]}
    body = json.dumps({"inputs": [item]}).encode()
    with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), 60) as stream:
        head = b"POST /v2/models/scale/infer HTTP/1.1\r\nHost: localhost\r\n"
        stream.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body[:5])
        # Whoever answers the next request has begun this one.
        assert get(f"{address}/v2/health/live") == {"live": True}
        process.send_signal(signal.SIGTERM)
        stream.sendall(body[5:])
        answer = b""
        while chunk := stream.recv(1 << 16):
            answer += chunk
    assert answer.startswith(b"HTTP/1.1 200")
    assert b'"data":[3.0,6.0]' in answer
    assert process.wait(timeout=60) == 0


def test_a_killed_service_leaves_no_worker(served: tuple[subprocess.Popen[str], str]) -> None:
    process, address = served
    assert get(f"{address}/v2/health/live") == {"live": True}
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    pids = [
        int(pid)
        for task in children.parent.parent.iterdir()
        for pid in (task / "children").read_text().split()
    ]
    assert pids
    process.kill()
    process.wait()
    for pid in pids:
        # Ended by the kernel with its parent; a zombie for nobody, so it is simply gone.
        for _ in range(1000):
            try:
                os.kill(pid, 0)
                state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            except (ProcessLookupError, FileNotFoundError):
                break
            if state == "Z":
                break
            time.sleep(0.02)
        else:
            pytest.fail(f"worker {pid} goes on without its service")


def test_check_loads_every_version_and_ends(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_guarded(group, ["serve", str(config), "--check", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is True
    assert report["operators"][0]["versions"][0]["ready"] is True


def test_a_version_that_does_not_load_is_named(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (config.parent / "scale.py").write_text("def scale(x):\n    return x\n")
    assert run_guarded(group, ["serve", str(config), "--check"]) == 2
    assert "scale.py does not load" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("colour = 1\n", 2, "colour: Extra inputs are not permitted"),
        (CONFIG.replace("scale.py", "none.py"), 2, "no project, artifact folder"),
        ('[http]\nhost = "0.0.0.0"\n', 2, "there are no tokens"),
        ('[[operators]]\nname = "empty"\n', 2, "empty has no versions"),
    ],
)
def test_what_is_wrong_with_the_configuration_is_said(
    config: Path, capsys: pytest.CaptureFixture[str], text: str, code: int, message: str
) -> None:
    config.write_text(text)
    assert run_guarded(group, ["serve", str(config)]) == code
    assert message in capsys.readouterr().err


def test_a_port_in_use_is_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert run_guarded(group, ["dash", "--port", port]) == 2
    assert "cannot be served: Address already in use" in capsys.readouterr().err


def test_without_the_extra_it_is_named(config: Path) -> None:
    script = (
        "import sys\n"
        "sys.modules['sqlalchemy'] = sys.modules['pydantic'] = sys.modules['starlette'] = None\n"
        "from opkit.cli import group\nfrom opkit.cli.console import run_guarded\n"
        "raise SystemExit(run_guarded(group, sys.argv[1:]))"
    )
    for arguments in (["serve", str(config)], ["dash"]):
        command = [sys.executable, "-c", script, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 3, done.stderr
        assert "pip install 'opkit[service]'" in done.stderr
