"""`opkit mcp`: opkit's commands as tools of the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path

import click

from opkit.cli.console import Console, common_options
from opkit.cli.options import FiniteRange

__all__ = ["command"]


@click.command("mcp", short_help="Serve opkit's commands to agents, by the MCP.")
@click.argument("folder", required=False, type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--write",
    is_flag=True,
    help="Let tools write below FOLDER: gen writes projects, build what it makes. Read-only else.",
)
@click.option(
    "--timeout",
    type=FiniteRange(1),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="Of one call of a tool.",
)
@common_options
def command(*, folder: Path | None, write: bool, timeout: float, console: Console) -> None:
    """Serve opkit's commands to agents, by the Model Context Protocol.

    Speaks on stdin and stdout, as programs start servers of the protocol. Tools: gen, build, test,
    check, profile, judge, why and docs. They see what lies below FOLDER, the working directory by
    default, and nothing is written there without --write. Needs pip install "opkit[mcp]".

    Example: opkit mcp operators --write
    """
    from opkit.cli.commands.mcp.tools import serve_tools
    from opkit.errors import UsageError

    served = (folder or Path.cwd()).resolve()
    if not served.is_dir():
        raise UsageError(f"{folder}: there is no such folder")
    serve_tools(served, writes=write, timeout_seconds=timeout)
