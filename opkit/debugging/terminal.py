"""The full-screen interface, where the library for it is there."""

from __future__ import annotations

from opkit.debugging.commands import Debugger

__all__ = ["run_terminal"]


def run_terminal(debugger: Debugger) -> None:
    """Show a target until the user leaves.

    Raises:
        ModuleNotFoundError: textual is not installed: `pip install "opkit[debug]"`.
    """
    from opkit.debugging.screen import DebuggerApp

    DebuggerApp(debugger).run()
