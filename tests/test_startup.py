"""What a start of opkit loads; benchmarks/ measure how long it takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = ["numpy", "sympy", "torch", "jinja2", "jsonschema", "opkit.emulator._emulator"]
HEAVY += ["alembic", "fastapi", "prometheus_client", "pydantic", "sqlalchemy", "uvicorn"]
HELP = "from opkit.cli import group\nfrom opkit.cli.console import run_guarded\n"


def modules_after(script: str) -> set[str]:
    """Return the names of the modules that a fresh interpreter has after running `script`."""
    report = "\nimport json, sys\nsys.stderr.write(json.dumps(sorted(sys.modules)))\n"
    done = subprocess.run(
        [sys.executable, "-c", script + report],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stderr))


@pytest.mark.parametrize(
    "script",
    [
        "import opkit",
        "import opkit.cli",
        HELP + "assert run_guarded(group, ['--help']) == 0",
        HELP + "assert run_guarded(group, ['--version']) == 0",
    ],
    ids=["import opkit", "import opkit.cli", "opkit --help", "opkit --version"],
)
def test_a_start_loads_nothing_heavy(script: str) -> None:
    loaded = modules_after(script)
    assert "opkit" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_help_loads_no_command() -> None:
    loaded = modules_after(HELP + "assert run_guarded(group, ['--help']) == 0")
    names = ("app", "apart", "commands", "console", "help_text")
    spine = {f"opkit.cli.{name}" for name in names}
    assert {name for name in loaded if name.startswith("opkit.cli.")} == spine
