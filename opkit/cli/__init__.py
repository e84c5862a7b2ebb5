"""The command line: one command a file, loaded when it is used."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from opkit.cli.app import COMMANDS, LazyGroup, group

__all__ = ["COMMANDS", "LazyGroup", "group", "main"]


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code; Ctrl-C leaves no traceback from here on.

    Args:
        argv: the words of the command line; those of this process where it is left out.
    """
    try:
        from opkit.cli.app import main as run

        run(argv)
    except KeyboardInterrupt:
        sys.exit(130)


__getattr__ = lazy_names(
    __name__,
    {
        "app": (
            "COMMANDS",
            "LazyGroup",
            "group",
        ),
    },
)
