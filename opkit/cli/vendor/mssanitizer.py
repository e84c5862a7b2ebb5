"""`mssanitizer`: `opkit check` of an application. No recompilation is needed.

Other than the vendor's, it exits with 1 when something is found. Source: msSanitizer user guide
(Ascend/mssanitizer), options.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import click

import opkit
from opkit.cli.vendor.options import call_opkit, idle, refused, script_of
from opkit.errors import UsageError

__all__ = ["command"]

_OWN_MEMORY = "the emulator owns the memory and loses no record"


@click.command(
    "mssanitizer",
    context_settings={"help_option_names": ["-h", "--help"], "allow_interspersed_args": False},
)
@click.version_option(opkit.__version__, "-V", "-v", "--version", message="opkit %(version)s")
@click.option(
    "-t",
    "--tool",
    "tools",
    multiple=True,
    type=click.Choice(["memcheck", "racecheck", "initcheck", "synccheck"]),
    help="Repeatable; memcheck by default.",
)
@click.option("--log-file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE")
@click.option("--kernel-name", metavar="NAME", help="Only kernels whose name holds this.")
@click.option("--block-id", type=click.IntRange(0, 200), metavar="N")
@click.option("--leak-check", type=click.Choice(["yes", "no"]), is_flag=False, flag_value="yes")
@click.option("--check-unused-memory", "unused", is_flag=True)
@idle("--check-device-heap", "opkit has one heap, which is always checked", is_flag=True)
@idle("--check-cann-heap", "opkit has one heap, which is always checked", is_flag=True)
@idle("--log-level", "opkit prints findings, and nothing else")
@idle("--max-debuglog-size", _OWN_MEMORY)
@idle("--cache-size", _OWN_MEMORY)
@idle("--full-backtrace", "a finding names the line of the kernel and that of the launch")
@idle("--demangle", "kernels go by their names in the source")
@idle("--padding", "allocations lie between guard pages")
@refused("--check-cross-npu-races", "opkit has no memory that devices share", is_flag=True)
@refused("--trace-non-default-spr-reg", "opkit does not follow special registers")
@click.argument("application", nargs=-1, required=True, type=click.UNPROCESSED)
def command(
    tools: tuple[str, ...],
    log_file: Path | None,
    kernel_name: str | None,
    block_id: int | None,
    leak_check: str | None,
    unused: bool,
    application: tuple[str, ...],
) -> None:
    """Check an application's kernels; opkit does it.

    Example: mssanitizer --tool=racecheck -- ./add 1024
    """
    program = script_of(application[1:] if application[0] == "--" else application)
    if not program:
        raise UsageError("there is no application to check")
    arguments = ["check"]
    for tool in tools or ("memcheck",):
        arguments += ["--tool", tool]
    if leak_check == "yes":
        arguments += ["--tool", "leakcheck"]
    if kernel_name is not None:
        arguments += ["--kernel", f"*{kernel_name}*"]
    if block_id is not None:
        arguments += ["--block", str(block_id)]
    if unused:
        arguments.append("--unused")
    with _also_to(log_file):
        code = call_opkit(*arguments, "--", *program)
    raise click.exceptions.Exit(code)


class _Both:
    """A stream that writes to two; everything else is the first one's."""

    def __init__(self, first: IO[str], second: IO[str]) -> None:
        self._first = first
        self._second = second

    def write(self, text: str) -> int:
        self._second.write(text)
        return self._first.write(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._first, name)


@contextlib.contextmanager
def _also_to(path: Path | None) -> Iterator[None]:
    """Write what opkit prints to a file as well; what the application prints stays outside."""
    if path is None:
        yield
        return
    try:
        file = path.open("w", encoding="utf-8")
    except OSError as err:
        raise UsageError(f"--log-file {path}: cannot be written: {err.strerror}") from err
    stdout = sys.stdout
    with file:
        sys.stdout = _Both(stdout, file)
        try:
            yield
        finally:
            sys.stdout = stdout
