"""pytest --opkit-check, in a pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from opkit import emulator
from opkit.sanitizer import find_class
from opkit.toolchain import parse_driver_arguments, run_driver

PLUGIN = "opkit.sanitizer.pytest_plugin"
TESTS = """
import subprocess
import numpy as np
import pytest
from opkit import runtime
from opkit.errors import KernelFault

def launch(name):
    runtime.load_emulator()
    from opkit.emulator import _emulator
    _emulator.Kernel(name, "kernel").launch([np.zeros(128, np.float32) for _ in range(2)], 1)

def test_a_launch(): launch("./unpaired.so")
def test_another_launch(): launch("./paired.so")
def test_a_program(): subprocess.run(["./leaks"], check=True)
def test_a_fault_that_is_expected():
    with pytest.raises(KernelFault): launch("./outside.so")
def test_no_launch(): pass
"""
LIBRARIES = {"unpaired": "SYNC-UNPAIRED", "paired": "SYNC-UNPAIRED.fixed", "outside": "MEM-BOUNDS"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plugin")
    for name, example in LIBRARIES.items():
        row = find_class(example.partition(".")[0])
        text = row.fixed_example() if example.endswith(".fixed") else row.example()
        (folder / f"{name}.cpp").write_text(f"{text}\nOPKIT_KERNEL_TABLE(kernel)\n")
        include = str(emulator.include_dir())
        flags = ["-shared", "-fPIC", "-fvisibility=hidden", "-O1", "-isystem", include]
        words = [*flags, str(folder / f"{name}.cpp"), "-o", str(folder / f"{name}.so")]
        run_driver(parse_driver_arguments(words))
    (folder / "leaks.asc").write_text(find_class("LEAK-DEVICE").example())
    run_driver(
        parse_driver_arguments(["-g", str(folder / "leaks.asc"), "-o", str(folder / "leaks")])
    )
    (folder / "test_launches.py").write_text(TESTS)
    return folder


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    installed = any(entry.value == PLUGIN for entry in entry_points(group="pytest11"))
    plugin = [] if installed else ["-p", PLUGIN]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, *arguments]
    # Options of this run are not meant for that one.
    environment = {**os.environ, "PYTEST_ADDOPTS": ""}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_tests_with_findings_fail_and_others_do_not(folder: Path) -> None:
    done = run(folder, "--opkit-check")
    assert "2 failed, 3 passed" in done.stdout, done.stdout + done.stderr
    assert "[SYNC-UNPAIRED]" in done.stdout
    assert "[LEAK-DEVICE]" in done.stdout
    assert "leaks.asc:" in done.stdout


def test_without_the_option_nothing_is_checked(folder: Path) -> None:
    assert "5 passed" in run(folder).stdout


def test_tools_and_suppressions_choose(folder: Path) -> None:
    done = run(folder, "--opkit-check", "--opkit-check-tool", "racecheck")
    assert "5 passed" in done.stdout
    (folder / "known.txt").write_text("SYNC-UNPAIRED\nLEAK-DEVICE\n")
    done = run(folder, "--opkit-check", "--opkit-check-suppressions", "known.txt")
    assert "5 passed" in done.stdout


def test_a_wrong_tool_is_refused(folder: Path) -> None:
    done = run(folder, "--opkit-check", "--opkit-check-tool", "catcheck")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert '"catcheck" is not a tool' in done.stderr
