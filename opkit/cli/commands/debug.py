"""`opkit debug`: time travel through a launch."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opkit.cli.completion import complete_case, complete_standard
from opkit.cli.console import Console, common_options
from opkit.cli.options import (
    FiniteRange,
    ProgramBehindDashes,
    case_options,
    chip_option,
    timeout_option,
)
from opkit.errors import OpkitError, SetupError, UsageError
from opkit.files import read_lines

if TYPE_CHECKING:
    from opkit.cli.parts import OpenProject
    from opkit.debugging import Debugger, Target
    from opkit.testing import Case

__all__ = ["command"]

_GIGABYTE = 1 << 30


@click.command(
    "debug",
    cls=ProgramBehindDashes,
    short_help="Step through a kernel, forwards and backwards.",
)
@click.argument(
    "project",
    required=False,
    type=click.Path(path_type=Path),
    metavar="[PROJECT | -- PROGRAM ARGUMENTS]",
)
@click.option(
    "--case",
    "name",
    metavar="NAME",
    shell_complete=complete_case,
    help="The case to run; by default the first that failed in the last opkit test.",
)
@click.option("--op", metavar="NAME", help="The operator to take the case from.")
@case_options()
@click.option(
    "--standard",
    metavar="NAME",
    shell_complete=complete_standard,
    help="The precision standard that decides which elements are off.",
)
@click.option(
    "-e",
    "--execute",
    "lines",
    multiple=True,
    metavar="COMMAND",
    help="Do this and leave, such as -e why. Repeatable.",
)
@click.option(
    "--commands",
    "script",
    type=click.Path(path_type=Path, dir_okay=False, exists=True, allow_dash=True),
    metavar="FILE",
    help='Do the commands of a file, one a line, and leave; "-" reads them from stdin.',
)
@click.option("--plain", is_flag=True, help="A prompt in place of the full-screen interface.")
@click.option("--dap", is_flag=True, help="Serve the Debug Adapter Protocol on stdin and stdout.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="Serve it on this port of 127.0.0.1; 0 takes a free one and prints it.",
)
@click.option("--vscode", is_flag=True, help="Write .vscode/launch.json for this project.")
@click.option("--host", is_flag=True, help="Debug the tiling function instead, in gdb.")
@click.option(
    "--launch",
    type=click.IntRange(min=1),
    metavar="N",
    help="Debug the N-th launch of a program or script; by default the first that faults.",
)
@click.option("--kernel", metavar="NAME", help="Debug this kernel of a program or script.")
@click.option(
    "--limit",
    type=FiniteRange(0.01),
    default=8.0,
    show_default=True,
    metavar="GIB",
    help="What a recording may take; beyond 1 GiB it lies in $TMPDIR.",
)
@click.option("--no-check", is_flag=True, help="Leave out what opkit check looks for.")
@timeout_option()
@chip_option("run on")
@common_options
def command(
    *,
    project: Path | None,
    name: str | None,
    op: str | None,
    files: tuple[Path, ...],
    reference: str,
    into: Path | None,
    standard: str | None,
    lines: tuple[str, ...],
    script: Path | None,
    plain: bool,
    dap: bool,
    port: int | None,
    vscode: bool,
    host: bool,
    launch: int | None,
    kernel: str | None,
    limit: float,
    no_check: bool,
    timeout: float,
    chip: str,
    program: tuple[str, ...],
    console: Console,
) -> None:
    """Step through a kernel, forwards and backwards.

    PROJECT is an operator project; behind "--" stands a program that opkit cc has linked, or a .py
    file, with its arguments. The launch runs once and is recorded; then every instruction of it can
    be stood at, in any order. "help" lists the commands.

    Example: opkit debug gelu_custom --case gelu_custom-float16-7919-normal -e why
    """

    def opened() -> OpenProject:
        from opkit.cli.parts import open_project
        from opkit.toolchain import load_project

        return open_project(
            load_project(project), chip, console, into=into, files=files, reference=reference
        )

    if vscode:
        _write_launch_json(opened(), console)
        return
    if host:
        _debug_host(opened(), name, op, console)
        return

    def target() -> Target:
        limit_bytes = int(limit * _GIGABYTE)
        options = {"launch": launch or 0, "kernel": kernel or "", "limit": limit_bytes}
        if program:
            if project is not None:
                raise UsageError('give a project, or a program behind "--", not both')
            return _program_target(program, chip, options)
        if launch is not None or kernel is not None:
            raise UsageError('--launch and --kernel are for programs and scripts behind "--"')
        return _case_target(opened(), name, op, standard, not no_check, timeout, limit_bytes)

    if dap or port is not None:
        _serve(target, port, console)
        return
    found = target()
    from opkit.debugging import Debugger

    debugger = Debugger(found)
    if not console.json:
        _tell(found, console)
    if lines or script is not None or not sys.stdin.isatty() or console.json:
        given: Iterable[str] = lines
        if not lines:
            given = _lines_of(script)
        _batch(debugger, given, console)
        return
    _interact(debugger, console, plain=plain)


def _tell(target: Target, console: Console) -> None:
    recording = target.session.recording
    cut = ", cut at the limit" if recording.is_cut else ""
    console.status(
        "recorded",
        f"{target.title}: {recording.kernel}, {recording.step_count} instructions on"
        f" {len(recording.cores)} cores, {recording.size_bytes / 2**20:.1f} MiB{cut}",
    )
    for text in target.launches[1:] and target.launches[:20]:
        console.detail(text)


def _lines_of(script: Path | None) -> Iterable[str]:
    if script is None or str(script) == "-":
        return sys.stdin
    return read_lines(script)


def _batch(debugger: Debugger, lines: Iterable[str], console: Console) -> None:
    """Do commands one after the other; the first that cannot be done ends them, with exit 2."""
    done: list[dict[str, Any]] = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            result = debugger.run(text)
        except UsageError as error:
            if console.json:
                done.append({"line": text, "error": {"message": error.message, "help": error.help}})
                console.emit_json({"results": done})
                raise click.exceptions.Exit(UsageError.exit_code) from error
            raise UsageError(
                f"command {number}, {text}: {error.message}", help=error.help
            ) from error
        done.append({"line": text, "command": result.command, "result": dict(result.data)})
        if result.text:
            console.result(result.text)
        if result.quits:
            break
    if console.json:
        console.emit_json({"results": done})


def _interact(debugger: Debugger, console: Console, *, plain: bool) -> None:
    if not plain:
        from opkit.debugging import run_terminal

        try:
            run_terminal(debugger)
            return
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "textual":
                raise
            console.warn('the full-screen interface needs textual: pip install "opkit[debug]"')
    console.result(debugger.run("where").text)
    while True:
        try:
            line = input("(opkit) ")
        except EOFError:
            return
        except KeyboardInterrupt:
            console.result()
            continue
        try:
            result = debugger.run(line)
        except UsageError as error:
            console.warn(f"{error.message}" + (f" ({error.help})" if error.help else ""))
            continue
        if result.quits:
            return
        if result.text:
            console.result(result.text)


def _chosen_cases(opened: OpenProject, name: str | None, op: str | None) -> tuple[Case, ...]:
    """Return the named case; else those that failed in the last test, or all."""
    from opkit.cli.parts import choose_cases

    names = (name,) if name is not None else ()
    pool = opened.pool(op, names=names, last_failed=name is None)
    last = opened.notes if name is None else None
    return choose_cases(opened.project, pool, None, names, last)


def _case_target(
    opened: OpenProject,
    name: str | None,
    op: str | None,
    standard: str | None,
    check: bool,
    timeout: float,
    limit_bytes: int,
) -> Target:
    from opkit import runtime
    from opkit.debugging import debug_case
    from opkit.testing import case_standard, operator_standards

    found = opened.project
    standards = operator_standards(found.root, found.operators, standard=standard)
    cases = _chosen_cases(opened, name, op)
    artifact = opened.build()
    runtime.configure(artifact.chip.name)
    specs = {spec.op: spec for spec in found.operators}

    def launch(case: Case) -> Target:
        with runtime.time_limit(timeout):
            return debug_case(
                case,
                specs[case.op],
                runtime.open(artifact.folder),
                golden=opened.golden,
                standard=case_standard(case, standards[case.kernel]),
                root=found.root.resolve(),
                check=check,
                limit_bytes=limit_bytes,
            )

    return launch(cases[0]) if name is not None else opened.first_taken(cases, launch)[1]


def _program_target(program: tuple[str, ...], chip: str, options: dict[str, Any]) -> Target:
    from opkit import runtime, torch_npu, triton
    from opkit.debugging import debug_program, debug_script
    from opkit.pypto import as_pypto

    file = runtime.find_program(Path(program[0]))
    script = runtime.find_script(file)
    named = {
        "launch": options["launch"],
        "kernel": options["kernel"],
        "limit_bytes": options["limit"],
    }
    if script is None:
        context = click.get_current_context()
        asked = context.get_parameter_source("chip")
        is_default = asked is click.core.ParameterSource.DEFAULT
        return debug_program(file, program[1:], chip=None if is_default else chip, **named)
    torch_npu.offer()
    triton.offer()
    runtime.configure(chip)
    with as_pypto():
        return debug_script(script, program[1:], **named)


def _serve(target: Any, port: int | None, console: Console) -> None:
    from opkit.debugging import serve_port, serve_streams

    if console.json:
        raise UsageError("the protocol has a form of its own: leave --json out")
    if port is None:
        # What the program under debug prints must not come between the protocol's messages.
        sys.stdout.flush()
        with os.fdopen(os.dup(1), "wb") as taken:
            os.dup2(2, 1)
            serve_streams(target, sys.stdin.buffer, taken)
        return
    serve_port(target, port, lambda number: console.result(f"127.0.0.1:{number}"))


def _write_launch_json(opened: OpenProject, console: Console) -> None:
    from opkit.debugging import write_launch_json

    found = opened.project
    path, verb = write_launch_json(found.folder, [spec.name for spec in found.operators])
    console.status(verb, str(path))


def _debug_host(opened: OpenProject, name: str | None, op: str | None, console: Console) -> None:
    import subprocess

    from opkit.debugging import host_debugger

    case = _chosen_cases(opened, name, op)[0]
    argv = host_debugger(opened.project, opened.build().folder, case)
    console.command_line(argv, always=True)
    if console.json:
        console.emit_json({"command": argv})
        return
    try:
        code = subprocess.run(argv, check=False).returncode
    except OSError as error:
        raise SetupError(f"{argv[0]} cannot be started: {error.strerror}") from error
    if code != 0:
        raise OpkitError(f"{argv[0]} ended with {code}")
