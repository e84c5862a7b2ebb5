"""Prototypes read back out of host sources: compiled, loaded, and asked what they register."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from opkit.chips import find_chip
from opkit.errors import BuildError, UsageError
from opkit.schema import OpSpec
from opkit.toolchain.building.command import host_argv
from opkit.toolchain.building.described import ask_host, parse_description
from opkit.toolchain.compiler import find_compiler
from opkit.toolchain.source import parse_diagnostics
from opkit.toolchain.toolkit import Toolkit

__all__ = ["read_opdefs"]


def read_opdefs(source: Path, *, chip: str) -> tuple[tuple[OpSpec, ...], tuple[str, ...]]:
    """Return the operators whose OpDefs a host source holds, and what was left out, as text.

    Args:
        source: a file such as op_host/add_custom.cpp; its own headers lie where it includes them.
        chip: whose AddConfig counts.
    Raises:
        UsageError: there is no such file, or it defines no operator.
        BuildError: it does not compile, or cannot be loaded.
    """
    if not source.is_file():
        raise UsageError(f"{source}: there is no such file", help="give a file of op_host/")
    toolkit = Toolkit.installed()
    with tempfile.TemporaryDirectory(prefix="opkit-opdef-") as folder:
        library = Path(folder) / "host.so"
        argv = host_argv(find_compiler(), toolkit, source=source.absolute(), output=library)
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            found = parse_diagnostics(
                done.stderr, root=source.absolute().parent, foreign=(toolkit.include_dir,)
            )
            raise BuildError(
                f"{source} does not compile", diagnostics=tuple(found), log=done.stderr
            )
        document = ask_host(library)
    description = parse_description(document, soc_config=find_chip(chip).soc_config, source=source)
    if not description.operators:
        raise UsageError(
            f"{source} defines no operator", help="an operator is a class of OpDef with OP_ADD"
        )
    notes = tuple(
        f"{operator.op}: the combination {types} is left out: opkit lacks one of its types"
        for operator in description.operators
        for types in operator.skipped
    )
    return tuple(operator.spec for operator in description.operators), notes
