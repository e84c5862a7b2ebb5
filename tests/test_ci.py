"""What continuous integration runs is what the README tells users to run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_ci_takes_its_test_command_from_the_readme() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    found = re.search(r"^command=\$\((.*)\)$", script, re.MULTILINE)
    assert found is not None
    done = subprocess.run(
        ["bash", "-c", found[1]], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "pip install '.[test]' && pytest\n"
