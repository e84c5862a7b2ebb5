"""Kernels that compute in half precision are judged as such, if nothing else ails them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from opkit import runtime
from opkit.testing import (
    Case,
    CaseResult,
    Endurance,
    PrecisionReport,
    Verdict,
    endure,
    explain_case,
    library_cases,
    run_cases,
)
from opkit.testing.apart import LibraryApart
from opkit.testing.launching import Library
from opkit.testing.references.reference import find_reference
from opkit.testing.settings import standard_for
from opkit.toolchain import Artifact, build, load_project, project_as_built

DIFFERENCE = Path(__file__).parent / "data" / "difference"


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    root = tmp_path_factory.mktemp("half") / "difference"
    shutil.copytree(DIFFERENCE, root)
    return build(load_project(root))


def report(artifact: Artifact, reference: str) -> PrecisionReport:
    project = project_as_built(artifact)
    library = runtime.open(artifact.folder)
    cases = library_cases(project.operators[0], reference)
    return run_cases(project, cases, library=library, golden=None)


def test_what_cancels_in_half_passes_as_such(artifact: Artifact) -> None:
    # It was judged as if it computed in float32, where x * y keeps what half rounds away.
    found = report(artifact, "x * y - z")
    verdicts = {result.verdict for result in found.results}
    assert verdicts <= {Verdict.PASS, Verdict.CANCELLATION, Verdict.HALF}
    assert Verdict.HALF in verdicts and found.passed


def test_what_runs_in_another_process_passes_as_well(artifact: Artifact) -> None:
    # The single-precision run was this process's, where no kernel had run.
    project = project_as_built(artifact)
    cases = library_cases(project.operators[0], "x * y - z")
    library = LibraryApart(artifact.folder, artifact.chip.name)
    try:
        found = run_cases(project, cases, library=library, golden=None)
    finally:
        library.close()
    assert Verdict.HALF in {result.verdict for result in found.results} and found.passed


def test_later_launches_in_half_pass_as_the_first(artifact: Artifact) -> None:
    # Their results are judged without a launch, and the single-precision run needs one.
    project = project_as_built(artifact)
    library = runtime.open(artifact.folder)
    cases = library_cases(project.operators[0], "x * y - z")

    def judged(library: Library, case: Case) -> CaseResult:
        return run_cases(project, [case], library=library, golden=None).results[0]

    halves = [one for one in report(artifact, "x * y - z").results if one.verdict is Verdict.HALF]
    case = next(case for case in cases if case.name == halves[0].case.name)
    found = endure(library, Endurance(case, 2), project.operators[0], judged)
    assert found.verdict.passed, found.message


@pytest.mark.parametrize("wrong", ["x * y - 1.002 * z", "x * y - z + 0.01", "x * z - y"])
def test_what_half_does_not_explain_fails(artifact: Artifact, wrong: str) -> None:
    found = report(artifact, wrong)
    assert found.results[-1].verdict is Verdict.FAIL and not found.passed


def test_tensors_that_end_within_a_block_are_explained(artifact: Artifact) -> None:
    # They are copied for the launch, and nothing was known of the caller's memory.
    project = project_as_built(artifact)
    (spec,) = project.operators
    case = library_cases(spec, "x * y - z + 0.01")[1]
    reference = find_reference(case, spec, None, wants_second=False)
    assert reference is not None and case.shape == (31,)
    library = runtime.open(artifact.folder)
    (found,) = explain_case(reference, library, standard_for("conditioned", spec.name))
    assert (found.unwritten, found.verdict) == (0, "algorithm")
    assert [step.source[:1] for step in found.steps if step.source] == ["x", "y", "z"]
