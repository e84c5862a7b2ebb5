"""The extension of VS Code: its own tests, in Node.js, and the same on the real opkit."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "editors" / "vscode"
NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(NODE is None, reason="Node.js is not installed")


def run_tests(file: str, **variables: str) -> None:
    assert NODE is not None
    # A test that hangs ends by itself, with its name.
    command = [NODE, "--test", "--test-timeout=240000", str(EXTENSION / "test" / file)]
    environment = {**os.environ, **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_its_own_tests_pass() -> None:
    run_tests("extension.test.js")


def test_the_schema_that_it_ships_is_opkits(tmp_path: Path) -> None:
    copy = tmp_path / "editors" / "vscode"
    shutil.copytree(EXTENSION, copy)
    schema = tmp_path / "opkit" / "schema"
    schema.mkdir(parents=True)
    shutil.copy(ROOT / "opkit" / "schema" / "op.schema.json", schema)
    assert NODE is not None
    subprocess.run([NODE, str(copy / "copy_schema.js")], check=True)
    manifest = json.loads((copy / "package.json").read_text(encoding="utf-8"))
    (association,) = manifest["contributes"]["jsonValidation"]
    shipped = copy / association["url"]
    assert shipped.read_bytes() == (schema / "op.schema.json").read_bytes()


@pytest.mark.slow
def test_it_works_on_the_real_opkit(tmp_path: Path) -> None:
    project = tmp_path / "gelu_custom"
    shutil.copytree(
        ROOT / "examples" / "gelu_custom", project, ignore=shutil.ignore_patterns("build")
    )
    kernel = project / "op_kernel" / "gelu_custom.cpp"
    text = kernel.read_text(encoding="utf-8")
    cast = "Cast(yLocal, scratch0, RoundMode::CAST_RINT, count"
    assert cast in text
    kernel.write_text(text.replace(cast, f"{cast} / 2"), encoding="utf-8")
    command = tmp_path / "opkit"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m opkit "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    run_tests("real.test.js", OPKIT_KERNEL=str(kernel), OPKIT_COMMAND=str(command))
