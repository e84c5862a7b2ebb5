"""Finding a C++17 compiler, and telling one from another."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from opkit.errors import SetupError

__all__ = [
    "Compiler",
    "compiler_choice",
    "find_compiler",
    "install_line",
    "needs_late_standard",
]

# The first releases whose C++17 library is complete enough for our headers.
_OLDEST_MAJOR = {"gcc": 9, "clang": 10}
_PROBE_SECONDS = 60
# What GCC's manual (environment variables) and clang's say that changes what is read or written.
_SPEAKING_VARIABLES = (
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "LIBRARY_PATH",
    "LD_RUN_PATH",
    "COMPILER_PATH",
    "GCC_EXEC_PREFIX",
    "SOURCE_DATE_EPOCH",
    "CCC_OVERRIDE_OPTIONS",
    "CLANG_CONFIG_FILE_USER_DIR",
    "CLANG_CONFIG_FILE_SYSTEM_DIR",
)
# Programs that a compiler looks for on PATH.
_PROGRAMS_BEHIND = ("as", "ld")
# What clang, as the vendor's compiler is, takes in C++17, and GCC in C++20 only: a call of
# `Muls<float, false>(tensor)` without a declaration of that name in sight, found where its
# arguments are declared, and a constexpr constructor that leaves a member alone.
_LATE = (
    re.compile(
        r"error: .(\w+). was not declared in this scope"
        r"(?:; did you mean .[\w:]+::\1\b|.*?error: expected primary-expression before)",
        re.DOTALL,
    ),
    re.compile(r"member .* must be initialized by mem-initializer in .constexpr. constr"),
)
_PACKAGE_MANAGERS = (
    ("apt-get", "sudo apt-get install g++"),
    ("dnf", "sudo dnf install gcc-c++"),
    ("yum", "sudo yum install gcc-c++"),
    ("zypper", "sudo zypper install gcc-c++"),
    ("pacman", "sudo pacman -S gcc"),
    ("apk", "sudo apk add g++"),
)


@dataclass(frozen=True)
class Compiler:
    """One compiler that was found to work."""

    argv: tuple[str, ...]
    """How to start it; more than one word for `ccache g++` or the ziglang wheel."""
    family: str
    """`gcc` or `clang`."""
    version: str
    """Such as 12.2.0."""
    identity: str
    """Hash of everything that tells its output from another compiler's, the environment too."""

    def __str__(self) -> str:
        return f"{shlex.join(self.argv)} ({self.family} {self.version})"


def find_compiler() -> Compiler:
    """Return the compiler to use: `$CXX`, else c++, g++ or clang++ on PATH, else the ziglang wheel.

    Raises:
        SetupError: there is none, or only ones that are too old; says how to install one.
    """
    chosen = os.environ.get("CXX", "").strip()
    if chosen:
        argv = tuple(shlex.split(chosen))
        if shutil.which(argv[0]) is None:
            raise SetupError(
                f"CXX is {chosen!r}, and there is no such program",
                help="unset CXX, or set it to a C++17 compiler",
            )
        compiler = _probe(argv)
        if compiler is None:
            raise SetupError(
                f"CXX is {chosen!r}, which does not answer --version as gcc or clang do",
                help="unset CXX, or set it to a C++17 compiler",
            )
        _refuse_old(compiler)
        return _in_this_environment(compiler)
    too_old = []
    for argv in _candidates():
        compiler = _probe(argv)
        if compiler is None:
            continue
        if _major(compiler) >= _OLDEST_MAJOR[compiler.family]:
            return _in_this_environment(compiler)
        too_old.append(str(compiler))
    found = f"; {', '.join(too_old)} is too old" if too_old else ""
    raise SetupError(f"no C++17 compiler was found{found}", help=install_line())


def compiler_choice() -> list[str]:
    """Return what `find_compiler` decides by, in words, without starting a program."""
    return [os.environ.get("CXX", "").strip(), *(shlex.join(argv) for argv in _candidates())]


def needs_late_standard(log: str) -> bool:
    """Whether GCC may compile in C++20 what it has refused in C++17, and clang takes there."""
    return any(pattern.search(log) for pattern in _LATE)


def install_line() -> str:
    """Return the command that installs a compiler on this machine."""
    system = next((line for tool, line in _PACKAGE_MANAGERS if shutil.which(tool)), None)
    wheel = f"{shlex.quote(sys.executable)} -m pip install ziglang"
    return f"{system}    (or, without root: {wheel})" if system else wheel


def _candidates() -> Iterator[tuple[str, ...]]:
    for name in ("c++", "g++", "clang++"):
        path = shutil.which(name)
        if path:
            yield (path,)
    if importlib.util.find_spec("ziglang"):
        yield (sys.executable, "-m", "ziglang", "c++")


@functools.cache
def _probe(argv: tuple[str, ...]) -> Compiler | None:
    """Return what answers to `argv --version`; None where nothing usable does."""
    try:
        answer = subprocess.run(
            [*argv, "--version"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            timeout=_PROBE_SECONDS,
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = answer.stdout.decode(errors="replace")
    version = re.search(r"\b(\d+\.\d+(?:\.\d+)?)\b", text)
    if answer.returncode != 0 or version is None:
        return None
    family = "clang" if "clang" in text.lower() else "gcc"
    # "g++ (Debian 12.2.0-14) 12.2.0": gcc's own version is the last one of the first line.
    if family == "gcc":
        versions = re.findall(r"\b(\d+\.\d+(?:\.\d+)?)\b", text.splitlines()[0])
        number = versions[-1] if versions else version[1]
    else:
        number = version[1]
    return Compiler(argv=argv, family=family, version=number, identity=_identity(argv, text))


def _identity(argv: tuple[str, ...], version_text: str) -> str:
    digest = hashlib.sha256(version_text.encode())
    digest.update(platform.machine().encode())
    for word in argv:
        digest.update(f"{_program(word)}\0".encode())
    return digest.hexdigest()


def _in_this_environment(compiler: Compiler) -> Compiler:
    """Return the compiler with an identity that covers what it takes from the environment.

    Not remembered: a process may change its environment between two builds.
    """
    said = [f"{name}={os.environ[name]}" for name in _SPEAKING_VARIABLES if name in os.environ]
    said += [_program(name) for name in _PROGRAMS_BEHIND]
    digest = hashlib.sha256("\0".join((compiler.identity, *said)).encode(errors="surrogateescape"))
    return replace(compiler, identity=digest.hexdigest())


def _program(word: str) -> str:
    """Return what tells a program of this name from others of the same version."""
    path = shutil.which(word)
    # Distributions patch a compiler without changing its version: the binary tells.
    if not path:
        return word
    real = Path(path).resolve()
    status = real.stat()
    return f"{real}\0{status.st_size}\0{status.st_mtime_ns}"


def _major(compiler: Compiler) -> int:
    return int(compiler.version.partition(".")[0])


def _refuse_old(compiler: Compiler) -> None:
    oldest = _OLDEST_MAJOR[compiler.family]
    if _major(compiler) < oldest:
        raise SetupError(
            f"CXX is {compiler}; C++17 needs {compiler.family} {oldest} or newer",
            help=install_line(),
        )
