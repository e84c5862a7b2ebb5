"""What editors read of sources that `opkit cc` compiles: a compilation database for clangd.

clangd reads the user's text, not the one that the driver writes from it. `<<<...>>>` is an
expression to clang in CUDA and HIP only, and its CUDA wants a toolkit's headers.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path

from opkit.chips import Chip
from opkit.errors import UsageError
from opkit.files import write_aside
from opkit.toolchain.driver_arguments import DriverRequest, Input
from opkit.toolchain.flags import chip_macros
from opkit.toolchain.toolkit import Toolkit

__all__ = ["add_commands"]

_AS_HIP = ("-xhip", "--cuda-host-only", "-nogpuinc", "-nogpulib")


def add_commands(
    database: Path, request: DriverRequest, *, toolkit: Toolkit, chip: Chip, standard: str
) -> None:
    """Write the sources of `request` into a compilation database, in place of what it said of them.

    Args:
        standard: the `-std=` flag where the request has none.
    Raises:
        UsageError: `database` is something else, or its folder cannot be written.
    """
    here = Path.cwd()
    added = [
        {
            "directory": str(here),
            "file": str(here / source.path),
            "arguments": _arguments(source, request, toolkit, chip, standard),
        }
        for source in request.sources
    ]
    try:
        with _alone(database.parent):
            others = _entries(database, besides={str(entry["file"]) for entry in added})
            write_aside(database, (json.dumps([*others, *added], indent=1) + "\n").encode())
    except OSError as error:
        raise UsageError(
            f"{database} cannot be written: {error.strerror}",
            help="--compile-commands=FILE names a file in a folder of yours",
        ) from error


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the folder while the body runs: make compiles several sources at once."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _arguments(
    source: Input, request: DriverRequest, toolkit: Toolkit, chip: Chip, standard: str
) -> list[str]:
    flags = list(request.compile_flags)
    if source.language != "c":
        flags.append(request.standard or standard)
    flags += ["-isystem", str(toolkit.include_dir)]
    if source.language == "asc":
        flags += [*_AS_HIP, *chip_macros(chip), "-include", "opkit/editor.h"]
    return ["clang++", *flags, "-c", str(source.path)]


def _entries(database: Path, *, besides: set[str]) -> list[dict[str, object]]:
    """Return the entries of the database that is there, without those of the files `besides`."""
    if not database.is_file():
        return []
    try:
        entries = json.loads(database.read_text(encoding="utf-8"))
        return [entry for entry in entries if entry["file"] not in besides]
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(
            f"{database} is no compilation database",
            help="name another file, or remove this one",
        ) from error
