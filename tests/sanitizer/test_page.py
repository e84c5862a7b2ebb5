"""The page of a check: findings beside their lines, sorted and filtered, names that stay text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from opkit.sanitizer import CaseFindings, CheckReport, Finding, Location, check_page


def found(file: Path, kind: str, line: int, count: int, message: str) -> Finding:
    return Finding(
        id=kind,
        message=message,
        help="free it",
        kernel="add_custom",
        location=Location(file, line, "DataCopy", "MTE2"),
        other=None,
        block=0,
        other_block=0,
        sub_core="aiv",
        sub_block=0,
        instruction=7,
        space="UB",
        begin=0,
        end=64,
        count=count,
        cases=("add-float16-7",),
    )


@pytest.fixture
def report(tmp_path: Path) -> CheckReport:
    file = tmp_path / "add.cpp"
    file.write_text("\n".join(f"line {number} <b>" for number in range(1, 21)), "utf-8")
    findings = (
        found(file, "RACE-WAR", 10, 2, "reads <script>alert(1)</script>"),
        found(file, "LEAK-TENSOR", 3, 40, "is never freed"),
    )
    cases = (CaseFindings("add-float16-7", findings),)
    return CheckReport("add", tmp_path, ("racecheck",), cases, 0)


ACTIONS = """
window.opkitLook = () => {
  const table = document.getElementById("cases"), filter = document.getElementById("filter");
  const first = () => table.tBodies[0].rows[0].cells[0].textContent;
  const found = {before: first(), lines: document.querySelector(".it").textContent};
  const times = table.tHead.rows[0].cells[3].querySelector("button");
  times.focus();
  found.focus = document.activeElement === times;
  times.click(); found.most = first();
  times.click(); found.least = first();
  filter.value = "freed"; filter.dispatchEvent(new Event("input"));
  found.shown = document.getElementById("shown").textContent;
  return found;
};
"""


def test_findings_are_sorted_filtered_and_shown_with_their_lines(
    report: CheckReport, open_page: Callable[..., dict[str, Any]]
) -> None:
    page = check_page(report, made="2026-01-01")
    assert "2 findings" in page and "2026-01-01" in page
    assert "<script>alert" not in page
    for width, dark in ((420, True), (1600, False)):
        look = open_page(page, width=width, dark=dark, script=ACTIONS)
        assert look["wide"] <= 0
        assert look["extra"] == {
            "before": "RACE-WAR",
            # As the browser's markup has it.
            "lines": "   10  line 10 &lt;b&gt;",
            "focus": True,
            "most": "LEAK-TENSOR",
            "least": "RACE-WAR",
            "shown": "1 of 2",
        }


def test_a_clean_report_lists_its_cases(report: CheckReport) -> None:
    clean = replace(report, cases=(CaseFindings("add-float16-7", ()),))
    page = check_page(clean)
    assert "add: clean" in page and "add-float16-7" in page
    assert 'id="filter"' not in page
