"""A library of sources that launch their kernels themselves, for a process that has the emulator.

`opkit cc -shared` links what a program needs to start the emulator; this has none of it, so that
what the library asks of the machine is what its sources ask.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from opkit.chips import Chip
from opkit.errors import BuildError
from opkit.toolchain.building import LinkUnit, ProcessGroup, link_argv
from opkit.toolchain.compiler import find_compiler
from opkit.toolchain.driver import run_driver
from opkit.toolchain.driver_arguments import parse_driver_arguments

__all__ = ["build_launching_library"]


def build_launching_library(
    sources: Sequence[Path], chip: Chip, *, root: Path, output: Path
) -> list[Path]:
    """Compile sources with kernel launches, link them, and return their objects, which stay.

    Args:
        sources: files with kernels, launches and host code.
        root: a folder of `#include`, beside each source's own.
        output: the library; its objects lie beside it.
    Raises:
        BuildError: the compiler or the linker refused.
        SetupError: there is no compiler.
    """
    objects = [output.parent / f"{index}.o" for index in range(len(sources))]
    for source, target in zip(sources, objects, strict=True):
        argv = [f"--npu-arch={chip.npu_arch}", "-c", "-fPIC", "-I", str(root)]
        run_driver(parse_driver_arguments([*argv, "-x", "asc", str(source), "-o", str(target)]))
    unit = LinkUnit(output.name, tuple(path.name for path in objects), ())
    argv = link_argv(find_compiler(), unit, objects=objects, output=output)
    code, log = ProcessGroup().run(argv, cwd=output.parent)
    if code != 0:
        raise BuildError(f"{output.name} does not link:\n{log.strip()}", log=log)
    return objects
