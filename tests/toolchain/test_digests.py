"""Hashes of files: when the time of a file is enough, and when it is not."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

from opkit.toolchain.building.digests import FileDigests, FileStat

HOUR = 3600


def aged(path: Path) -> FileStat:
    os.utime(path, (time.time() - HOUR, time.time() - HOUR))
    stat = FileStat.of(str(path))
    assert stat is not None
    return stat


def test_a_hash_is_that_of_the_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"text")
    assert FileDigests().of(str(tmp_path / "a")) == hashlib.sha256(b"text").hexdigest()


def test_a_missing_file_and_a_folder_have_none(tmp_path: Path) -> None:
    assert FileDigests().of(str(tmp_path / "none")) is None
    assert FileDigests().of(str(tmp_path)) is None


def test_an_untouched_file_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("text")
    stat = aged(path)
    assert FileDigests({str(path): (stat, "remembered")}).of(str(path)) == "remembered"


def test_a_touched_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("text")
    stat = aged(path)
    path.write_text("next")
    digests = FileDigests({str(path): (stat, "remembered")})
    assert digests.of(str(path)) == hashlib.sha256(b"next").hexdigest()


def test_the_time_of_a_file_just_written_is_not_remembered(tmp_path: Path) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    for path in (new, old):
        path.write_text("text")
    aged(old)
    digests = FileDigests()
    assert digests.of(str(new)) == digests.of(str(old))
    assert set(digests.known()) == {str(old)}
