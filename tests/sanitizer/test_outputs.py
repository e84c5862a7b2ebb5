"""Outputs that are never written, seen by a second run over other content."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opkit.sanitizer import Finding, allocations, unwritten_outputs, written_inputs


def look(before: object, after: object, tmp_path: Path) -> tuple[Finding, ...]:
    source = tmp_path / "twice.cpp"
    source.write_text('// twice\nextern "C" __global__ __aicore__ void twice(GM_ADDR y)\n{\n}\n')
    return unwritten_outputs(
        ["y"],
        [np.asarray(before, np.float16)],
        lambda: [np.asarray(after, np.float16)],
        kernel="twice",
        source=source,
    )


def test_what_stays_as_it_was_is_never_written(tmp_path: Path) -> None:
    (found,) = look([0, 0, 0], [np.nan] * 3, tmp_path)
    assert found.id == "INIT-OUTPUT"
    assert found.message == "output never written: all of the 3 elements of y"
    assert found.location is not None and found.location.line == 2


def test_zeros_that_were_computed_are_no_finding(tmp_path: Path) -> None:
    assert look([0, 0, 0], [0, 0, 0], tmp_path) == ()


def test_a_part_is_counted(tmp_path: Path) -> None:
    (found,) = look([0, 0, 0], [0, np.nan, np.nan], tmp_path)
    assert "2 of the 3 elements" in found.message


def test_the_tail_of_an_output_that_is_never_written_is_found(tmp_path: Path) -> None:
    # An output that held anything else than zeros was taken for written as a whole.
    (found,) = look([1, 0, 3, 0], [1, 0, 3, np.nan], tmp_path)
    assert found.message == "output never written: 1 of the 4 elements of y"
    assert (found.begin, found.end) == (6, 8)


def test_an_output_with_values_costs_no_second_run(tmp_path: Path) -> None:
    def fail() -> list[np.ndarray]:
        raise AssertionError("run again")

    values = [np.ones(3, np.float16)]
    assert unwritten_outputs(["y"], values, fail, kernel="k", source=tmp_path / "k.cpp") == ()


@pytest.mark.parametrize("count", [0])
def test_an_empty_output_is_written(tmp_path: Path, count: int) -> None:
    assert look([0] * count, [0] * count, tmp_path) == ()


def test_an_input_that_a_launch_changes_is_found_at_the_kernel(tmp_path: Path) -> None:
    source = tmp_path / "twice.cpp"
    source.write_text('extern "C" __global__ __aicore__ void twice(GM_ADDR x) {}\n')
    (found,) = written_inputs(["x"], kernel="twice", source=source)
    assert (found.id, found.allocation) == ("MEM-INPUT", "input x")
    assert found.location is not None and found.location.line == 1
    assert written_inputs([], kernel="twice", source=source) == ()


def test_memory_that_a_kernel_takes_is_found_at_the_kernel(tmp_path: Path) -> None:
    source = tmp_path / "twice.cpp"
    source.write_text('\nextern "C" __global__ __aicore__ void twice(GM_ADDR x) {}\n')
    (found,) = allocations(["new"], kernel="twice", source=source)
    assert found.id == "API-MEMORY"
    assert "by new" in found.message
    assert found.location is not None and found.location.line == 2
    assert allocations([], kernel="twice", source=source) == ()
