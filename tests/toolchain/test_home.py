"""The folder that stands for the vendor's toolkit, and what a shell gets in place of set_env.sh."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from opkit import emulator
from opkit.cli.vendor import find_real
from opkit.errors import SetupError
from opkit.toolchain import CMAKE_DIR, Toolkit, find_compiler, find_home, home_variables
from opkit.toolchain.driver_arguments import COVERED_LIBRARIES
from opkit.toolchain.program_start import write_program_start

PROGRAM = """
#include <cstdio>
#include "acl/acl.h"
int main() { std::printf("%s\\n", aclrtGetSocName()); }
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        emulator.library_path()
    except SetupError:
        pytest.skip("the emulator is not built")
    return find_home(cache_dir=tmp_path_factory.mktemp("cache"))


def test_a_home_is_made_once(home: Path) -> None:
    before = (home / "lib64").stat().st_mtime_ns
    assert find_home(cache_dir=home.parents[1]) == home
    assert (home / "lib64").stat().st_mtime_ns == before
    assert [path.name for path in home.parent.iterdir()] == [home.name]


def test_the_compiler_is_where_build_files_look_for_it(home: Path) -> None:
    (own,) = {
        (home / folder / "bin" / "bisheng").resolve()
        for folder in (".", "compiler/ccec_compiler", f"{platform.machine()}-linux/ccec_compiler")
    }
    assert own.is_file()


def test_a_program_of_plain_gcc_builds_against_it_and_takes_options(
    home: Path, tmp_path: Path
) -> None:
    source = tmp_path / "main.cpp"
    source.write_text(PROGRAM)
    command = [*("g++", str(source), f"-I{home}/include", f"-L{home}/lib64")]
    command += ["-lascendcl", "-lacl_rt", "-lascend_hal", "-o", str(tmp_path / "demo")]
    subprocess.run(command, check=True)
    environment = {**os.environ, **home_variables(home, os.environ)}
    options = {"OPKIT_RUN_OPTIONS": "chip=Ascend310P3"}
    done = subprocess.run(
        [str(tmp_path / "demo")],
        env={**environment, **options},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "Ascend310P3\n"


def test_python_loads_the_toolkits_libraries_by_name(home: Path) -> None:
    # They were linker scripts: "invalid ELF header".
    code = "import ctypes; print(ctypes.CDLL('libascendcl.so').aclrtGetDeviceCount is not None)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **home_variables(home, os.environ)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "True\n"


def test_the_launcher_starts_this_opkit(home: Path, tmp_path: Path) -> None:
    (tmp_path / "opkit").mkdir()
    (tmp_path / "opkit" / "__init__.py").write_text("raise SystemExit('the wrong opkit')")
    done = subprocess.run(
        [str(home / "bin" / "opkit"), "cc", "--cmake-dir"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(CMAKE_DIR)


def test_the_compiler_is_there_by_the_vendors_name(home: Path, tmp_path: Path) -> None:
    (tmp_path / "main.cpp").write_text(PROGRAM)
    bisheng = [str(home / "bin" / "bisheng"), "-xasc", "--npu-arch=dav-2201"]
    command = [*bisheng, "-c", "main.cpp", "-o", "main.o"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    assert (tmp_path / "main.o").stat().st_size > 0
    assert find_real("bisheng", str(home / "bin")) is None


def test_variables_go_in_front_of_what_is_there_and_only_once() -> None:
    home = Path("/home/of/toolkit")
    first = home_variables(home, {"PATH": "/bin", "LD_LIBRARY_PATH": ""})
    assert first["ASCEND_HOME_PATH"] == str(home)
    assert first["PATH"] == f"{home}/bin:/bin"
    assert first["LD_LIBRARY_PATH"] == f"{home}/lib:{home}/lib64"
    assert home_variables(home, first) == first


def test_the_cmake_package_names_only_libraries_that_the_driver_covers() -> None:
    text = (CMAKE_DIR / "ASCConfig.cmake").read_text()
    listed = re.search(r"foreach\(_opkit_name IN ITEMS([^)]*)\)", text)
    assert listed is not None
    assert set(listed[1].split()) <= COVERED_LIBRARIES


def test_what_programs_start_with_is_compiled_once_a_user(tmp_path: Path) -> None:
    installed, copy = Toolkit.installed(), tmp_path / "emulator"
    for folder in (installed.include_dir, installed.program_start.parent):
        shutil.copytree(folder, copy / folder.name)
    toolkit, compiled = replace(installed, include_dir=copy / "include"), []

    def write(name: str) -> bytes:
        write_program_start(
            tmp_path / name,
            toolkit,
            find_compiler(),
            cache_dir=tmp_path / "cache",
            verbose=lambda argv: compiled.append(name),
        )
        return (tmp_path / name).read_bytes()

    assert write("first.o") == write("second.o")
    assert compiled == ["first.o"]
    with (copy / "include" / "opkit" / "run_options.h").open("a") as header:
        header.write("// changed\n")
    write("third.o")
    assert compiled == ["first.o", "third.o"]
