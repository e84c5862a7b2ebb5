"""Tables on stdout, as wide as the terminal; a line a column where it is too narrow for one."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from rich import box
from rich.console import Console as RichConsole
from rich.table import Table
from rich.text import Text

__all__ = ["print_table"]

_NARROWEST_TABLE = 0.75
"""Share of the width in which no word is cut: a narrower terminal gets no table."""


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    title: str | None,
    right: Collection[str],
    colour: bool,
) -> None:
    """Print a table on stdout.

    Args:
        right: the columns that are right-aligned.
        colour: whether cells keep their colours.
    """
    # A pipe has no width: let no cell wrap there, so that grep and awk see whole lines.
    shown = RichConsole(
        file=sys.stdout,
        width=None if sys.stdout.isatty() else 400,
        no_color=not colour,
        highlight=False,
    )
    cells = [[Text(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    columns_of_text = [list(map(str, c)) for c in zip(columns, *cells, strict=True)]
    widths, gap = _column_widths(columns_of_text, shown.width)
    if not widths:
        # Each row becomes a block of lines, a column on each.
        if title:
            shown.print(Text(title, style="italic"))
        for row in cells:
            block = Table.grid(padding=(0, 2))
            block.add_column(style="dim")
            block.add_column(overflow="fold")
            for column, cell in zip(columns, row, strict=True):
                block.add_row(Text(column), cell)
            shown.print(block)
            shown.print()
        return
    table = Table(
        title=Text(title) if title else None,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, gap // 2),
        pad_edge=False,
        show_edge=False,
    )
    for column, width in zip(columns, widths, strict=True):
        justify: Literal["left", "right"] = "right" if column in right else "left"
        table.add_column(Text(column), justify=justify, overflow="fold", width=width)
    for row in cells:
        table.add_row(*row)
    shown.print(table)


def _column_widths(columns: Sequence[Sequence[str]], available: int) -> tuple[list[int], int]:
    """Return the widths of a table's columns and the gap between them; no widths: do not show one.

    The widest column that has a space to break at gives way first, then the widest of all.
    """
    natural = [max(map(len, column), default=0) for column in columns]
    least = [
        max(len(word) for cell in column for word in cell.split() or [""]) for column in columns
    ]
    joins = max(len(columns) - 1, 0)
    gap = 3 if sum(least) + 3 * joins <= available else 1
    room = available - gap * joins
    if room < _NARROWEST_TABLE * sum(least):
        return [], gap
    widths = list(natural)
    while sum(widths) > room:
        loose = [index for index, width in enumerate(widths) if width > least[index]]
        widest = max(loose or range(len(widths)), key=lambda index: widths[index])
        widths[widest] -= 1
    return widths, gap
