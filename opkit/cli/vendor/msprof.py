"""`msprof`: times of a program; `msprof op`: of its kernels; `msprof op simulator`: with a trace.

Files have the vendor's names and columns; times are those of the chip's model. Source: msProf user
guide (Ascend/msopprof), options and output files; profiling guides.
"""

from __future__ import annotations

import datetime
import random
import shlex
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from opkit.chips import find_chip
from opkit.cli.vendor.options import idle, refused, script_of
from opkit.errors import UsageError, cannot_write
from opkit.files import written_aside

if TYPE_CHECKING:
    from opkit.profiling import Timeline

__all__ = ["choose"]

_Command = TypeVar("_Command", bound=Callable[..., Any])
_SETTINGS: dict[str, Any] = {
    "help_option_names": ["-h", "--help"],
    "allow_interspersed_args": False,
}
_OUTPUT = click.option(
    "--output", type=click.Path(path_type=Path, file_okay=False), default=Path(), metavar="DIR"
)
_SKIP = click.option(
    "--launch-skip-before-match", "skip", type=click.IntRange(0, 1000), default=0, metavar="N"
)
_MODEL = "a launch is modelled, not measured"
_EVERYTHING = "all tables are written, of every launch that was asked for"


def choose(arguments: list[str]) -> tuple[click.Command, list[str]]:
    """Return the command that the first words name, and the other words."""
    if arguments[:2] == ["op", "simulator"]:
        return simulator, arguments[2:]
    if arguments[:1] == ["op"]:
        return operators, arguments[1:]
    return program, arguments


def _kernel_options(function: _Command) -> _Command:
    for option in reversed(
        (
            click.option("--application", "text", metavar="COMMAND", help="What to run."),
            click.option("--kernel-name", default="*", help="Names joined by |, with *."),
            click.option("--launch-count", type=click.IntRange(1, 5000), default=1),
            click.option(
                "--launch-skip-before-match", "skip", type=click.IntRange(0, 1000), default=0
            ),
            click.option(
                "--output", type=click.Path(path_type=Path, file_okay=False), default=Path()
            ),
            idle("--aic-metrics", _EVERYTHING),
            idle("--kill", "the program runs to its end"),
            idle("--mstx", "marks of a program are not read"),
            idle("--mstx-include", "marks of a program are not read"),
            idle("--replay-mode", _MODEL),
            idle("--warm-up", _MODEL),
            idle("--dump", "nothing but the tables is kept"),
            idle("--core-id", "all cores are in the tables"),
            idle("--timeout", "opkit ends a launch of which no core has ended for a minute"),
            refused(
                "--config",
                "opkit runs programs, and no kernel files by themselves",
                help="give the program with --application, or profile a project: opkit profile",
            ),
            click.argument("application", nargs=-1, type=click.UNPROCESSED),
        )
    ):
        function = option(function)
    return function


@click.command("op", context_settings=_SETTINGS)
@_kernel_options
def operators(
    text: str | None,
    kernel_name: str,
    launch_count: int,
    skip: int,
    output: Path,
    application: tuple[str, ...],
) -> None:
    """Write tables of an application's kernels; opkit does it, by its model of the chip.

    Example: msprof op --kernel-name=add_custom --output=out ./add 1024
    """
    _profile_kernels(None, text, application, kernel_name, launch_count, skip, output, False)


@click.command("simulator", context_settings=_SETTINGS)
@click.option("--soc-version", "soc", metavar="CHIP", help="Such as Ascend910B2.")
@refused("--export", "opkit exports while it profiles", help="leave it out")
@_kernel_options
def simulator(
    soc: str | None,
    text: str | None,
    kernel_name: str,
    launch_count: int,
    skip: int,
    output: Path,
    application: tuple[str, ...],
) -> None:
    """Write tables and a trace of an application's kernels; opkit does it.

    Example: msprof op simulator --soc-version=Ascend910B2 --output=out ./add 1024
    """
    chip = find_chip(soc).name if soc is not None else None
    _profile_kernels(chip, text, application, kernel_name, launch_count, skip, output, True)


def _profile_kernels(
    chip: str | None,
    text: str | None,
    application: Sequence[str],
    kernel_name: str,
    launch_count: int,
    skip: int,
    output: Path,
    has_trace: bool,
) -> None:
    from opkit.profiling import csv_texts, html_page, trace_text

    timelines, code = _run(_words(text, application), chip)
    patterns = [part for part in kernel_name.split("|") if part]
    found = [item for item in timelines if any(fnmatchcase(item.kernel, p) for p in patterns)]
    if not found[skip:]:
        names = ", ".join(dict.fromkeys(item.kernel for item in timelines))
        raise UsageError(
            f'no launch matches --kernel-name "{kernel_name}" behind {skip} others',
            help=f"the application launches {names}",
        )
    chosen = found[skip : skip + launch_count]
    folder = _new_folder(output, "OPPROF")
    for number, timeline in enumerate(chosen):
        own = (
            folder / timeline.kernel.replace("::", ".") / str(number) if len(chosen) > 1 else folder
        )
        files = csv_texts(timeline)
        inner = {name: files.pop(name) for name in ("code_exe.csv", "instr_exe.csv")}
        files["visualize_data.html"] = html_page(timeline, case=timeline.kernel, made="msprof op")
        if has_trace:
            files |= {f"simulator/{name}": content for name, content in inner.items()}
            files["simulator/trace.json"] = trace_text(timeline)
        _write(own, files)
    click.echo(f"{len(chosen)} of {len(timelines)} launches, modelled: {folder}")
    raise click.exceptions.Exit(1 if code else 0)


@click.command("msprof", context_settings=_SETTINGS)
@click.option(
    "--application", "text", metavar="COMMAND", help="A program or script, with arguments."
)
@_OUTPUT
@click.option("--export", type=click.Choice(["on", "off"]), default="on")
@idle("--model", "the application says which model it runs")
@idle("--ascendcl", "calls of the host are not timed")
@idle("--runtime-api", "calls of the host are not timed")
@idle("--task-time", _EVERYTHING)
@idle("--ai-core", _EVERYTHING)
@idle("--aic-metrics", _EVERYTHING)
@idle("--aic-mode", _MODEL)
@idle("--aic-freq", _MODEL)
@idle("--type", "tables are CSV")
@idle("--summary-format", "tables are CSV")
@idle("--storage-limit", "the tables are small")
@idle("--environment", "the environment is this shell's")
@idle("--aicpu", "opkit has no AI CPU")
@idle("--model-execution", "there is no model to load")
@idle("--hccl", "opkit has no links between chips")
@idle("--l2", _EVERYTHING)
@refused("--dynamic", "a program that runs already cannot be profiled")
@refused("--pid", "a program that runs already cannot be profiled")
@refused("--sys-hardware-mem", "there is no hardware whose counters could be read")
@refused("--sys-profiling", "there is no hardware whose counters could be read")
@click.argument("application", nargs=-1, type=click.UNPROCESSED)
def program(text: str | None, output: Path, export: str, application: tuple[str, ...]) -> None:
    """Write a program's operators and launches as tables; opkit does it, by its model of the chip.

    Example: msprof --export=on --output=./profiler_report --application=train.py
    """
    if text is None and not application:
        _export(output)
        return
    from opkit.profiling import operator_files
    from opkit.torch_npu import operator_counts

    before = operator_counts()
    timelines, code = _run(_words(text, application), None)
    files = operator_files(timelines, operator_counts(since=before))
    _write(output, files)
    click.echo(f"{len(timelines)} launches, modelled: {', '.join(str(output / n) for n in files)}")
    raise click.exceptions.Exit(1 if code else 0)


def _export(folder: Path) -> None:
    """Say which tables are there: opkit has none that would have to be made from raw data."""
    found = sorted(folder.rglob("*.csv")) if folder.is_dir() else []
    if not found:
        raise UsageError(
            f"{folder} holds no tables, and there is no --application to run",
            help="msprof --output=DIR --application=train.py",
        )
    for path in found:
        click.echo(path)


def _words(text: str | None, application: Sequence[str]) -> tuple[str, ...]:
    words = script_of([*shlex.split(text or ""), *application])
    if not words:
        raise UsageError("there is no application to run", help="msprof op [OPTIONS] ./add 1024")
    return words


def _run(words: Sequence[str], chip: str | None) -> tuple[list[Timeline], int]:
    from opkit import runtime, torch_npu, triton
    from opkit.profiling import profile_program, profile_script

    path = Path(words[0])
    if path.suffix == ".py":
        if not path.is_file():
            raise UsageError(f"{path}: there is no such script")
        torch_npu.offer()
        triton.offer()
        runtime.configure(chip)
        return profile_script(path, words[1:], lift_limits=False)
    return profile_program(path, words[1:], chip=chip, lift_limits=False)


def _new_folder(output: Path, prefix: str) -> Path:
    letters = "".join(random.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ", k=6))
    return output / f"{prefix}_{datetime.datetime.now():%Y%m%d%H%M%S}_{letters}"


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with written_aside(path) as aside:
                aside.write_text(content, encoding="utf-8")
        except OSError as err:
            raise cannot_write(path, err) from err
