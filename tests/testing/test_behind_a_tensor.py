"""Kernels that touch bytes behind a tensor: right where the chip's allocator has room for them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from opkit import runtime
from opkit.errors import KernelFault
from opkit.testing import PrecisionReport, Verdict, failure_text, library_cases, run_cases
from opkit.toolchain import Artifact, build, load_project, project_as_built

ROUNDED = Path(__file__).parent / "data" / "rounded"
DATA_BLOCK, REPEAT, FAR = 16, 128, 1024
"""Elements that a copy is rounded up to: 32 bytes, 256, and more than an allocator's block."""


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    root = tmp_path_factory.mktemp("behind") / "rounded"
    shutil.copytree(ROUNDED, root)
    return build(load_project(root))


def report(
    artifact: Artifact, unit: int, reference: str = "x + x", buffer: int = 8192
) -> PrecisionReport:
    project = project_as_built(artifact)
    library = runtime.open(artifact.folder)
    cases = [
        replace(case, attrs=(("unit", unit), ("buffer", buffer)))
        for case in library_cases(project.operators[0], reference)
    ]
    return run_cases(project, cases, library=library, golden=None)


def test_what_the_allocator_has_room_for_passes_as_such(artifact: Artifact) -> None:
    # Copies rounded up to a repeat were faults, and are right on the chip.
    found = report(artifact, REPEAT)
    behind = [result for result in found.results if result.verdict is Verdict.BEHIND]
    assert behind and found.passed
    assert {result.verdict for result in found.results} <= {Verdict.PASS, Verdict.BEHIND}
    told = failure_text(behind[0], found)
    assert "lie in no tensor of this launch" in told and "op_kernel/rounded.cpp:24" in told


def test_nothing_is_told_of_what_keeps_to_its_tensors(artifact: Artifact) -> None:
    found = report(artifact, DATA_BLOCK)
    assert {result.verdict for result in found.results} == {Verdict.PASS}
    assert failure_text(found.results[0], found) == ""


def test_a_fault_says_what_the_results_would_be_on_the_chip(artifact: Artifact) -> None:
    # Who takes the fault for our bounds alone would look for the error in the wrong place.
    found = report(artifact, REPEAT, reference="x + x + 1.0")
    fault = next(result for result in found.results if result.verdict is Verdict.FAULT)
    assert "as on the chip, its results are wrong: worst at [0]" in fault.message


def test_what_lies_behind_the_allocators_block_stays_a_fault(artifact: Artifact) -> None:
    found = report(artifact, FAR)
    assert found.results[0].verdict is Verdict.FAULT and not found.passed


def test_a_local_tensor_ends_with_its_memory_as_on_the_chip(artifact: Artifact) -> None:
    # Instructions behind a buffer were faults, and are right where nothing else lies there.
    found = report(artifact, DATA_BLOCK, buffer=16)
    behind = [result for result in found.results if result.verdict is Verdict.BEHIND]
    assert behind and found.passed
    assert "of a buffer that has 32 bytes in UB" in failure_text(behind[0], found)


def test_what_lies_behind_the_local_memory_stays_a_fault(artifact: Artifact) -> None:
    library = runtime.open(artifact.folder)
    runtime.configure(chip_bounds=True)
    try:
        with pytest.raises(KernelFault, match=r"bytes 196576[.][.]196672 of a buffer"):
            library.run(
                "Rounded", [np.ones(48, np.float16)], {"unit": 16, "buffer": 16, "front": 196576}
            )
    finally:
        runtime.configure(chip_bounds=False)


def test_wrong_results_stay_a_fault(artifact: Artifact) -> None:
    found = report(artifact, REPEAT, "x + x + 1")
    assert found.results[1].verdict is Verdict.FAULT and not found.passed


def test_the_room_is_that_of_the_tests_launch_alone(artifact: Artifact) -> None:
    report(artifact, REPEAT)
    assert not runtime.configuration().chip_bounds
    library = runtime.open(artifact.folder)
    with pytest.raises(KernelFault, match="behind the end of input x"):
        library.run("Rounded", [np.ones(31, np.float16)], {"unit": REPEAT})


@pytest.mark.parametrize("length", [1, 31, 240, 241, 256, 496])
def test_a_block_begins_anew_for_each_tensor(artifact: Artifact, length: int) -> None:
    library = runtime.open(artifact.folder)
    x = np.arange(length + 512, dtype=np.float16)
    runtime.configure(chip_bounds=True)
    try:
        (y,) = library.run("Rounded", [x[:length]], {"unit": 256})
        with pytest.raises(KernelFault, match="behind the end of input x"):
            library.run("Rounded", [x[:length]], {"unit": 1024})
    finally:
        runtime.configure(chip_bounds=False)
    assert np.array_equal(y, x[:length] + x[:length])
    assert np.array_equal(x, np.arange(length + 512, dtype=np.float16))
