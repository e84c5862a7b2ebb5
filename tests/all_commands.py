"""Every command of opkit, those below others too."""

from __future__ import annotations

import click


def all_commands(command: click.Command, name: str) -> list[tuple[str, click.Command]]:
    """Return a command and all below it, each behind the words that call it."""
    found = [(name, command)]
    if isinstance(command, click.Group):
        context = click.Context(command)
        for each in command.list_commands(context):
            inner = command.get_command(context, each)
            assert inner is not None
            found += all_commands(inner, f"{name} {each}".strip())
    return found
