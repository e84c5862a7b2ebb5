"""What one run of the compiler makes, and the command for it.

Apart from what a project is, so that compiling a text loads none of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opkit.toolchain.compiler import Compiler

if TYPE_CHECKING:
    from opkit.schema import OpSpec

__all__ = ["CompileUnit", "LinkUnit", "Variant", "compile_argv", "is_for_linker", "link_argv"]


@dataclass(frozen=True)
class Variant:
    """One kernel variant: an operator for one combination of dtypes and formats."""

    spec: OpSpec
    index: int
    """Which of the operator's combinations."""
    file: str
    """Its shared object in the artifact folder."""
    callable: bool = True
    """False where an earlier combination has the same dtypes: a call names dtypes only."""


@dataclass(frozen=True)
class CompileUnit:
    """One translation unit."""

    name: str
    """The file that it makes."""
    kind: str
    """`kernel`, `template`, `op_host`, `numpy_ext`, `torch_ext` or `op_api`."""
    source: Path
    """The user's file."""
    text: str | None
    """The translation unit where the toolchain writes it; None: it is `source` itself."""
    flags: tuple[str, ...]
    """Everything but the compiler, the input and the outputs."""
    linked: bool
    """Whether the compiler also links, so that `name` is a shared object."""
    template: Variant | None = None
    """For a kernel that is a template: its variant. Its instances are still to be read."""
    function: str = ""
    """The function of a kernel, without template arguments."""
    core_passes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The kinds of cores that it is compiled for one by one, with the options of each; empty where
    one run of the compiler makes it."""


@dataclass(frozen=True)
class LinkUnit:
    """One shared object made of several objects."""

    name: str
    objects: tuple[str, ...]
    """Names of the compile units that it is made of."""
    flags: tuple[str, ...]


def compile_argv(
    compiler: Compiler, unit: CompileUnit, *, source: Path, output: Path, depfile: Path
) -> list[str]:
    """Return the command that compiles a unit.

    Args:
        source: the file to compile: the unit's source, or where its text was written.
        depfile: gets the names of all headers that were read.
    """
    mode = "-shared" if unit.linked else "-c"
    dependencies = [] if "-MMD" in unit.flags else ["-MD"]
    inputs = [*dependencies, "-MF", str(depfile), "-MT", "unit", "-o", str(output), str(source)]
    libraries = [flag for flag in unit.flags if is_for_linker(flag)]
    flags = [flag for flag in unit.flags if flag not in libraries]
    # The linker reads libraries after the objects that need them.
    return [*compiler.argv, *flags, mode, *inputs, *libraries]


def link_argv(
    compiler: Compiler, unit: LinkUnit, *, objects: Sequence[Path], output: Path
) -> list[str]:
    """Return the command that links a unit's objects."""
    names = [str(path) for path in objects]
    return [*compiler.argv, "-shared", "-fPIC", "-s", "-o", str(output), *names, *unit.flags]


def is_for_linker(flag: str) -> bool:
    """Return whether a flag is read by the linker alone."""
    return flag.startswith(("-l", "-L", "-Wl,"))
