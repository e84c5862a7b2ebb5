"""Projects as libraries that programs link: they carry their kernels inside."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from opkit import emulator
from opkit.errors import UsageError
from opkit.toolchain import (
    LIBRARY_KINDS,
    Artifact,
    build,
    build_library,
    find_compiler,
    load_project,
)

WEIGHTED = Path(__file__).parent / "data" / "weighted"


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    root = tmp_path_factory.mktemp("linkable") / "weighted"
    shutil.copytree(WEIGHTED, root)
    return build(load_project(root))


def _link(folder: Path, program: Path, library: list[str]) -> None:
    emulator_folder = emulator.library_path().parent
    command = [
        *find_compiler().argv,
        *("-std=c++17", str(WEIGHTED / "main.cpp"), "-o", str(program)),
        *("-I", str(emulator.include_dir()), "-I", str(folder / "include"), *library),
        *("-L", str(emulator_folder), "-lopkit_emulator", f"-Wl,-rpath,{emulator_folder}"),
    ]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr


def _run(program: Path, scratch: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TMPDIR": str(scratch)}
    return subprocess.run(
        [program], env=environment, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("kind", LIBRARY_KINDS)
def test_a_program_runs_the_operators_that_its_library_carries(
    artifact: Artifact, kind: str, tmp_path: Path
) -> None:
    made = build_library(artifact, kind, file_name="other_name" if kind == "shared" else None)
    # Elsewhere, so that nothing of the build is found by its path.
    folder = tmp_path / "installed"
    made.rename(folder)
    program, lib = tmp_path / "main", folder / "lib"
    if kind == "static":
        library = [str(lib / "libweighted.a")]
    else:
        library = [str(lib / "libother_name.so"), f"-Wl,-rpath,{lib}"]
    _link(folder, program, library)
    (scratch := tmp_path / "scratch").mkdir()
    done = _run(program, scratch)
    assert done.stdout.splitlines()[-1] == "7 13 19 15 21 27 ", done.stderr
    # What the loader needed as files is gone again.
    assert list(scratch.iterdir()) == []
    done = _run(program, tmp_path / "missing")
    assert "first 561000" in done.stdout
    assert "cannot be written" in done.stderr
    assert "set TMPDIR to a folder of yours" in done.stderr


def test_another_kind_of_library_is_refused(artifact: Artifact) -> None:
    with pytest.raises(UsageError, match="there is no framework library"):
        build_library(artifact, "framework")
    with pytest.raises(UsageError, match="not other"):
        build_library(artifact, "static", file_name="other")
