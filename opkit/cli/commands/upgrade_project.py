"""`opkit upgrade-project`: a generated project to the opkit that is installed."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import click

from opkit.cli.commands.build import command as build_command
from opkit.cli.commands.gen import command as gen_command
from opkit.cli.console import Console, common_options
from opkit.cli.options import chip_option, project_argument
from opkit.cli.parts import enclosing_project, require_existing
from opkit.errors import UsageError

__all__ = ["command"]


@click.command("upgrade-project", short_help="Bring a generated project to this opkit.")
@project_argument()
@chip_option("build for")
@common_options
def command(*, project: Path | None, chip: str, console: Console) -> None:
    """Bring a generated project to the version of opkit that is installed here.

    Generates its files again, merges them into yours, pins the versions of opkit that run it, and
    builds all of it anew. Install it again afterwards.

    Example: opkit upgrade-project gelu_custom
    """
    folder = enclosing_project(project or Path.cwd())
    if folder is None:
        raise UsageError(
            f"{project or Path.cwd()} is no project that opkit has generated",
            help="name its folder, the one with pyproject.toml",
        )
    existing = require_existing(folder)
    context = click.get_current_context()
    told = {"verbose": console.verbose, "quiet": console.quiet}
    with contextlib.redirect_stdout(sys.stderr if console.json else sys.stdout):
        context.invoke(
            gen_command, prototype=folder / f"{existing.name}.json", directory=folder, **told
        )
    context.invoke(
        build_command, project=folder, chip=chip, clean=True, json_output=console.json, **told
    )
