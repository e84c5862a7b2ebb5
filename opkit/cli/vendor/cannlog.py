"""`cannlog`: the log, by `opkit log`."""

from __future__ import annotations

import click

from opkit.cli.vendor.options import hand_over

__all__ = ["command"]


@click.command(
    "cannlog",
    context_settings={"help_option_names": ["-h", "--help"], "ignore_unknown_options": True},
)
@click.option("--level", metavar="LEVEL", default="DEBUG", help="The lowest level to show.")
@click.argument("others", nargs=-1, type=click.UNPROCESSED)
def command(level: str, others: tuple[str, ...]) -> None:
    """Show the log; other options are those of opkit log.

    Example: cannlog --level=ERROR
    """
    hand_over("log", "--level", level, *others)
