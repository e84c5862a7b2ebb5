"""Options and arguments that several commands share, each said once."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from opkit.chips import DEFAULT_CHIP
from opkit.cli.completion import complete_chip
from opkit.errors import UsageError

if TYPE_CHECKING:
    from opkit.executor import Executor

__all__ = [
    "FiniteRange",
    "ProgramBehindDashes",
    "cache_dir_option",
    "case_options",
    "chip_option",
    "chosen_executor",
    "executor_option",
    "expression_option",
    "jobs_option",
    "output_option",
    "parse_shape",
    "project_argument",
    "project_folder_option",
    "raw_writes_option",
    "seed_option",
    "timeout_option",
]

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Decorator = Callable[[_Command], _Command]


class FiniteRange(click.FloatRange):
    """A number in a range; `nan` and `inf` are none: comparisons with them go wrong later."""

    def __init__(self, min: float, *, max: float = 1e9, min_open: bool = False) -> None:
        # 1e9 seconds are 31 years; limits of processes and of waiting are 64-bit numbers of less.
        super().__init__(min=min, max=max, min_open=min_open)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; an error of usage unless it is one, and in the range."""
        number = click.FLOAT.convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return super().convert(value, param, ctx)

    def _describe_range(self) -> str:
        # The upper bound goes without saying.
        return f"x{'>' if self.min_open else '>='}{self.min:g}"


class ProgramBehindDashes(click.Command):
    """Keeps what follows "--" apart: a program or script, and its own arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        program: list[str] = []
        if "--" in args:
            at = args.index("--")
            args, program = args[:at], args[at + 1 :]
        rest = super().parse_args(ctx, args)
        ctx.params["program"] = tuple(program)
        return rest


def project_argument() -> _Decorator[Any]:
    """`[PROJECT]`: a project's folder, or any folder in it; None for the working directory."""
    return click.argument("project", required=False, type=click.Path(path_type=Path))


def case_options() -> _Decorator[Any]:
    """`--cases`, `--golden` and `--into`: what a project's cases come from, and where it is built.

    The parameters are `files`, `reference` and `into`, which `open_project` takes.
    """
    options = (
        click.option(
            "--cases",
            "files",
            multiple=True,
            type=click.Path(path_type=Path, dir_okay=False, exists=True),
            metavar="FILE",
            help="The cases of this file and no others: ours (YAML, JSON) or msOpST's JSON."
            " Repeatable.",
        ),
        click.option(
            "--golden",
            "reference",
            metavar="CALL",
            default="",
            help='The reference, such as "torch.clamp(x, min=low)", over inputs and attributes by'
            " name, or FILE.py:FUNCTION.",
        ),
        click.option(
            "--into",
            type=click.Path(path_type=Path, file_okay=False),
            metavar="DIR",
            help="Where the artifact folder goes; build/opkit in the project by default.",
        ),
    )

    def decorate(function: _Command) -> _Command:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def chip_option(purpose: str) -> _Decorator[Any]:
    """`-c/--chip CHIP`; `purpose` completes "The chip to …"."""
    return click.option(
        "-c",
        "--chip",
        default=DEFAULT_CHIP,
        show_default=True,
        shell_complete=complete_chip,
        metavar="CHIP",
        help=f'The chip to {purpose}; "opkit targets" lists them.',
    )


def jobs_option(what: str) -> _Decorator[Any]:
    """`-j/--jobs N`; `what` names the things that go on side by side."""
    return click.option(
        "-j",
        "--jobs",
        type=click.IntRange(min=1),
        metavar="N",
        help=f"{what} at a time; as many as there are cores by default.",
    )


def executor_option(what: str) -> _Decorator[Any]:
    """`--executor`; `what` names the things that run there. None where it is not given."""
    return click.option(
        "--executor",
        metavar="here|local[:N]|dask:URL",
        help=f"{what} run in N processes of this machine, or on the Dask cluster of tcp://HOST:PORT;"
        ' "here": in the process of opkit itself, for a debugger.',
    )


def chosen_executor(text: str | None, jobs: int | None = None) -> Executor:
    """Return what `--executor` and `-j` ask for; a process for each core where neither does.

    Raises:
        UsageError: both are given, or the former is no executor.
        SetupError: Dask or its scheduler is not there.
    """
    from opkit.executor import open_executor

    if text is not None and jobs is not None:
        raise UsageError("-j and --executor say the same", help="write --executor local:N")
    return open_executor(text or (f"local:{jobs}" if jobs is not None else "local"))


def seed_option() -> _Decorator[Any]:
    """`--seed N`, of the values in cases."""
    return click.option(
        "--seed",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        metavar="N",
        help="Other values in the same cases.",
    )


def cache_dir_option(purpose: str) -> _Decorator[Any]:
    """`--cache-dir DIR`; `purpose` completes "The build cache …"."""
    return click.option(
        "--cache-dir",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIR",
        help=f"The build cache{purpose}; $XDG_CACHE_HOME/opkit or ~/.cache/opkit by default.",
    )


def expression_option(what: str, example: str) -> _Decorator[Any]:
    """`-k EXPR`, in pytest's own language; the parameter is `expression`."""
    return click.option(
        "-k",
        "expression",
        metavar="EXPR",
        help=f'Only {what} this matches, such as "{example}".',
    )


def parse_shape(text: str) -> tuple[int, ...]:
    """Return the sizes of `--shape 2048x4096`.

    Raises:
        UsageError: it is no shape.
    """
    parts = text.replace(",", "x").split("x")
    # isascii: there are digits that int() does not take.
    if not all(part.strip().isdigit() and part.isascii() for part in parts):
        raise UsageError(
            f"--shape {text!r} is not a shape", help="write sizes joined by x, such as 2048x4096"
        )
    return tuple(int(part) for part in parts)


def timeout_option() -> _Decorator[Any]:
    """`--timeout SECONDS`, of a case; the parameter is `timeout`."""
    return click.option(
        "--timeout",
        type=FiniteRange(0),
        default=60.0,
        show_default=True,
        metavar="SECONDS",
        help="End a launch of which no core has ended for so long; 0: never.",
    )


def raw_writes_option() -> _Decorator[Any]:
    """`--allow-raw-writes`; the parameter is `allow_raw_writes`."""
    return click.option(
        "--allow-raw-writes",
        is_flag=True,
        help="Take outputs that change through raw pointers; a fault by default (MEM-RAW).",
    )


def project_folder_option(*spellings: str) -> _Decorator[Any]:
    """The option that names the folder of a project to write, as `directory`."""
    return click.option(
        "-o",
        *spellings,
        "--output",
        "directory",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="The project's folder; the operator's name in the working directory by default.",
    )


def output_option(name: str, what: str) -> _Decorator[Any]:
    """An option that names a file to write beside the printed result."""
    return click.option(
        name,
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help=f"Also write {what}.",
    )
