"""Processes without network, and without any file but those that they are given: bubblewrap."""

from __future__ import annotations

import functools
import os
import shutil
import site
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from opkit.errors import SetupError

__all__ = ["Sandbox", "require_sandbox", "sandbox_fault"]

_PROGRAM = "bwrap"
_INSTALL = (
    "apt install bubblewrap, dnf install bubblewrap; or judge code that you trust: --no-sandbox"
)
# What compilers and Python's extension modules are made of.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SETTINGS = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives")
_SCRATCH_BYTES = 256 << 20
_SHARED_BYTES = 16 << 20


@dataclass(frozen=True)
class Sandbox:
    """Which folders of this machine a process sees, by their names inside."""

    readable: Mapping[str, Path] = field(default_factory=dict)
    writable: Mapping[str, Path] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, argv: list[str]) -> list[str]:
        """Return the command that runs a command in the sandbox."""
        words = [
            *(_PROGRAM, "--unshare-all", "--die-with-parent", "--clearenv"),
            *("--proc", "/proc", "--dev", "/dev"),
            *("--size", str(_SHARED_BYTES), "--tmpfs", "/dev/shm"),
            *("--size", str(_SCRATCH_BYTES), "--tmpfs", "/tmp"),
        ]
        for path in map(Path, _SYSTEM):
            if path.is_symlink():
                words += ["--symlink", str(path.readlink()), str(path)]
            elif path.is_dir():
                words += ["--ro-bind", str(path), str(path)]
        for name in _SETTINGS:
            words += ["--ro-bind-try", name, name]
        for folder in _python_folders():
            words += ["--ro-bind-try", str(folder), str(folder)]
        for inside, path in self.readable.items():
            words += ["--ro-bind", str(path), inside]
        for inside, path in self.writable.items():
            words += ["--bind", str(path), inside]
        variables = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "HOME": "/tmp",
            "LANG": "C.UTF-8",
            "PYTHONHASHSEED": "0",
            **self.environment,
        }
        for name, value in variables.items():
            words += ["--setenv", name, value]
        return [*words, "--remount-ro", "/", "--chdir", "/tmp", "--", *argv]


def _python_folders() -> list[Path]:
    """Return where this Python and its packages lie, none inside another."""
    import opkit

    places = [Path(sys.prefix), Path(sys.base_prefix), Path(opkit.__file__).parent]
    # Of an editable install packages may lie anywhere that the search path names; not the working
    # directory, which is what the empty entry means.
    places += [
        Path(name) for name in sys.path if Path(name).name in ("site-packages", "dist-packages")
    ]
    places += [Path(name) for name in site.getsitepackages()]
    return _outermost(path.absolute() for path in places if path.exists())


def _outermost(paths: Iterable[Path]) -> list[Path]:
    found: list[Path] = []
    for path in sorted(set(paths), key=lambda path: len(path.parts)):
        if not any(path.is_relative_to(known) for known in (*found, *map(Path, _SYSTEM))):
            found.append(path)
    return found


@functools.cache
def sandbox_fault() -> str:
    """Return why no sandbox can be made on this machine; empty where it can."""
    if shutil.which(_PROGRAM) is None:
        return "bubblewrap (bwrap) is not installed"
    argv = Sandbox()(["true"])
    done = subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode == 0:
        return ""
    lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return f"bubblewrap makes no sandbox here: {lines[-1].removeprefix('bwrap: ')}"


def require_sandbox() -> None:
    """Make sure that sandboxes can be made.

    Raises:
        SetupError: bubblewrap is missing, or this machine does not let it work.
    """
    fault = sandbox_fault()
    if fault:
        raise SetupError(f"{fault}: code that nobody trusts is not run without it", help=_INSTALL)
