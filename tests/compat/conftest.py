"""The sample projects of data/, and what running them needs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from opkit import emulator
from opkit.errors import SetupError

DATA = Path(__file__).with_name("data")


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """A copy of data/, to be changed at will."""
    return Path(shutil.copytree(DATA, tmp_path / "samples"))


@pytest.fixture
def built_emulator() -> None:
    """Skip where the emulator or a build tool is missing."""
    try:
        emulator.library_path()
    except SetupError:
        pytest.skip("the emulator's library is not built")
    if shutil.which("make") is None:
        pytest.skip("there is no make")
