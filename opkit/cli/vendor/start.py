"""Starting a command of the vendor by its name: the real one where it is there, else opkit's."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import click

from opkit.cli.console import run_program

__all__ = ["TOOLS", "find_real", "main", "run_tool"]

TOOLS: Mapping[str, str] = MappingProxyType(
    {
        "ascend-dbg": "ascend_dbg",
        "asys": "asys",
        "bisheng": "bisheng",
        "cannlog": "cannlog",
        "msadvisor": "msadvisor",
        "msopgen": "msopgen",
        "msopst": "msopst",
        "msprof": "msprof",
        "mssanitizer": "mssanitizer",
        "npu-smi": "npu_smi",
        "profdash": "profdash",
    }
)
"""Name of the command: the module of this package that does it."""

_RUN_KERNELS = frozenset(("ascend-dbg", "msopst", "msprof", "mssanitizer"))
_OURS = b"opkit.cli.vendor"


def main() -> None:
    """Run the command whose name this process was started by, and exit with its code."""
    sys.exit(run_tool(Path(sys.argv[0]).name, sys.argv[1:], owns_process=True))


def run_tool(name: str, arguments: Sequence[str], *, owns_process: bool = False) -> int:
    """Run a command and return its exit code; where the real one is on PATH, become that one.

    Args:
        name: the command, such as `msprof`.
        arguments: the words behind it.
        owns_process: this process was started for the command and exits with its code: a command
            that launches kernels then goes on in a child of it.
    """
    real = find_real(name, os.environ.get("PATH", os.defpath))
    if real is not None:
        click.echo(f"opkit: {real} is the vendor's own {name}, so opkit's steps aside", err=True)
        os.execv(real, [str(real), *arguments])
    module = importlib.import_module(f"opkit.cli.vendor.{TOOLS[name]}")
    # msprof is three commands, told apart by their first words.
    if hasattr(module, "choose"):
        command, rest = module.choose(list(arguments))
    else:
        command, rest = module.command, list(arguments)
    return run_program(command, rest, name=name, is_apart=owns_process and name in _RUN_KERNELS)


def find_real(name: str, path: str) -> Path | None:
    """Return the first executable of this name in the folders of `path` that is not opkit's."""
    for folder in path.split(os.pathsep):
        found = shutil.which(name, path=folder or os.curdir)
        if found is not None and not _is_ours(Path(found)):
            return Path(found)
    return None


def _is_ours(script: Path) -> bool:
    from opkit.toolchain import OPKIT_COMMAND

    try:
        with script.open("rb") as file:
            begin = file.read(4096)
            return any(mark in begin for mark in (_OURS, os.fsencode(OPKIT_COMMAND[-1])))
    except OSError:
        return False
