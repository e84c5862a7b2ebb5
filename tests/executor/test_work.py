"""Folders that travel: known by their content, packed and unpacked once."""

from __future__ import annotations

from pathlib import Path

import pytest

from opkit.errors import KernelFault, OpkitError, UsageError
from opkit.executor import folder_of
from opkit.executor.dask_tasks import _unpacked
from opkit.executor.work import pack, portable_error


def test_a_folder_is_known_by_its_content_and_not_by_its_place(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "build").mkdir(parents=True)
        (tmp_path / name / "text").write_text("same")
        (tmp_path / name / "build" / "result").write_text(name)
    one, two = (folder_of(tmp_path / name, left_out=["build"]) for name in ("one", "two"))
    assert one.digest() == two.digest()
    (tmp_path / "two" / "text").chmod(0o755)
    assert one.digest() != two.digest()


def test_a_folder_arrives_as_it_was_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "source" / "deep").mkdir(parents=True)
    (tmp_path / "source" / "deep" / "run.sh").write_text("#!/bin/sh")
    (tmp_path / "source" / "deep" / "run.sh").chmod(0o755)
    folder = folder_of(tmp_path / "source")
    place = _unpacked(folder.digest(), pack(folder))
    assert (place / "deep" / "run.sh").read_text() == "#!/bin/sh"
    assert (place / "deep" / "run.sh").stat().st_mode & 0o111
    # A second time nothing is unpacked: what is there is taken.
    assert _unpacked(folder.digest(), b"") == place


def test_an_error_goes_through_a_pipe_as_itself_or_as_what_it_said() -> None:
    usage = portable_error(UsageError("wrong", help="do this"), "traceback")
    assert isinstance(usage, UsageError) and usage.help == "do this"
    # KernelFault cannot be made of its message alone.
    fault = portable_error(KernelFault("boom", category="Crash"), "the traceback")
    assert isinstance(fault, OpkitError) and "boom" in str(fault)
