"""`opkit run`: a program or a script on the emulated device."""

from __future__ import annotations

from pathlib import Path

import click

from opkit.cli.console import Console, common_options

__all__ = ["command"]

# Read by what `opkit cc` links into programs: emulator/start/program_start.cpp.
OPTIONS_VARIABLE = "OPKIT_RUN_OPTIONS"


@click.command(
    "run",
    short_help="Run a program or Python script on the emulated device.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option(
    "-c",
    "--chip",
    metavar="CHIP",
    help="The chip to emulate; by default the one that the program was compiled for.",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    metavar="N",
    help="Host threads that run blocks; as many as there are cores by default.",
)
@click.option("--deterministic", is_flag=True, help="Run blocks one after another, on one thread.")
@click.option(
    "--poison", is_flag=True, help="Fill memories with NaN patterns, to show what is never written."
)
@click.argument("program", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@common_options
def command(
    *,
    chip: str | None,
    threads: int | None,
    deterministic: bool,
    poison: bool,
    program: Path,
    arguments: tuple[str, ...],
    console: Console,
) -> None:
    """Run a program or Python script on the emulated device.

    PROGRAM is what "opkit cc" has linked, or a .py file, which runs in this process. What follows
    it are its own arguments. opkit exits with the program's code.

    Example: opkit run --deterministic --poison ./add 1024
    """
    from opkit.chips import find_chip
    from opkit.errors import UsageError

    if console.json:
        raise UsageError(
            "opkit run prints what the program prints, which opkit cannot turn into JSON",
            help="leave --json out; as the program's own option it stands after the program",
        )
    if deterministic:
        if threads not in (None, 1):
            raise UsageError(
                f"--deterministic runs on one thread, and --threads is {threads}",
                help="leave one of them out",
            )
        threads = 1
    name = find_chip(chip).name if chip is not None else None
    found = _find_program(program)
    if found.suffix == ".py":
        _run_script(found, arguments, chip=name, threads=threads, poison=poison)
        return
    options = {"chip": name, "threads": threads, "poison": int(poison)}
    code = _run_program(found, arguments, options, console)
    click.get_current_context().exit(code)


def _find_program(program: Path) -> Path:
    import shutil

    from opkit.errors import UsageError

    if program.is_file():
        return program
    on_path = shutil.which(str(program)) if program.name == str(program) else None
    if on_path is None:
        raise UsageError(
            f"{program}: there is no such program",
            help='"opkit cc --help" shows how to build one',
        )
    return Path(on_path)


def _run_program(
    program: Path,
    arguments: tuple[str, ...],
    options: dict[str, str | int | None],
    console: Console,
) -> int:
    import os
    import subprocess

    from opkit.errors import UsageError

    given = ";".join(f"{key}={value}" for key, value in options.items() if value is not None)
    # A name without a slash would be looked for on PATH.
    path = str(program) if program.is_absolute() else f"./{program}"
    argv = [path, *arguments]
    console.command_line(argv)
    try:
        done = subprocess.run(argv, env={**os.environ, OPTIONS_VARIABLE: given}, check=False)
    except OSError as err:
        raise UsageError(
            f"{program}: cannot be started: {err.strerror}",
            help="it must be an executable program, or end in .py",
        ) from err
    if done.returncode < 0:
        # As a shell says it: 128 and the number of the signal.
        console.warn(f"{program} was ended by signal {-done.returncode}")
        return 128 - done.returncode
    return done.returncode


def _run_script(
    script: Path,
    arguments: tuple[str, ...],
    *,
    chip: str | None,
    threads: int | None,
    poison: bool,
) -> None:
    import runpy
    import sys

    from opkit import runtime

    runtime.configure(chip, threads=threads, poison=poison)
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.parent.resolve()))
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as end:
        click.get_current_context().exit(_exit_code(end))


def _exit_code(end: SystemExit) -> int:
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code
    click.echo(str(end.code), err=True)
    return 1
