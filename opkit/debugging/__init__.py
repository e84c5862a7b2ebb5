"""Time travel through a launch: it runs once, recorded, and is then looked at in any direction."""

from __future__ import annotations

from opkit.debugging.adapter import Adapter
from opkit.debugging.commands import COMMANDS, Debugger, Result
from opkit.debugging.editor import write_launch_json
from opkit.debugging.host import host_debugger, run_host_case
from opkit.debugging.recording import Recording, load_recording, recording
from opkit.debugging.session import Session, Stop, Unit
from opkit.debugging.streams import serve_port, serve_streams
from opkit.debugging.targets import Target, debug_case, debug_program, debug_script
from opkit.debugging.terminal import run_terminal
from opkit.debugging.why import Answer, Reason, explain, explain_launch

__all__ = [
    "COMMANDS",
    "Adapter",
    "Answer",
    "Debugger",
    "Reason",
    "Recording",
    "Result",
    "Session",
    "Stop",
    "Target",
    "Unit",
    "debug_case",
    "debug_program",
    "debug_script",
    "explain",
    "explain_launch",
    "host_debugger",
    "load_recording",
    "recording",
    "run_host_case",
    "run_terminal",
    "serve_port",
    "serve_streams",
    "write_launch_json",
]
