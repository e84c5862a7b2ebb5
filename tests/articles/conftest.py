"""A shell in which opkit stands where the articles have the vendor's toolkit."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import opkit
from opkit.toolchain import OPKIT_COMMAND

STAND_IN = Path(opkit.__file__).parent / "torch_npu" / "stand_in"
TIME_LIMIT_SECONDS = 900
# The articles' own tests run where their extensions are built.
collect_ignore_glob = ["custom_matmul/*", "gelu_extension/*"]

Shell = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def shell() -> Shell:
    """Return a function that runs a script of bash in a folder and fails with what it printed."""

    def run(
        script: str, folder: Path, variables: Mapping[str, str] | None = None, *, code: int = 0
    ) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(STAND_IN), str(folder)]),
            **(variables or {}),
        }
        # The interpreter of the tests is what scripts call python3.
        environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
        begin = f'eval "$({" ".join(OPKIT_COMMAND)} cc --env)"\n'
        done = subprocess.run(
            ["bash", "-e", "-c", begin + script],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIME_LIMIT_SECONDS,
        )
        assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
        return done

    return run
