"""What opkit needs of this machine, checked one by one."""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from opkit import emulator
from opkit.errors import SetupError
from opkit.folders import cache_folder
from opkit.toolchain.compiler import find_compiler, install_line

__all__ = ["Check", "check_machine", "install_missing"]

_OLDEST_PYTHON = (3, 10)
_FREE_BYTES = 512 << 20
_SMOKE_SECONDS = 120
_SMOKE_SOURCE = """\
#include <array>
#include <string_view>
template <typename... T> constexpr auto sum(T... values) { return (values + ... + 0); }
extern "C" int answer() {
  constexpr std::string_view text = "ok";
  if constexpr (text.size() == 2) return sum(20, 20, 2);
  return 0;
}
"""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    ok: bool
    needed: bool
    """Whether opkit cannot work without it."""
    detail: str
    """What was found."""
    fix: str = ""
    """The next step where it is not ok."""
    package: str = ""
    """What pip installs to mend it; empty where that is not done without being asked for."""


def check_machine(*, cache_dir: Path | None = None) -> tuple[Check, ...]:
    """Return every check of this machine; starts the compiler and loads the emulator library."""
    return (
        _python(),
        *_compiler(),
        _emulator_library(),
        _package("numpy", needed=True),
        _package("pybind11", needed=True),
        _program("cmake", needed=False, why="pip install of a project"),
        _program("ninja", needed=False, why="pip install of a project"),
        _package("scikit-build-core", module="scikit_build_core", needed=False),
        _package("torch", needed=False),
        *_disk(cache_dir or cache_folder()),
    )


def install_missing(
    checks: Sequence[Check], *, verbose: Callable[[list[str]], None] | None = None
) -> None:
    """Install the packages of failed checks into this Python, by its own pip.

    Raises:
        SetupError: pip failed; carries its last line.
    """
    names = [check.package for check in checks if check.package and not check.ok]
    argv = [sys.executable, "-m", "pip", "install", *dict.fromkeys(names)]
    if verbose is not None:
        verbose(argv)
    done = subprocess.run(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        lines = done.stdout.strip().splitlines() or [f"exit code {done.returncode}"]
        raise SetupError(
            f"pip could not install {', '.join(names)}: {lines[-1]}",
            help=f"run it yourself: {' '.join(argv)}",
        )


def _python() -> Check:
    oldest = ".".join(map(str, _OLDEST_PYTHON))
    return Check(
        "python",
        ok=sys.version_info >= _OLDEST_PYTHON and sys.platform == "linux",
        needed=True,
        detail=f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        fix=f"use Python {oldest} or newer on Linux",
    )


def _compiler() -> tuple[Check, ...]:
    try:
        compiler = find_compiler()
    except SetupError as err:
        return (Check("compiler", False, True, err.message, fix=err.help or install_line()),)
    found = Check("compiler", True, True, str(compiler))
    with tempfile.TemporaryDirectory(prefix="opkit-doctor-") as folder:
        source = Path(folder) / "smoke.cpp"
        library = Path(folder) / "smoke.so"
        source.write_text(_SMOKE_SOURCE, encoding="utf-8")
        argv = [*compiler.argv, "-std=c++17", "-fPIC", "-shared", "-o", str(library), str(source)]
        problem = _smoke(argv, library)
    detail = problem or "a shared library compiles, loads and runs"
    return (found, Check("c++17", not problem, True, detail, fix=install_line()))


def _smoke(argv: list[str], library: Path) -> str:
    """Return what went wrong when a small library was compiled and called; nothing if it worked."""
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_SMOKE_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            lines = done.stdout.strip().splitlines() or [f"exit code {done.returncode}"]
            return lines[0]
        answer = ctypes.CDLL(str(library)).answer()
    except (OSError, subprocess.TimeoutExpired) as err:
        return str(err)
    return "" if answer == 42 else f"a compiled function returned {answer} instead of 42"


def _emulator_library() -> Check:
    fix = 'install opkit again: "pip install --force-reinstall opkit"'
    try:
        path = emulator.library_path()
        emulator.include_dir()
        ctypes.CDLL(str(path))
    except SetupError as err:
        return Check("emulator", False, True, err.message, fix=err.help or fix)
    except OSError as err:
        return Check("emulator", False, True, f"cannot be loaded: {err}", fix=fix)
    return Check("emulator", True, True, str(path))


def _package(name: str, *, needed: bool, module: str | None = None) -> Check:
    fix = f"{sys.executable} -m pip install {name}"
    if importlib.util.find_spec(module or name) is None:
        package = "" if name == "torch" else name  # hundreds of megabytes, of several kinds
        return Check(name, False, needed, "not installed", fix=fix, package=package)
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        version = "version unknown"
    return Check(name, True, needed, version)


def _program(name: str, *, needed: bool, why: str) -> Check:
    path = shutil.which(name)
    fix = f"{sys.executable} -m pip install {name}"
    if path is None and importlib.util.find_spec(name) is None:
        detail = f"not found ({why} needs it)"
        return Check(name, False, needed, detail, fix=fix, package=name)
    return Check(name, True, needed, path or f"the Python package {name}")


def _disk(cache_dir: Path) -> tuple[Check, ...]:
    place = next(path for path in (cache_dir, *cache_dir.parents) if path.exists())
    writable = os.access(place, os.W_OK | os.X_OK)
    cache = Check(
        "cache",
        writable,
        needed=False,
        detail=f"{cache_dir} {'can' if writable else 'cannot'} be written",
        fix="set XDG_CACHE_HOME to a folder of yours; builds work without it, more slowly",
    )
    free_bytes = shutil.disk_usage(place).free
    space = Check(
        "disk",
        free_bytes >= _FREE_BYTES,
        needed=False,
        detail=f"{free_bytes / (1 << 30):.1f} GiB free at {place}",
        fix=f"free space: a build wants {_FREE_BYTES >> 20} MiB",
    )
    return (cache, space)
