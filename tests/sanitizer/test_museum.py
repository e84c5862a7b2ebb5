"""The bug museum: each class has a smallest kernel that shows it alone, and a mended twin."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from opkit.sanitizer import CLASSES, Finding, FindingClass

CheckKernel = Callable[..., tuple[Finding, ...]]


def block_dim_of(row: FindingClass) -> int:
    return 2 if row.id.startswith("RACE-CORES") else 1


@pytest.mark.parametrize("row", CLASSES, ids=lambda row: row.id)
def test_each_class_has_an_example_that_shows_it_and_nothing_else(
    row: FindingClass, check_kernel: CheckKernel
) -> None:
    findings = check_kernel(row.example(), block_dim=block_dim_of(row))
    assert {finding.id for finding in findings} == {row.id}


@pytest.mark.parametrize("row", CLASSES, ids=lambda row: row.id)
def test_the_corrected_twin_has_no_findings(row: FindingClass, check_kernel: CheckKernel) -> None:
    assert check_kernel(row.fixed_example(), block_dim=block_dim_of(row)) == ()


@pytest.mark.parametrize("row", CLASSES, ids=lambda row: row.id)
def test_a_finding_says_where_and_what_to_do(row: FindingClass, check_kernel: CheckKernel) -> None:
    for finding in check_kernel(row.example(), block_dim=block_dim_of(row)):
        assert finding.message
        assert finding.count >= 1
        if row.id == "MEM-CRASH":
            continue  # the host says that it happened, not where
        assert finding.location is not None
        assert 0 < finding.location.line <= len(row.example().splitlines())
        assert finding.help or row.id == "API-ASSERT"
