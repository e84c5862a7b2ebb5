"""The bug museum: each class has a smallest kernel that shows it alone, and a mended twin."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from opkit.sanitizer import CLASSES, Finding, FindingClass, find_class

CheckKernel = Callable[..., tuple[Finding, ...]]
# The others are shown by tests/sanitizer/test_outputs.py.
SHOWN = [row for row in CLASSES if not row.needs_operator]
# Takes two blocks.
SHARED = ("RACE-CORES", "CACHE-LOST")
Look = Callable[[FindingClass, str], tuple[Finding, ...]]


@pytest.fixture(scope="session")
def look(check_kernel: CheckKernel, check_text: CheckKernel) -> Look:
    def check(row: FindingClass, text: str) -> tuple[Finding, ...]:
        if row.is_program:
            options = {"unused": row.id == "MEM-UNUSED", "padding": row.id == "MEM-PADDING"}
            return check_text(text, **options)
        if row.is_note:
            assert check_kernel(text) == ()
        return check_kernel(
            text, block_dim=2 if row.id.startswith(SHARED) else 1, notes=row.is_note
        )

    return check


@pytest.mark.sampled(2)
@pytest.mark.parametrize("row", SHOWN, ids=lambda row: row.id)
def test_each_class_has_an_example_that_shows_it_and_nothing_else(
    row: FindingClass, look: Look
) -> None:
    assert {finding.id for finding in look(row, row.example())} == {row.id}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("row", SHOWN, ids=lambda row: row.id)
def test_the_corrected_twin_has_no_findings(row: FindingClass, look: Look) -> None:
    assert look(row, row.fixed_example()) == ()


@pytest.mark.parametrize("row", SHOWN, ids=lambda row: row.id)
def test_a_finding_says_where_and_what_to_do(row: FindingClass, look: Look) -> None:
    for finding in look(row, row.example()):
        assert finding.message
        assert finding.count >= 1
        if row.id == "MEM-CRASH":
            continue  # the host says that it happened, not where
        assert finding.location is not None
        assert 0 < finding.location.line <= len(row.example().splitlines())
        assert finding.help or row.id == "API-ASSERT"


def test_padding_may_be_read_where_nobody_asks(check_text: CheckKernel) -> None:
    assert check_text(find_class("MEM-PADDING").example()) == ()
