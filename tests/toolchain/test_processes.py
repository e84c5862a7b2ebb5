"""Commands that run side by side, and that all end."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from opkit.errors import SetupError
from opkit.toolchain.building.processes import Cancelled, ProcessGroup


def test_output_and_exit_code_come_back(tmp_path: Path) -> None:
    argv = ["sh", "-c", "pwd; echo wrong >&2; exit 3"]
    assert ProcessGroup().run(argv, cwd=tmp_path) == (3, f"{tmp_path}\nwrong\n")


def test_messages_are_asked_for_in_english(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert ProcessGroup().run(["sh", "-c", "echo $LC_ALL"], cwd=tmp_path) == (0, "C\n")


def test_a_program_that_is_not_there_is_a_setup_error(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no-such-program cannot be started"):
        ProcessGroup().run(["no-such-program"], cwd=tmp_path)


def test_stop_ends_a_command_with_its_children(tmp_path: Path) -> None:
    group = ProcessGroup()
    outcome: list[type[BaseException]] = []

    def run() -> None:
        try:
            group.run(["sh", "-c", "echo up > started; sleep 600 & wait"], cwd=tmp_path)
        except Cancelled as stopped:
            outcome.append(type(stopped))

    thread = threading.Thread(target=run)
    thread.start()
    deadline = time.monotonic() + 30
    while not (tmp_path / "started").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    group.stop()
    # The sleeping child holds the output pipe: only its death lets the thread end.
    thread.join(timeout=30)
    assert outcome == [Cancelled]


def test_after_stop_nothing_starts(tmp_path: Path) -> None:
    group = ProcessGroup()
    group.stop()
    with pytest.raises(Cancelled):
        group.run(["touch", "made"], cwd=tmp_path)
    assert not (tmp_path / "made").exists()
