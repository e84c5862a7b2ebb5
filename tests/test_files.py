"""Files that the user names, whatever stands at the path."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import click
import pytest

from opkit.cli import group
from opkit.cli.console import write_text
from opkit.errors import SetupError, UsageError
from opkit.files import write_aside, written_aside

from .all_commands import all_commands

FULL, NULL = os.makedev(1, 7), os.makedev(1, 3)


def device(path: Path, number: int) -> Path:
    """Make a device of our own: the machine's is not to be tried on."""
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, number)
        os.close(os.open(path, os.O_WRONLY))
    except OSError as error:
        pytest.skip(f"no device can be made here: {error.strerror}")
    return path


def test_a_device_is_written_through_and_stays(tmp_path: Path) -> None:
    # It used to be replaced by a file: as root, the machine's own.
    null = device(tmp_path / "null", NULL)
    write_aside(null, b"text")
    assert stat.S_ISCHR(null.stat().st_mode)
    assert list(tmp_path.iterdir()) == [null]


def test_a_full_device_is_an_error_of_the_machine_and_stays(tmp_path: Path) -> None:
    full = device(tmp_path / "full", FULL)
    with pytest.raises(SetupError, match="full: cannot be written: No space left"):
        write_text(full, "text")
    assert stat.S_ISCHR(full.stat().st_mode)


def test_a_pipe_hands_the_content_to_its_reader(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_text(pipe, "all of it\n")
    reader.join()
    assert read == ["all of it\n"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_stays_and_its_target_is_written(tmp_path: Path, is_there: bool) -> None:
    (tmp_path / "far").mkdir()
    target = tmp_path / "far" / "target"
    if is_there:
        target.write_text("before")
    link = tmp_path / "link"
    link.symlink_to(target)
    write_text(link, "after")
    assert link.is_symlink()
    assert target.read_text() == "after"
    assert not target.is_symlink()
    assert list((tmp_path / "far").iterdir()) == [target]


def test_a_link_to_a_device_leaves_both(tmp_path: Path) -> None:
    null = device(tmp_path / "null", NULL)
    link = tmp_path / "link"
    link.symlink_to(null)
    write_text(link, "text")
    assert link.is_symlink()
    assert stat.S_ISCHR(null.stat().st_mode)


def test_a_folder_is_a_usage_error_and_keeps_its_content(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "kept").touch()
    with pytest.raises(UsageError, match="folder: cannot be written: Is a directory"):
        write_text(folder, "text")
    assert [path.name for path in folder.iterdir()] == ["kept"]


def test_nothing_is_written_through_where_the_content_fails(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ValueError, match="half"), written_aside(pipe) as aside:
        aside.write_text("half")
        raise ValueError("half")
    assert stat.S_ISFIFO(pipe.stat().st_mode)


HOW_WRITTEN = {
    "check --junit": "write_text",
    "check --html": "write_text",
    "check --sarif": "write_text",
    "check --write-baseline": "write_text",
    "compile --html": "write_text",
    "profile --html": "write_text",
    "profile --trace": "write_text",
    "test --html": "write_text",
    "test --junit": "write_text",
    "tune --html": "write_text",
    # Lines are added behind what is there: nothing takes the path's place.
    "compat build --resume": "appended",
    "tune --state": "appended",
    # A database: what is no regular file is refused.
    "dash --history": "database",
    # Read.
    "gen --from-opdef": "read",
}


def test_it_is_known_how_each_option_that_names_a_file_writes_it() -> None:
    found = set()
    for name, command in all_commands(group, ""):
        for option in command.params:
            kind = option.type
            is_file = isinstance(kind, click.Path) and not kind.dir_okay and not kind.exists
            if isinstance(option, click.Option) and is_file:
                found.add(f"{name} {option.opts[-1]}")
    assert found == set(HOW_WRITTEN)
