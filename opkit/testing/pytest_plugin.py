"""pytest for operator projects: a device, a random stream, and the project's cases as parameters.

Loaded by the entry point `pytest11`, in every pytest of an environment that has opkit. So it
imports nothing heavy before a test asks for one of its fixtures.

    import pytest

    @pytest.mark.opkit_cases(select="float16 and not 1000003")
    def test_the_operator(opkit_case):
        opkit_case.check()
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import numpy as np

    from opkit.runtime import Configuration
    from opkit.testing import Case, CaseResult, Golden, Library, Standard
    from opkit.toolchain import Artifact, Project

__all__ = ["ProjectCase"]

_MARKER = (
    "opkit_cases(project=None, op=None, select=None, edge_values=False): which cases of"
    " `opkit test` the fixture opkit_case takes"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that `opkit test` has under the same names."""
    group = parser.getgroup("opkit")
    group.addoption(
        "--opkit-seed", type=int, default=0, metavar="N", help="other values in the same cases"
    )
    group.addoption(
        "--opkit-standard",
        default=None,
        metavar="NAME",
        help="the precision standard that opkit_case.check() judges by; the project's by default",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known to --strict-markers."""
    config.addinivalue_line("markers", _MARKER)


@dataclass(frozen=True)
class ProjectCase:
    """One case of an operator project, to be run by a test."""

    project: Project
    golden: Golden | None
    case: Case
    standard: Standard

    def run(self) -> CaseResult:
        """Launch the case on the emulator, built first where needed, and judge its outputs.

        Kernels and host code run in a process of their own, which reaches no golden.
        """
        from opkit.testing import kept_result, run_cases
        from opkit.testing.apart import LaunchLost

        try:
            report = run_cases(
                self.project,
                [self.case],
                library=_library(self.project.root),
                golden=self.golden,
                standard=self.standard,
            )
        except LaunchLost as error:
            return kept_result(self.case, error.lost)
        return report.results[0]

    def check(self) -> None:
        """Raise PrecisionError, an AssertionError, unless the case passes."""
        from opkit.errors import PrecisionError
        from opkit.testing import Verdict

        result = self.run()
        if result.verdict.passed:
            return
        if result.verdict is Verdict.REFUSED:
            pytest.skip(result.message)
        lines = [f"{self.case.name}: {result.verdict.value}"]
        lines += [f"  {line}" for line in result.message.splitlines()]
        for output in result.outputs:
            if not output.comparison.passed:
                lines.append(f"  {output.name}: {output.comparison}")
                lines += [f"    worst {worst}" for worst in [output.comparison.worst] if worst]
        raise PrecisionError("\n".join(lines))


@cache
def _artifact(root: Path) -> Artifact:
    from opkit.toolchain import build, load_project

    return build(load_project(root))


@cache
def _library(root: Path) -> Library:
    from opkit.testing.apart import LibraryApart

    artifact = _artifact(root)
    return LibraryApart(artifact.folder, artifact.chip.name, hidden=_hidden(root))


def _hidden(root: Path) -> Sequence[Path]:
    """Return what kernels and host code of a project are not to read."""
    from opkit.testing import hidden_files
    from opkit.toolchain import load_project

    project = load_project(root)
    return hidden_files(project.root, project.package_dir)


def _with_every_branch(
    project: Project, cases: tuple[Case, ...], golden: Golden | None, op: str | None, seed: int
) -> tuple[Case, ...]:
    """Return cases with one more for each tiling key that none takes, as `opkit test` has them.

    A kernel that has branches by the tiling key is built for it, at collection.
    """
    from opkit.testing import (
        branching_operators,
        host_numbers,
        shape_rules,
        with_every_branch,
    )

    specs = branching_operators(project, op)
    if not specs:
        return cases
    artifact, rules = _artifact(project.root), shape_rules(specs, golden)
    hidden = _hidden(project.root)
    cases, untaken = with_every_branch(
        *(artifact.folder, artifact.chip.name, specs, cases, rules),
        numbers=host_numbers(project),
        seed=seed,
        hidden=hidden,
    )
    for keys in untaken:
        warnings.warn(pytest.PytestCollectionWarning(str(keys)), stacklevel=1)
    return cases


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test that asks for `opkit_case` one run for each case of its project."""
    if "opkit_case" not in metafunc.fixturenames:
        return
    from opkit.selection import select_by_name
    from opkit.testing import load_golden, operator_standards, project_cases
    from opkit.toolchain import load_project

    marker = metafunc.definition.get_closest_marker("opkit_cases")
    chosen = dict(marker.kwargs) if marker is not None else {}
    folder = metafunc.definition.path.parent
    project = load_project(folder / chosen.pop("project", "."))
    golden = load_golden(project.package_dir / "golden.py")
    select = chosen.pop("select", None)
    seed = int(metafunc.config.getoption("--opkit-seed"))
    cases = project_cases(project, golden=golden, seed=seed, **chosen)
    cases = _with_every_branch(project, cases, golden, chosen.get("op"), seed)
    if select is not None:
        cases = select_by_name(cases, select)
    asked = metafunc.config.getoption("--opkit-standard")
    standards = operator_standards(project.root, project.operators, standard=asked)
    values = [ProjectCase(project, golden, case, standards[case.kernel]) for case in cases]
    metafunc.parametrize("opkit_case", values, ids=[case.name for case in cases])


@pytest.fixture
def opkit_device() -> Iterator[Configuration]:
    """The emulated device as for `opkit test`: what a kernel never writes is NaN, instructions
    have the errors that their pages state, and outputs that change through raw pointers are a
    fault. Settings are put back."""
    from opkit import runtime

    before = runtime.configuration()
    yield runtime.configure(poison=True, inaccuracy_seed=1, allow_raw_writes=False)
    runtime.configure(
        before.chip,
        threads=before.threads,
        poison=before.poison,
        profile=before.profile,
        seed=before.seed,
        inaccuracy_seed=before.inaccuracy_seed,
        allow_raw_writes=before.allow_raw_writes,
    )


@pytest.fixture(autouse=True)
def _opkit_poison(request: pytest.FixtureRequest) -> None:
    """Run every `opkit_case` on the poisoned device."""
    if "opkit_case" in request.fixturenames:
        request.getfixturevalue("opkit_device")


@pytest.fixture
def opkit_rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A random stream of the test's own: the same in every run, another one by --opkit-seed."""
    import numpy as np

    seed = int(request.config.getoption("--opkit-seed"))
    return np.random.default_rng([seed, zlib.crc32(request.node.nodeid.encode())])
