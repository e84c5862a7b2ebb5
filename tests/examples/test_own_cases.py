"""The committed example projects pass `opkit test`, each by the limits that it sets itself."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.examples.conftest import Example

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ["gelu_custom", "rmsnorm"])
def test_an_example_passes_its_generated_cases(
    build_example: Callable[[str], Example], name: str
) -> None:
    root = build_example(name).project.root
    command = [sys.executable, "-m", "opkit", "test", str(root), "--json", "-q"]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    report = json.loads(run.stdout)
    failed = [case["name"] for case in report["cases"] if case["verdict"] != "pass"]
    assert failed == []
    assert run.returncode == 0
    assert len(report["cases"]) > 30
