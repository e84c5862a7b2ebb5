"""opkit's headers, compiled once: a kernel then compiles in a fifth of a second.

GCC looks for `kernel_operator.h.gch` in each folder where it looks for the header, and takes it
where the options agree; where they do not, it reads the header as ever. So nothing depends on it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from opkit.toolchain.building.cache import unit_key
from opkit.toolchain.compiler import Compiler
from opkit.toolchain.toolkit import Toolkit

__all__ = ["precompiled_headers"]

_HEADER = "kernel_operator.h"
# 40 MB each: the chips' instruction sets, with and without what a project defines.
_MOST_KEPT = 6
# Making one takes as long as three kernels: not for a process that compiles only one.
_WORTH_FROM = 2

_lock = threading.Lock()
_asked: dict[str, int] = {}


def precompiled_headers(
    compiler: Compiler, toolkit: Toolkit, flags: Sequence[str], *, cache_dir: Path
) -> Path | None:
    """Return a folder to search before the toolkit's own; None where the headers are read as text.

    Args:
        flags: of the units that are to be compiled with it.
    """
    if compiler.family != "gcc":
        return None
    foreign = ("-l", "-L", "-Wl,", "-M")
    kept = tuple(flag for flag in flags if flag != "-s" and not flag.startswith(foreign))
    key = unit_key(compiler.identity, kept)
    folder = cache_dir / "headers" / key[:32]
    header = folder / f"{_HEADER}.gch"
    with _lock:
        if header.exists():
            # Of what is used, the oldest is deleted last.
            with contextlib.suppress(OSError):
                os.utime(folder)
            return folder
        _asked[key] = _asked.get(key, 0) + 1
        if _asked[key] != _WORTH_FROM:
            return None
        return folder if _make(compiler, toolkit, kept, header) else None


def _make(compiler: Compiler, toolkit: Toolkit, flags: Sequence[str], header: Path) -> bool:
    try:
        header.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=header.parent) as scratch:
            made = Path(scratch) / header.name
            source = toolkit.include_dir / _HEADER
            argv = [*compiler.argv, *flags, "-x", "c++-header", str(source), "-o", str(made)]
            done = subprocess.run(argv, capture_output=True, check=False)
            if done.returncode != 0:
                return False
            # What includes the header again looks for it here, by its plain name.
            plain = header.with_suffix("")
            plain.write_text(f'#pragma once\n#include "{source}"\n', encoding="utf-8")
            made.replace(header)
        _forget_old(header.parent.parent)
    except OSError:
        return False
    return True


def _forget_old(folder: Path) -> None:
    kept = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for old in kept[_MOST_KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
