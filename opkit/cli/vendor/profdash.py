"""`profdash`: the page of running services and their times, by `opkit dash`."""

from __future__ import annotations

import click

from opkit.cli.app import COMMANDS
from opkit.cli.vendor.options import hand_over
from opkit.errors import SetupError

__all__ = ["command"]


@click.command(
    "profdash",
    context_settings={"help_option_names": ["-h", "--help"], "ignore_unknown_options": True},
)
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True)
@click.argument("others", nargs=-1, type=click.UNPROCESSED)
def command(port: int, others: tuple[str, ...]) -> None:
    """Serve a page with operators' times; other options are those of opkit dash.

    Example: profdash --port=8080
    """
    if "dash" not in COMMANDS:
        raise SetupError(
            "this opkit has no command dash",
            help='"opkit profile PROJECT --html FILE" writes one page',
        )
    hand_over("dash", "--port", str(port), *others)
