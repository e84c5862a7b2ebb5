"""`.vscode/launch.json`: the debugger behind an editor's buttons."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opkit.errors import UsageError
from opkit.files import written_aside

__all__ = ["launch_configurations", "write_launch_json"]

_PREFIX = "opkit: "
_PORT = 4711


def launch_configurations(operators: Sequence[str]) -> list[dict[str, Any]]:
    """Return what the buttons start: one configuration an operator.

    The editor connects to `opkit debug --port`, which the task starts. The type is that of the C++
    extension, which lets breakpoints be set in C++; its own debugger is not used.
    """
    return [
        {
            "name": f"{_PREFIX}{name}",
            "type": "cppdbg",
            "request": "launch",
            "debugServer": _PORT,
            "program": "opkit",
            "cwd": "${workspaceFolder}",
            "stopOnEntry": True,
            "preLaunchTask": f"{_PREFIX}debug {name}",
        }
        for name in operators
    ]


def _tasks(operators: Sequence[str]) -> list[dict[str, Any]]:
    background = {
        "pattern": {"regexp": "^(error): (.*)$", "severity": 1, "message": 2},
        "background": {
            "activeOnStart": True,
            "beginsPattern": "^ *recorded",
            "endsPattern": r"^127\.0\.0\.1:",
        },
    }
    return [
        {
            "label": f"{_PREFIX}debug {name}",
            "type": "shell",
            "command": "opkit",
            "args": ["debug", "--op", name, "--port", str(_PORT)],
            "isBackground": True,
            "problemMatcher": background,
        }
        for name in operators
    ]


def write_launch_json(root: Path, operators: Sequence[str]) -> tuple[Path, str]:
    """Write a project's `.vscode/launch.json` and `tasks.json`; return the first and what was done.

    Entries that are there already stay as they are, ours and the user's: only what is missing is
    added, and a file that has it all is not touched.

    Raises:
        UsageError: a file there cannot be read as JSON; it is left alone.
    """
    folder = root / ".vscode"
    path = folder / "launch.json"
    verb = _merge(path, "0.2.0", "configurations", "name", launch_configurations(operators))
    other = _merge(folder / "tasks.json", "2.0.0", "tasks", "label", _tasks(operators))
    return path, verb if verb != "identical" else other


def _merge(path: Path, version: str, key: str, named: str, wanted: list[dict[str, Any]]) -> str:
    document: dict[str, Any] = {"version": version, key: []}
    is_new = not path.exists()
    if not is_new:
        try:
            read = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(
                f"{path} cannot be read as JSON, and is left as it is: {error}",
                help=f"add by hand: {json.dumps(wanted[0])}" if wanted else None,
            ) from error
        if not isinstance(read, dict) or not isinstance(read.get(key, []), list):
            raise UsageError(f"{path}: /{key} is no list; the file is left as it is")
        document = read
        document.setdefault(key, [])
    known = {entry.get(named) for entry in document[key] if isinstance(entry, dict)}
    missing = [entry for entry in wanted if entry[named] not in known]
    if not missing and not is_new:
        return "identical"
    document[key] = [*document[key], *missing]
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_aside(path) as aside:
        aside.write_text(json.dumps(document, indent=4) + "\n", encoding="utf-8")
    return "created" if is_new else "added to"
