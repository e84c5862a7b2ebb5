"""The line of a figure: what, measured, to reach."""

from __future__ import annotations

__all__ = ["print_figure", "print_head"]


def print_head() -> None:
    """Print the table's head."""
    print("| what | measured | to reach |\n|---|---|---|")


def print_figure(what: str, measured: str, to_reach: str) -> None:
    """Print one line, at once: the next figure may take a while."""
    print(f"| {what} | {measured} | {to_reach} |", flush=True)
