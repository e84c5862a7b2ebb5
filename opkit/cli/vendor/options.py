"""What the commands share: options that do nothing or are refused, and calls of opkit itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from opkit.errors import UsageError

__all__ = ["call_opkit", "hand_over", "idle", "refused", "script_of"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


def call_opkit(*arguments: str | Path) -> int:
    """Run a command of opkit in this process and return its exit code."""
    from opkit.cli.app import group
    from opkit.cli.console import run_guarded

    return run_guarded(group, [str(argument) for argument in arguments])


def hand_over(*arguments: str | Path) -> None:
    """Run a command of opkit and leave with its exit code."""
    raise click.exceptions.Exit(call_opkit(*arguments))


def idle(name: str, why: str, *, is_flag: bool = False) -> Callable[[_Command], _Command]:
    """An option that is taken and has no effect here; using it prints why."""

    def told(context: click.Context, parameter: click.Parameter, value: object) -> None:
        if value not in (None, False, ()):
            click.echo(f"note: {name} has no effect: {why}", err=True)

    return click.option(
        *name.split("/"),
        is_flag=is_flag,
        expose_value=False,
        callback=told,
        help=f"No effect: {why}.",
    )


def refused(
    name: str, why: str, *, help: str | None = None, is_flag: bool = False
) -> Callable[[_Command], _Command]:
    """An option whose work opkit cannot do; using it is an error that says so."""

    def raised(context: click.Context, parameter: click.Parameter, value: object) -> None:
        if value not in (None, False, ()):
            raise UsageError(f"{name}: {why}", help=help)

    return click.option(
        *name.split("/"),
        is_flag=is_flag,
        expose_value=False,
        callback=raised,
        help=f"Refused: {why}.",
    )


def script_of(application: Sequence[str]) -> tuple[str, ...]:
    """Return what runs: a script instead of the interpreter before it."""
    words = list(application)
    if len(words) > 1 and Path(words[0]).name.startswith("python") and words[1].endswith(".py"):
        words = words[1:]
    return tuple(words)
