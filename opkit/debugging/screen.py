"""The full-screen interface: source, place, tensors and a line for commands."""

from __future__ import annotations

from typing import ClassVar

from rich.markup import escape
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import DataTable, Footer, Header, Input, RichLog, Static

from opkit.debugging.commands import Debugger
from opkit.debugging.queues import slots_at
from opkit.debugging.source_names import source_file
from opkit.debugging.tensors import values_of
from opkit.errors import UsageError

__all__ = ["DebuggerApp"]

_FEW = 4


class DebuggerApp(App[None]):
    """One target on the screen. Function keys move; everything else is typed."""

    TITLE = "opkit debug"
    CSS = """
    #left { width: 3fr; }
    #right { width: 2fr; }
    #source { height: 2fr; border: round $primary; }
    #log { height: 1fr; border: round $primary; }
    #state { height: auto; max-height: 8; border: round $primary; }
    #tensors { height: 2fr; border: round $primary; }
    #queues { height: 1fr; border: round $primary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        ("f5", "command('run')", "run"),
        ("shift+f5", "command('back')", "run back"),
        ("f10", "command('next')", "line"),
        ("shift+f10", "command('prev')", "line back"),
        ("f11", "command('step')", "instruction"),
        ("shift+f11", "command('stepback')", "instr. back"),
        ("f8", "command('tile')", "tile"),
        ("f7", "command('tile -1')", "tile back"),
        ("f9", "command('why')", "why"),
        ("ctrl+q", "quit", "quit"),
    ]

    def __init__(self, debugger: Debugger) -> None:
        super().__init__()
        self.debugger = debugger

    def compose(self) -> ComposeResult:
        """Lay the screen out."""
        yield Header()
        with Horizontal():
            with Vertical(id="left"):
                yield Static(id="source")
                yield RichLog(id="log", wrap=True)
            with Vertical(id="right"):
                yield Static(id="state")
                yield DataTable(id="tensors", cursor_type="row")
                yield Static(id="queues")
        yield Input(placeholder="a command: help lists them", id="line")
        yield Footer()

    def on_mount(self) -> None:
        """Show the first place."""
        self.query_one("#tensors", DataTable).add_columns("name", "memory", "type", "values")
        self.query_one("#line", Input).focus()
        self.refresh_state()

    def action_command(self, line: str) -> None:
        """Do what a key stands for."""
        self.do_line(line)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Do what was typed."""
        event.input.value = ""
        self.do_line(event.value)

    def do_line(self, line: str) -> None:
        """Do one command and show what it came to."""
        if not line.strip():
            return
        log = self.query_one("#log", RichLog)
        log.write(Text(f"> {line}", style="bold"))
        try:
            result = self.debugger.run(line)
        except UsageError as error:
            log.write(Text(str(error), style="red"))
            return
        if result.quits:
            self.exit()
            return
        log.write(Text(result.text))
        self.refresh_state()

    def refresh_state(self) -> None:
        """Show where the session stands now."""
        session = self.debugger.session
        self.query_one("#source", Static).update(self._source())
        self.query_one("#state", Static).update(escape(self.debugger.run("where").text))
        table = self.query_one("#tensors", DataTable)
        table.clear()
        for name in session.names.known(session.core):
            try:
                tensor = session.tensor(name)
            except UsageError:
                continue
            few = tensor.part(0, min(tensor.count, _FEW))
            found = values_of(session.recording, few, session.position)
            shown = "" if found is None else " ".join(f"{value:.5g}" for value in found.tolist())
            table.add_row(name, tensor.space, f"{tensor.dtype.name} x {tensor.count}", shown)
        slots = slots_at(session.recording, session.position, session.core)
        lines = [f"{slot.name}#{slot.number}  {slot.state}  line {slot.line}" for slot in slots]
        self.query_one("#queues", Static).update(escape("\n".join(lines)))

    def _source(self) -> Text:
        session = self.debugger.session
        place = session.place
        if place is None:
            return Text("the launch has no instruction")
        lines = source_file(place[0]).lines
        height = max(8, self.size.height // 2)
        first = max(1, place[1] - height // 2)
        text = Text(f"{place[0].name}\n", style="italic")
        for number in range(first, min(len(lines), first + height) + 1):
            here = number == place[1]
            text.append(f"{'>' if here else ' '}{number:>5}  ", style="bold" if here else "dim")
            text.append(f"{lines[number - 1]}\n", style="reverse" if here else "")
        return text
