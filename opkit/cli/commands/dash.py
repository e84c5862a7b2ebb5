"""`opkit dash`: a page to watch operators on."""

from __future__ import annotations

import os
from pathlib import Path

import click

from opkit.cli.console import Console, common_options
from opkit.cli.options import FiniteRange

__all__ = ["command"]


@click.command("dash", short_help="Show a live page of a service and of reports.")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    metavar="PORT",
    help="The port on the loopback address; 0 takes a free one.",
)
@click.option(
    "--service", metavar="URL", help="A running opkit serve, such as http://127.0.0.1:8000."
)
@click.option(
    "--history",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Keep what is seen in this SQLite database, 30 days; else until the command ends.",
)
@click.option(
    "--slower",
    type=FiniteRange(0),
    default=2.0,
    show_default=True,
    metavar="PERCENT",
    help="A modelled time that grew by more is an alert.",
)
@click.option(
    "--failures",
    type=FiniteRange(0, max=100),
    default=1.0,
    show_default=True,
    metavar="PERCENT",
    help="More failing calls of an operator are an alert.",
)
@common_options
def command(
    *,
    files: tuple[Path, ...],
    port: int,
    service: str | None,
    history: Path | None,
    slower: float,
    failures: float,
    console: Console,
) -> None:
    """Show a live page of a service and of reports.

    FILES are what profile, test, check and tune print with --json, traces of profile --trace, and
    folders of such; they are read again when they change. The page shows how their figures and the
    service's went over time, and alerts: failing cases, findings, times that grew, versions that
    are out. A token that the service wants is taken
    from the environment variable OPKIT_TOKEN. The page works without a network.

    Example: opkit dash --port 8080 --service http://127.0.0.1:8000 profile.json check.json
    """
    from opkit.service import DashLimits, run_dash

    def ready(address: str) -> None:
        if console.json:
            console.emit_json({"address": address})
        else:
            console.result(f"dashboard: {address}")

    run_dash(
        files,
        port=port,
        service=service,
        token=os.environ.get("OPKIT_TOKEN"),
        history=history,
        limits=DashLimits(slower, failures),
        ready=ready,
    )
