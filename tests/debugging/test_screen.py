"""The full-screen interface, driven by keys."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from opkit.debugging import Debugger

pytest.importorskip("textual")


def test_keys_and_commands_move_and_show(record: Callable[..., Debugger]) -> None:
    from textual.widgets import DataTable

    from opkit.debugging.screen import DebuggerApp

    debugger = record()

    async def use() -> None:
        app = DebuggerApp(debugger)
        async with app.run_test(size=(140, 45)) as pilot:
            await pilot.press(*"break Muls", "enter", "f5")
            assert debugger.session.stop.reason == "breakpoint"
            place = debugger.session.position
            await pilot.press("f11", "shift+f11")
            assert debugger.session.position == place
            await pilot.press("f8")
            assert debugger.session.position > place
            await pilot.press("f7", *"nonsense", "enter", "f9")
            await pilot.pause()
            assert app.query_one("#tensors", DataTable).row_count > 3
            await pilot.press(*"quit", "enter")

    asyncio.run(use())
