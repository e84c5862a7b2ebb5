"""Work for executors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opkit.executor import Work


@pytest.fixture
def make_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Work]:
    """Work of working_cases.py, in which a case may leave marks in a folder."""
    here = str(Path(__file__).parent)
    monkeypatch.syspath_prepend(here)
    monkeypatch.setenv("PYTHONPATH", here)
    import working_cases

    def make(begin: str = "begin", **options: Any) -> Work:
        return Work(getattr(working_cases, begin), str(tmp_path), **options)

    assert "working_cases" in sys.modules
    return make
