"""`ascend-dbg`: the debugger on one kernel of a project, by `opkit debug`."""

from __future__ import annotations

from pathlib import Path

import click

from opkit.cli.app import COMMANDS
from opkit.cli.vendor.find import project_of
from opkit.cli.vendor.options import hand_over
from opkit.errors import SetupError

__all__ = ["command"]


@click.command(
    "ascend-dbg",
    context_settings={"help_option_names": ["-h", "--help"], "ignore_unknown_options": True},
)
@click.option("--kernel", required=True, metavar="NAME", help="The operator, such as gelu_custom.")
@click.argument("others", nargs=-1, type=click.UNPROCESSED)
def command(kernel: str, others: tuple[str, ...]) -> None:
    """Debug a kernel of the project here or below; other options are those of opkit debug.

    Example: ascend-dbg --kernel=gelu_custom
    """
    project = project_of(kernel, Path.cwd())
    if "debug" not in COMMANDS:
        raise SetupError(
            "this opkit has no command debug",
            help=f'"opkit check {project}" and "opkit test {project} --explain" say where a kernel'
            " goes wrong",
        )
    hand_over("debug", project, "--op", kernel, *others)
