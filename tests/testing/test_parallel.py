"""Cases in several processes report as cases in one do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from opkit.schema import OpSpec
from opkit.testing import Setup, default_cases, run_parallel
from opkit.toolchain import Project


class HerePool:
    """A pool of this process, so that no operator has to be built."""

    def __init__(self, jobs: int, **options: Any) -> None:
        pass

    def __enter__(self) -> HerePool:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def map(self, run: object, cases: Any) -> list[Any]:
        return list(cases)


def test_the_line_that_runs_a_case_again_has_the_commands_options(
    scale: OpSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`-j 2 --standard X` left the standard out of it."""
    monkeypatch.setattr("opkit.testing.parallel.ProcessPoolExecutor", HerePool)
    project = Project(root=tmp_path, name="scale", operators=(scale,))
    setup = Setup(project, tmp_path, "Ascend910B2", "mixed", pictures=False, keep=0)
    options = ("--standard", "mixed")
    report = run_parallel(setup, default_cases(scale)[:2], jobs=2, seed=3, options=options)
    assert report.options == options
    assert report.seed == 3
