"""Programs that `opkit cc` has linked: how they are told what to run on, and started."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from opkit.errors import UsageError

__all__ = ["find_program", "find_script", "program_variables", "run_program", "timeout_option"]

# Read by what `opkit cc` links into programs: emulator/start/program_start.cpp.
_OPTIONS_VARIABLE = "OPKIT_RUN_OPTIONS"
_PYTHON = re.compile(rb"#!.*\bpython[\d.]*\b")
_FIRST_LINE = 512


def timeout_option(seconds: float) -> dict[str, str | int | None]:
    """Return the option that ends launches without progress; 0 seconds stand for none."""
    return {"timeout_ms": max(1, round(1000 * seconds)) if seconds > 0 else None}


def program_variables(options: Mapping[str, str | int | None]) -> dict[str, str]:
    """Return the environment variables that hand options to programs; None leaves one out."""
    given = ";".join(f"{key}={value}" for key, value in options.items() if value is not None)
    return {_OPTIONS_VARIABLE: given}


def find_program(program: Path) -> Path:
    """Return the file that a name on the command line means, also one on PATH.

    Raises:
        UsageError: there is none.
    """
    if program.is_file():
        return program
    on_path = shutil.which(str(program)) if program.name == str(program) else None
    if on_path is None:
        raise UsageError(
            f"{program}: there is no such program",
            help='"opkit cc --help" shows how to build one',
        )
    return Path(on_path)


def find_script(program: Path) -> Path | None:
    """Return the Python file that a name means: `NAME.py`, or a command such as pytest.

    None where it is a program of its own, or nothing. A command is one whose first line names
    Python.
    """
    on_path = shutil.which(str(program)) if program.name == str(program) else None
    found = program if program.is_file() or on_path is None else Path(on_path)
    if found.suffix == ".py":
        return found
    try:
        with found.open("rb") as file:
            first = file.readline(_FIRST_LINE)
    except OSError:
        return None
    return found if _PYTHON.match(first) else None


def run_program(
    program: Path,
    arguments: Sequence[str],
    options: Mapping[str, str | int | None],
    *,
    output: IO[str] | None = None,
) -> int:
    """Run a program with this process's streams and return its code, negative for a signal.

    Args:
        output: where its stdout goes instead.
    Raises:
        UsageError: it cannot be started.
    """
    # A name without a slash would be looked for on PATH.
    path = str(program) if program.is_absolute() else f"./{program}"
    environment = {**os.environ, **program_variables(options)}
    try:
        done = subprocess.run([path, *arguments], env=environment, stdout=output, check=False)
    except OSError as err:
        raise UsageError(
            f"{program}: cannot be started: {err.strerror}",
            help="it must be an executable program, or a script of Python",
        ) from err
    return done.returncode
