"""`opkit run`: a program or a script on the emulated device."""

from __future__ import annotations

from pathlib import Path

import click

from opkit.cli.completion import complete_chip
from opkit.cli.console import Console, common_options
from opkit.cli.options import timeout_option

__all__ = ["command", "exit_code"]


@click.command(
    "run",
    short_help="Run a program or Python script on the emulated device.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option(
    "-c",
    "--chip",
    shell_complete=complete_chip,
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
@click.option(
    "--seed",
    type=click.IntRange(min=0, max=2**63 - 1),
    metavar="N",
    help="Draw the order of blocks and the bytes of new memory from N; 0 draws nothing.",
)
@click.option(
    "--chip-bounds",
    is_flag=True,
    help="End local tensors with their memory, allocations with a page: as the chip does.",
)
@timeout_option()
@click.argument("program", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@common_options
def command(
    *,
    chip: str | None,
    threads: int | None,
    deterministic: bool,
    poison: bool,
    seed: int | None,
    chip_bounds: bool,
    timeout: float,
    program: Path,
    arguments: tuple[str, ...],
    console: Console,
) -> None:
    """Run a program or Python script on the emulated device.

    PROGRAM is what "opkit cc" has linked, or a Python script (a .py file, or a command such as
    pytest), which runs in this process. What follows it are its own arguments. opkit exits with the
    program's code.

    A program whose result changes with --seed depends on the order of its blocks, or on memory that
    nobody has written. With --poison as well, memory holds NaN patterns.

    A kernel that touches bytes behind a tensor is a fault here, and often goes unnoticed on the
    chip. --chip-bounds runs it on: if the result is right, nothing of what lies there went into it.

    Example: opkit run --deterministic --poison ./add 1024
    """
    from opkit import runtime
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
    found = runtime.find_program(program)
    script = runtime.find_script(program)
    if script is not None:
        with runtime.time_limit(timeout):
            runtime.configure(
                name, threads=threads, poison=poison, seed=seed, chip_bounds=chip_bounds
            )
            _run_script(script, arguments)
        return
    options = {
        **{"chip": name, "threads": threads, "poison": int(poison), "seed": seed},
        # Left out where it says nothing: programs of an earlier opkit know no such option.
        "chip_bounds": int(chip_bounds) or None,
        **runtime.timeout_option(timeout),
    }
    code = _run_program(found, arguments, options, console)
    click.get_current_context().exit(code)


def _run_program(
    program: Path,
    arguments: tuple[str, ...],
    options: dict[str, str | int | None],
    console: Console,
) -> int:
    from opkit import runtime

    console.command_line([str(program), *arguments])
    code = runtime.run_program(program, arguments, options)
    if code < 0:
        # As a shell says it: 128 and the number of the signal.
        console.warn(f"{program} was ended by signal {-code}")
        return 128 - code
    return code


def _run_script(script: Path, arguments: tuple[str, ...]) -> None:
    from opkit import runtime, torch_npu, triton
    from opkit.pypto import as_pypto

    torch_npu.offer()
    triton.offer()
    # Programs that say `import pypto` need no edits.
    with as_pypto():
        code = runtime.run_script(script, arguments)
    click.get_current_context().exit(exit_code(code))


def exit_code(given: int | str | None) -> int:
    """Return the code of what a script has passed to sys.exit, as Python itself has it."""
    if given is None:
        return 0
    if isinstance(given, int):
        return given
    click.echo(given, err=True)
    return 1
