"""The page of a test run: cases to filter and sort, at any width, light or dark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opkit.schema import OpSpec
from opkit.testing import (
    CaseResult,
    PrecisionReport,
    Verdict,
    compare,
    default_cases,
    html_report,
)
from opkit.testing.run import OutputResult

# Sorts by the last column, then filters.
ACTIONS = """
window.opkitLook = () => {
  const table = document.getElementById("cases"), filter = document.getElementById("filter");
  const last = table.tHead.rows[0].cells.length - 1;
  table.tHead.rows[0].cells[last].querySelector("button").click();
  const times = [...table.tBodies[0].rows].map((row) => parseFloat(row.cells[last].textContent));
  filter.value = "float32";
  filter.dispatchEvent(new Event("input"));
  return {times, left: [...table.tBodies[0].rows].filter((row) => !row.hidden).length};
};
"""


@pytest.fixture
def page(scale: OpSpec) -> str:
    results = []
    for number, case in enumerate(default_cases(scale)):
        golden = np.linspace(1, 2, 64)
        found = compare(golden.astype(np.float16), golden, dtype="float16")
        output = OutputResult("y", found)
        results.append(CaseResult(case, Verdict.PASS, (output,), "", 0.001 * (number * 7 % 5)))
    return html_report(PrecisionReport("twice", "ecosystem", 0, tuple(results)), made="2026-01-01")


def test_it_is_small_and_says_when_it_was_made(page: str) -> None:
    assert len(page.encode()) < 1_000_000
    assert "2026-01-01" in page
    assert "as a share of its limit" in page


def test_what_failed_is_drawn_and_every_name_is_text(scale: OpSpec) -> None:
    (case, *_) = default_cases(scale)
    golden = np.linspace(1, 2, 64)
    wrong = golden.astype(np.float16)
    wrong[3] = np.nan
    output = OutputResult("<y>", compare(wrong, golden, dtype="float16", picture=True))
    result = CaseResult(case, Verdict.FAIL, (output,), "", 0.001)
    report = PrecisionReport("a<b>&c", "ecosystem", 0, (result,))
    page = html_report(report, [(case.name, "tail <script>alert(1)</script>")], made="<now>")
    assert "<h1>a&lt;b&gt;&amp;c: precision</h1>" in page
    assert "<h3>&lt;y&gt;</h3>" in page
    assert "&lt;now&gt;" in page
    assert page.count("<script>") == 2
    assert "<td>[3]</td>" in page
    assert "elements by relative error" in page
    assert "largest relative error" in page


@pytest.mark.parametrize(("width", "dark"), [(500, False), (900, True), (1600, False)])
def test_it_opens_without_errors_and_fits(
    page: str, open_page: Callable[..., dict[str, Any]], width: int, dark: bool
) -> None:
    found = open_page(page, width=width, dark=dark)
    assert found["wide"] <= 0, "the page is wider than its window"
    assert found["paper"] == ("rgb(13, 17, 23)" if dark else "rgb(255, 255, 255)")


def test_cases_are_sorted_and_filtered(page: str, open_page: Callable[..., dict[str, Any]]) -> None:
    extra = open_page(page, width=1200, script=ACTIONS)["extra"]
    assert extra["times"] == sorted(extra["times"])
    assert 0 < extra["left"] < len(extra["times"])
