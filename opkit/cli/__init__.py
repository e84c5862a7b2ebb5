"""The command line: one command a file, loaded when it is used."""

from __future__ import annotations

from opkit.cli.app import COMMANDS, LazyGroup, group, main

__all__ = ["COMMANDS", "LazyGroup", "group", "main"]
