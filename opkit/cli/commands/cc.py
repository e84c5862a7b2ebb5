"""`opkit cc`: the compiler driver."""

from __future__ import annotations

import os
import shlex

import click

from opkit.cli.console import Console, common_options
from opkit.cli.parts import cmake_arguments

__all__ = ["command"]

# Of common_options; no compiler has others by these names.
_COMMON = ("--json", "-v", "--verbose", "-q", "--quiet")


class _Driver(click.Command):
    """Takes the whole command line as it stands: `-shared` is one flag here, not seven."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own: list[str] = [
            word for word in ("--help", "--env", "--cmake-dir", "--cmake-args") if word in args
        ]
        if own or not args:
            return super().parse_args(ctx, own or ["--help"])
        common = [word for word in args if word in _COMMON]
        rest = super().parse_args(ctx, common)
        ctx.params["arguments"] = tuple(word for word in args if word not in _COMMON)
        return rest


@click.command(
    "cc",
    cls=_Driver,
    short_help="Compile Ascend C sources with kernel launches to programs.",
    options_metavar="[--env | --cmake-dir | --cmake-args | COMPILER FLAGS]",
    context_settings={"help_option_names": ["--help"]},
)
@click.option(
    "--env",
    "env",
    is_flag=True,
    help="Print shell lines in place of the vendor's set_env.sh: ASCEND_HOME_PATH, PATH, ...",
)
@click.option("--cmake-dir", is_flag=True, help="Print the folder for CMAKE_PREFIX_PATH.")
@click.option(
    "--cmake-args",
    is_flag=True,
    help="Print all that cmake needs, also where project() comes before find_package(ASC).",
)
@click.argument("arguments", nargs=-1, metavar="FILE...", type=click.UNPROCESSED)
@common_options
def command(
    *,
    arguments: tuple[str, ...],
    env: bool,
    cmake_dir: bool,
    cmake_args: bool,
    console: Console,
) -> None:
    """Compile Ascend C sources with kernel launches to programs.

    Takes the flags that the host's compiler takes, and --npu-arch=ARCH. A source (.asc, or any
    under -x asc) may launch kernels with <<<blocks, l2ctrl, stream>>>. Flags that only the
    vendor's compiler knows are ignored with a note.

    Example: opkit cc --npu-arch=dav-2201 add.asc -o add && ./add

    With CMake: eval "$(opkit cc --env)" && cmake ..

    For an editor with clangd: opkit cc --compile-commands add.asc -o add
    """
    if env:
        click.echo(_shell_lines())
        return
    if cmake_dir:
        from opkit.toolchain import CMAKE_DIR

        click.echo(str(CMAKE_DIR))
        return
    if cmake_args:
        click.echo(" ".join(cmake_arguments()))
        return
    from opkit.toolchain import parse_driver_arguments, run_driver

    request = parse_driver_arguments(arguments)
    for note in request.notes:
        console.status("note", note, tone="plain")
    if request.ignored:
        console.status("note", f"ignored: {' '.join(request.ignored)}", tone="plain")
    result = run_driver(request, verbose=console.command_line)
    if console.json:
        console.emit_json(
            {
                "output": request.output,
                "npu_arch": request.npu_arch,
                "ignored": request.ignored,
                "warnings": result.diagnostics,
                "text": result.output,
            }
        )
        return
    console.diagnostics(result.diagnostics)
    if result.output:
        click.echo(result.output, nl=False)


def _shell_lines() -> str:
    from opkit.toolchain import find_home, home_variables

    variables = home_variables(find_home(), os.environ)
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items())
