"""The commands: `opkit NAME` is the click command named `command` of `NAME.py` here."""

from __future__ import annotations

__all__ = ["COMMANDS"]

# Help lines stand here so that `opkit --help` imports no command; a test compares them with
# the commands' own.
COMMANDS = {
    "init": "Write an operator project from options.",
    "gen": "Write an operator project from a prototype JSON.",
    "compile": "Compile a tensor program to fused kernels.",
    "build": "Compile a project's kernels, host code and bindings.",
    "test": "Check an operator's results against its golden.",
    "check": "Find memory, race, sync and queue bugs in kernels.",
    "debug": "Step through a kernel, forwards and backwards.",
    "judge": "Judge candidates that nobody trusts against a task.",
    "explain": "Explain a class of finding and how to mend it.",
    "profile": "Time an operator on the modelled chip, pipe by pipe.",
    "serve": "Serve operators over HTTP, version by version.",
    "dash": "Show a live page of a service and of reports.",
    "upgrade-project": "Bring a generated project to this opkit.",
    "tune": "Search tile sizes, buffers and blocks on the timing model.",
    "demo": "Take one operator the whole way, command by command.",
    "cc": "Compile Ascend C sources with kernel launches to programs.",
    "run": "Run a program or Python script on the emulated device.",
    "mcp": "Serve opkit's commands to agents, by the MCP.",
    "targets": "List the chips that can be emulated.",
    "doctor": "Check this machine for what opkit needs.",
    "log": "Show the log of opkit's components.",
    "compat": "Try other people's samples, or scan which names they use.",
    "isa": "List the instructions that the emulator has.",
}
