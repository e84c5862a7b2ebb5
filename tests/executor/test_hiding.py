"""Files that workers cannot read: the others stay readable, and other processes out of reach."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from opkit.executor import LocalExecutor, Work, can_hide_files, folder_of

pytestmark = pytest.mark.skipif(not can_hide_files(), reason="this kernel has no Landlock")

READ = """
import os, sys
from pathlib import Path
from opkit.executor.hiding import hide_files
assert hide_files([Path(name) for name in sys.argv[1].split(":")], but=[Path(sys.argv[2])])
for name in sys.argv[3:]:
    try:
        print(Path(name).read_text()[:5])
    except PermissionError:
        print("refused")
"""


def read(hidden: list[Path], kept: Path, *files: Path | str) -> list[str]:
    """Return what a process reads of files that has hidden some from itself."""
    argv = [sys.executable, "-c", READ, ":".join(map(str, hidden)), str(kept), *map(str, files)]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("golden.py", "kernel.cpp", "tests/x.bin", "tests/build/lib.so", "build/lib.so"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("there")
    (tmp_path / "link").symlink_to("golden.py")
    (tmp_path / "way").symlink_to(".")
    return tmp_path


def test_what_is_hidden_cannot_be_read_by_any_name_and_the_rest_can(project: Path) -> None:
    hidden = [project / "golden.py", project / "tests", project / "nowhere"]
    files = ("golden.py", "link", "way/golden.py", "tests/x.bin", "kernel.cpp", "build/lib.so")
    found = read(hidden, project / "build", *(project / file for file in files))
    assert found == [*["refused"] * 4, "there", "there"]


def test_a_kept_folder_inside_a_hidden_one_can_be_read(project: Path) -> None:
    kept = project / "tests" / "build"
    found = read([project / "tests"], kept, kept / "lib.so", project / "tests" / "x.bin")
    assert found == ["there", "refused"]


def test_a_hidden_file_cannot_be_moved_to_where_it_could_be_read(project: Path) -> None:
    move = f"""
import os
from pathlib import Path
from opkit.executor.hiding import hide_files
hide_files([Path({str(project / "golden.py")!r})])
for move, to in ((os.link, "build/g"), (os.rename, "build/g"), (os.rename, "other.py")):
    try:
        move({str(project / "golden.py")!r}, {str(project)!r} + "/" + to)
        print(open({str(project)!r} + "/" + to).read())
    except OSError as error:
        print("refused")
"""
    argv = [sys.executable, "-c", move]
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["refused"] * 3


def test_the_memory_of_who_asked_cannot_be_read(project: Path) -> None:
    found = read([project / "golden.py"], project / "build", "/proc/self/environ", "/proc/1/mem")
    assert found[1:] == ["refused"]
    attach = """
import ctypes, os, sys
from pathlib import Path
from opkit.executor.hiding import hide_files
hide_files([Path(sys.argv[1])])
libc = ctypes.CDLL(None, use_errno=True)
print("refused" if libc.ptrace(16, os.getppid(), 0, 0) == -1 else "attached")
"""
    argv = [sys.executable, "-c", attach, str(project / "golden.py")]
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["refused"]


def test_workers_read_their_folders_and_nothing_that_is_hidden(
    make_work: Callable[..., Work], project: Path
) -> None:
    (project / "tests" / "text").write_text("words")
    folders = {"data": folder_of(project / "tests")}
    work = make_work(folders=folders, hidden=(project / "tests", project / "golden.py"))
    with LocalExecutor(1).open(work) as crew:
        assert crew.run([("read", 0)]) == ["words"]
