"""Help that fits the terminal: click's own is never narrower than 50 columns."""

from __future__ import annotations

import shutil
from collections.abc import Iterable

import click

__all__ = ["narrow_help"]

_LEAST_WIDTH = 24
_WIDE_FROM = 50
"""From this width on names and texts stand side by side."""
_NARROW_INDENT = 6


class _Formatter(click.HelpFormatter):
    def __init__(
        self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None
    ) -> None:
        if width is None:
            columns = min(shutil.get_terminal_size().columns, max_width or 80)
            width = max(columns - 2, _LEAST_WIDTH)
        super().__init__(indent_increment, width, max_width)

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write names with their texts; a name in a line of its own where there is little room."""
        if self.width < _WIDE_FROM:
            col_max = _NARROW_INDENT
        super().write_dl(list(rows), col_max, col_spacing)


class _Context(click.Context):
    formatter_class = _Formatter


def narrow_help(command: click.Command) -> click.Command:
    """Let a command, and those of a group, write their help in as many columns as there are."""
    command.context_class = _Context
    if isinstance(command, click.Group):
        for each in command.commands.values():
            narrow_help(each)
    return command
