"""`opkit explain`: what a class of finding means, with a smallest example and its fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opkit.cli.completion import complete_class
from opkit.cli.console import Console, common_options

if TYPE_CHECKING:
    from opkit.sanitizer import FindingClass

__all__ = ["command"]


@click.command("explain", short_help="Explain a class of finding and how to mend it.")
@click.argument("id", metavar="[CLASS]", required=False, shell_complete=complete_class)
@common_options
def command(*, id: str | None, console: Console) -> None:
    """Explain a class of finding and how to mend it.

    CLASS is the id that "opkit check" prints; without one, all classes are listed.

    Example: opkit explain RACE-RAW
    """
    from opkit.sanitizer import CLASSES, find_class

    if id is None:
        if console.json:
            console.emit_json([_fields(row) for row in CLASSES])
            return
        rows = [(row.id, row.tool, row.title) for row in CLASSES]
        console.table(("class", "tool", "what is wrong"), rows)
        return
    row = find_class(id)
    if console.json:
        console.emit_json(_fields(row))
        return
    console.result(f"{row.id} ({row.tool}): {row.title}\n\n{row.explanation}")
    if row.example():
        console.result(f"\nA smallest kernel with it:\n\n{_body(row.example())}")
        console.result(f"\nThe same kernel without it:\n\n{_body(row.fixed_example())}")


def _fields(row: FindingClass) -> dict[str, object]:
    return {
        "id": row.id,
        "tool": row.tool,
        "title": row.title,
        "explanation": row.explanation,
        "example": row.example(),
        "fixed_example": row.fixed_example(),
    }


def _body(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.rstrip().splitlines())
