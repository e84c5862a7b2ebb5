"""Generated files on disk: nothing that a user wrote is ever lost."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

import pytest

from opkit.errors import UsageError
from opkit.scaffold import RECORD, FileStatus, write

PATH = PurePosixPath("op_kernel/add.cpp")


def generate(folder: Path, text: str) -> FileStatus:
    (status,) = write({PATH: text}, folder)
    return status


def test_a_first_run_creates_and_a_second_finds_everything_identical(tmp_path: Path) -> None:
    assert generate(tmp_path, "one\n").action == "create"
    assert (tmp_path / PATH).read_text() == "one\n"
    assert generate(tmp_path, "one\n").action == "identical"


def test_a_file_that_was_not_edited_is_updated(tmp_path: Path) -> None:
    generate(tmp_path, "one\n")
    assert generate(tmp_path, "two\n").action == "update"
    assert (tmp_path / PATH).read_text() == "two\n"


def test_an_edited_file_is_kept_and_the_new_text_lies_beside_it(tmp_path: Path) -> None:
    generate(tmp_path, "one\n")
    (tmp_path / PATH).write_text("mine\n")
    status = generate(tmp_path, "two\n")
    assert status.action == "conflict"
    assert status.new_text == PurePosixPath("op_kernel/add.cpp.new")
    assert (tmp_path / PATH).read_text() == "mine\n"
    assert (tmp_path / "op_kernel/add.cpp.new").read_text() == "two\n"


def test_an_edit_is_no_conflict_while_the_generated_text_is_the_same(tmp_path: Path) -> None:
    generate(tmp_path, "one\n")
    (tmp_path / PATH).write_text("mine\n")
    assert generate(tmp_path, "one\n").action == "skip"
    assert not (tmp_path / "op_kernel/add.cpp.new").exists()


def test_deleting_the_new_text_declines_it_until_it_changes(tmp_path: Path) -> None:
    generate(tmp_path, "one\n")
    (tmp_path / PATH).write_text("mine\n")
    generate(tmp_path, "two\n")
    assert generate(tmp_path, "two\n").action == "conflict"
    (tmp_path / "op_kernel/add.cpp.new").unlink()
    assert generate(tmp_path, "two\n").action == "skip"
    assert generate(tmp_path, "three\n").action == "conflict"


def test_a_merged_file_ends_the_conflict(tmp_path: Path) -> None:
    generate(tmp_path, "one\n")
    (tmp_path / PATH).write_text("mine\n")
    generate(tmp_path, "two\n")
    (tmp_path / PATH).write_text("two\n")
    assert generate(tmp_path, "two\n").action == "identical"
    assert not (tmp_path / "op_kernel/add.cpp.new").exists()


def test_what_is_new_is_merged_into_an_edited_file(tmp_path: Path) -> None:
    lines = [f"line {number}\n" for number in range(8)]
    generate(tmp_path, "".join(lines))
    (tmp_path / PATH).write_text("".join(["mine\n", *lines[1:]]))
    assert generate(tmp_path, "".join([*lines, "new\n"])).action == "merge"
    assert (tmp_path / PATH).read_text() == "".join(["mine\n", *lines[1:], "new\n"])
    assert not (tmp_path / "op_kernel/add.cpp.new").exists()
    assert generate(tmp_path, "".join([*lines, "new\n"])).action == "skip"


def test_what_is_generated_no_longer_goes_unless_it_was_edited(tmp_path: Path) -> None:
    other = PurePosixPath("op_kernel/sub.cpp")
    write({PATH: "one\n", other: "two\n"}, tmp_path)
    (tmp_path / other).write_text("mine\n")
    actions = {str(s.path): s.action for s in write({PurePosixPath("new.cpp"): ""}, tmp_path)}
    assert actions == {"new.cpp": "create", str(PATH): "remove", str(other): "stale"}
    assert not (tmp_path / PATH).exists()
    assert (tmp_path / other).read_text() == "mine\n"


def test_a_file_that_was_there_before_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "op_kernel").mkdir()
    (tmp_path / PATH).write_text("mine\n")
    assert generate(tmp_path, "one\n").action == "conflict"
    assert (tmp_path / PATH).read_text() == "mine\n"


def test_scripts_are_executable(tmp_path: Path) -> None:
    write({PurePosixPath("build.sh"): "#!/bin/sh\n"}, tmp_path)
    assert os.access(tmp_path / "build.sh", os.X_OK)


def test_nothing_but_the_files_and_the_record_is_left(tmp_path: Path) -> None:
    generate(tmp_path, "one\n")
    found = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert found == {str(PATH), str(RECORD)}


def test_a_damaged_record_is_an_error_and_not_a_guess(tmp_path: Path) -> None:
    generate(tmp_path, "one\n")
    (tmp_path / RECORD).write_text("{")
    with pytest.raises(UsageError, match="damaged"):
        generate(tmp_path, "two\n")
    assert (tmp_path / PATH).read_text() == "one\n"


def test_a_folder_that_cannot_be_made_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        generate(tmp_path / "file" / "project", "one\n")
