"""Sandboxes: what is seen inside, and what is said where there are none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from opkit.errors import SetupError
from opkit.judging import Sandbox, require_sandbox, sandbox_fault

needs_sandbox = pytest.mark.skipif(bool(sandbox_fault()), reason=sandbox_fault() or "there is one")


def _inside(text: str, sandbox: Sandbox) -> str:
    argv = sandbox([sys.executable, "-c", text])
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


@needs_sandbox
def test_only_what_is_given_is_there_and_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("outside")
    given = tmp_path / "given"
    given.mkdir()
    (given / "file").write_text("inside")
    text = f"""
import os, socket
print(open("/given/file").read())
for path in ({str(tmp_path / "secret")!r}, "/etc/passwd"):
    print(os.path.exists(path))
for path in ("/given/file", "/usr/new", "/new"):
    try:
        open(path, "w")
        print("written")
    except OSError as error:
        print(error.strerror)
print([name for _, name in socket.if_nameindex()])
print(os.getpid() < 10)
"""
    assert _inside(text, Sandbox({"/given": given})).splitlines() == [
        "inside",
        *("False", "False"),
        *["Read-only file system"] * 3,
        "['lo']",
        "True",
    ]
    assert (given / "file").read_text() == "inside"


@needs_sandbox
def test_the_environment_stays_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "1")
    text = "import os; print(os.environ.get('A_SECRET'), os.environ.get('GIVEN'))"
    assert _inside(text, Sandbox(environment={"GIVEN": "2"})) == "None 2\n"


def test_a_machine_without_bubblewrap_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    sandbox_fault.cache_clear()
    try:
        with pytest.raises(SetupError, match="bubblewrap") as caught:
            require_sandbox()
    finally:
        monkeypatch.undo()
        sandbox_fault.cache_clear()
    assert "--no-sandbox" in str(caught.value)
