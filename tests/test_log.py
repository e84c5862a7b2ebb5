"""The log: lines that both writers agree on, levels, files, filters."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from opkit import log
from opkit.cli import group
from opkit.cli.console import run_guarded

VENDOR_LINE = (
    "[ERROR] RUNTIME(25180,python):2023-10-11-10:01:02.123.456 [stream.cc:42]25180 Create:failed"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty log folder, with every level on."""
    monkeypatch.setenv("ASCEND_PROCESS_LOG_PATH", str(tmp_path / "log"))
    monkeypatch.setenv("ASCEND_GLOBAL_LOG_LEVEL", "0")
    monkeypatch.delenv("ASCEND_SLOG_PRINT_TO_STDOUT", raising=False)
    return tmp_path / "log"


def show(*arguments: str) -> int:
    return run_guarded(group, ["log", *arguments])


def test_a_record_comes_back_as_it_was_written(folder: Path) -> None:
    log.warning("TOOLCHAIN", 'two\nlines, a \\n that is none, "quotes" | {', files=3, of="x|y")
    (record,) = log.read_log()
    assert record.level == "WARNING"
    assert record.component == "TOOLCHAIN"
    assert record.message == 'two\nlines, a \\n that is none, "quotes" | {'
    assert record.fields == {"files": 3, "of": "x|y"}
    assert record.thread == threading.get_native_id()


def test_files_lie_where_the_vendors_lie(folder: Path) -> None:
    log.error("CLI", "x")
    (path,) = folder.rglob("*.log")
    assert path.parent == folder / "debug" / "plog"
    assert path.name.startswith("plog-")


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("0", ["DEBUG", "INFO", "WARNING", "ERROR"]),
        ("1", ["INFO", "WARNING", "ERROR"]),
        ("2", ["WARNING", "ERROR"]),
        ("3", ["ERROR"]),
        ("4", []),
        ("7", ["ERROR"]),
        ("", ["ERROR"]),
    ],
)
def test_the_level_says_what_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, level: str, expected: list[str]
) -> None:
    monkeypatch.setenv("ASCEND_GLOBAL_LOG_LEVEL", level)
    for write in (log.debug, log.info, log.warning, log.error):
        write("CLI", "x")
    assert [record.level for record in log.read_log()] == expected


def test_lines_go_to_the_screen_instead_of_a_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ASCEND_SLOG_PRINT_TO_STDOUT", "1")
    log.info("CLI", "seen")
    record = log.parse_line(capsys.readouterr().out)
    assert record is not None and record.message == "seen"
    assert not folder.exists()


def test_the_work_path_holds_the_log_where_no_log_path_is_set(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ASCEND_PROCESS_LOG_PATH")
    monkeypatch.setenv("ASCEND_WORK_PATH", str(tmp_path))
    assert log.log_folder() == tmp_path / "log"


def test_a_log_that_cannot_be_written_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ASCEND_PROCESS_LOG_PATH", str(tmp_path / "file"))
    log.error("CLI", "lost")


def test_the_vendors_own_lines_are_read() -> None:
    record = log.parse_line(VENDOR_LINE)
    assert record is not None
    assert record.time == "2023-10-11T10:01:02.123456"
    assert (record.component, record.where, record.pid) == ("RUNTIME", "stream.cc:42", 25180)


def test_the_emulator_writes_the_same_lines(folder: Path) -> None:
    """In a process of its own: the emulator opens its log when it is loaded."""
    script = (
        "import opkit.runtime as runtime, opkit.log as log, ctypes\n"
        "library = runtime.load_emulator()\n"
        "library.opkit_write_log(3, b'EMULATOR', b'gelu.cpp:7', b'two\\nlines \\\\ end')\n"
        "library.opkit_write_log(0, b'ACL', b'', b'quiet')\n"
        "log.write(3, 'EMULATOR', 'two\\nlines \\\\ end', where='gelu.cpp:7')\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    native, quiet, python = log.read_log()
    assert native.message == python.message == "two\nlines \\ end"
    assert (native.level, native.where, native.process) == (
        python.level,
        python.where,
        python.process,
    )
    assert (quiet.level, quiet.component, quiet.where) == ("DEBUG", "ACL", "")


def test_follow_yields_what_is_written_later(folder: Path) -> None:
    log.error("CLI", "before")
    seen: list[str] = []
    records = log.follow(is_over=lambda: len(seen) == 2, pause_seconds=0.001)
    for text in ("one", "two"):
        log.error("CLI", text)
    for record in records:
        seen.append(record.message)
    assert seen == ["one", "two"]


def test_the_command_filters(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log.debug("TOOLCHAIN", "g++ -c x.cpp")
    log.error("TOOLCHAIN", "does not compile")
    log.error("CLI", "gives up")

    def messages(*arguments: str) -> list[str]:
        assert show("--json", *arguments) == 0
        return [row["message"] for row in json.loads(capsys.readouterr().out)]

    assert messages() == ["g++ -c x.cpp", "does not compile", "gives up"]
    assert messages("--level", "error") == ["does not compile", "gives up"]
    assert messages("--component", "toolchain") == ["g++ -c x.cpp", "does not compile"]
    assert messages("--grep", "comp[il]+e") == ["does not compile"]
    assert messages("-n", "1") == ["gives up"]
    assert messages("--pid", "1") == []
    assert len(messages("--since", "1h")) == 3
    assert messages("--since", "2999-01-01") == []


def test_the_command_says_what_is_wrong(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert show("--grep", "(") == 2
    assert show("--since", "yesterday") == 2
    # They were exit code 70.
    assert show("--since", "99999999999999999999d") == 2
    assert show("--since", "\u00b2d") == 2
    assert show("--path", str(folder / "none")) == 2
    assert "no such folder" in capsys.readouterr().err


def test_an_error_of_a_command_is_logged(folder: Path) -> None:
    assert run_guarded(group, ["profile", "no_such_project"]) == 2
    (record,) = (record for record in log.read_log() if record.component == "CLI")
    assert record.fields["exit_code"] == 2
