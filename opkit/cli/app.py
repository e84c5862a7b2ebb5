"""The `opkit` command itself: the way into the sub-commands."""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Sequence

import click

import opkit
from opkit.cli.apart import KERNEL_COMMANDS
from opkit.cli.commands import COMMANDS
from opkit.cli.console import run_program
from opkit.cli.help_text import narrow_help
from opkit.errors import UsageError

__all__ = ["COMMANDS", "LazyGroup", "group", "main"]


class LazyGroup(click.Group):
    """Loads `opkit.cli.commands.<name>:command` when that command runs, and not before."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"opkit.cli.commands.{cmd_name.replace('-', '_')}")
        command = module.command
        if not isinstance(command, click.Command):
            raise TypeError(f"{module.__name__}.command is not a click command")
        return narrow_help(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = difflib.get_close_matches(name, COMMANDS, n=1, cutoff=0.5)
            raise UsageError(
                f'there is no command "{name}"',
                help=f'did you mean "opkit {near[0]}"?' if near else '"opkit --help" lists them',
            )
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(opkit.__version__, "-V", "--version", message="opkit %(version)s")
@click.pass_context
def group(ctx: click.Context) -> None:
    """Scaffold, build, test and profile AI-core operators without an NPU.

    Example: opkit demo
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


narrow_help(group)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code.

    Args:
        argv: the words of the command line; those of this process where it is left out: a command
            that launches kernels then goes on in a child of it.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    is_apart = argv is None and bool(arguments) and arguments[0] in KERNEL_COMMANDS
    sys.exit(run_program(group, arguments, is_apart=is_apart))
