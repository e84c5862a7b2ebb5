"""What is linked into programs so that `opkit run` reaches them, compiled once a user."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from opkit.errors import SetupError
from opkit.folders import cache_folder
from opkit.toolchain.building import BuildCache, BuildState, CompileUnit, ProcessGroup, Session
from opkit.toolchain.compiler import Compiler
from opkit.toolchain.toolkit import Toolkit

__all__ = ["write_program_start"]


def write_program_start(
    target: Path,
    toolkit: Toolkit,
    compiler: Compiler,
    *,
    cache_dir: Path | None = None,
    verbose: Callable[[list[str]], None] = lambda argv: None,
) -> None:
    """Write the object file that hands the options of `opkit run` to the emulator.

    Args:
        target: the object file.
        cache_dir: where it is kept between programs; the user's cache when None.
        verbose: gets the command, where it has to be compiled.
    Raises:
        SetupError: it does not compile, or the installation lacks its source.
    """
    source = toolkit.program_start
    unit = CompileUnit(
        name=target.name,
        kind="program_start",
        source=source,
        text=None,
        flags=("-std=c++17", "-O1", "-fPIC", "-isystem", str(toolkit.include_dir)),
        linked=False,
    )
    with tempfile.TemporaryDirectory(prefix="opkit-start-") as work:
        session = Session(
            root=source.parent,
            work=Path(work),
            compiler=compiler,
            state=BuildState({}, {}),
            cache=BuildCache(cache_dir or cache_folder()),
            processes=ProcessGroup(),
            verbose=verbose,
        )
        result = session.compile(unit)
    if result.data is None:
        raise SetupError(
            f"{source} does not compile: {result.log.strip()}",
            help='"opkit doctor" tells what this machine lacks',
        )
    target.write_bytes(result.data)
