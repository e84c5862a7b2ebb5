"""The report's forms: rows, text, JSON, JUnit."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from opkit.cli.console import to_json
from opkit.schema import OpSpec
from opkit.selection import select_by_name
from opkit.testing import (
    CASE_COLUMNS,
    CaseResult,
    OutputResult,
    PrecisionReport,
    Verdict,
    case_rows,
    compare,
    default_cases,
    failure_text,
    junit_xml,
    report_object,
)


@pytest.fixture
def report(scale: OpSpec) -> PrecisionReport:
    """A pass, a miss, a fault and a case without a reference."""
    cases = select_by_name(default_cases(scale, seed=7), "2x3x17 or float32-1-normal")
    good = compare(np.ones(3, dtype=np.float32), np.ones(3))
    bad = compare(np.array([1, np.nan, 3], dtype=np.float32), np.array([1.0, 2.0, 2.0]))
    endings = (
        (Verdict.PASS, (OutputResult("y", good),), ""),
        (Verdict.FAIL, (OutputResult("y", bad),), ""),
        (Verdict.FAULT, (), "writes past the end [OutOfBounds]\n  --> \x07x.cpp:3"),
        (Verdict.NO_REFERENCE, (), "golden.py has no function scale"),
    )
    results = tuple(
        CaseResult(case, *ending, 0.5) for case, ending in zip(cases, endings, strict=True)
    )
    return PrecisionReport("demo_project", "ecosystem", 7, results)


def test_a_row_shows_the_figure_nearest_its_limit_and_the_verdict(report: PrecisionReport) -> None:
    rows = case_rows(report)
    assert all(len(row) == len(CASE_COLUMNS) for row in rows)
    assert [row[-1] for row in rows] == ["pass", "fail", "fault", "no reference given"]
    assert rows[1][1:4] == ("3", "MERE 2.50e-01", "1.22e-04")
    assert rows[2][1:4] == ("", "", "")


def test_a_failure_shows_the_worst_element_and_the_line_that_runs_it_again(
    report: PrecisionReport,
) -> None:
    failed = report.results[1]
    text = failure_text(failed, report)
    assert "1 NaN in the wrong place" in text
    assert "worst at [1]: got nan, golden 2.0" in text
    again = text.splitlines()[-1].removeprefix("  again: ")
    assert shlex.split(again) == ["opkit", "test", "--case", failed.case.name, "--seed", "7"]


def test_a_pass_has_nothing_to_say(report: PrecisionReport) -> None:
    assert failure_text(report.results[0], report) == ""


def test_the_json_object_counts_and_lists_every_case(report: PrecisionReport) -> None:
    document = json.loads(json.dumps(to_json(report_object(report))))
    assert document["passed"] is False
    assert document["counts"] == {
        "pass": 1,
        "pass (cancellation)": 0,
        "pass (range)": 0,
        "pass (half precision)": 0,
        "pass (behind a tensor)": 0,
        "fail": 1,
        "fault": 1,
        "error": 0,
        "refused": 0,
        "data type refused": 0,
        "no reference given": 1,
    }
    failed = document["cases"][1]
    assert failed["verdict"] == "fail"
    assert failed["outputs"][0]["worst"]["actual"] == "nan"
    assert failed["outputs"][0]["figures"][0]["name"] == "MERE"
    assert failed["dtypes"] == ["float32", "float32"]


def test_junit_counts_agree_with_its_cases(report: PrecisionReport, tmp_path: Path) -> None:
    suite = ElementTree.fromstring(junit_xml(report)).find("testsuite")
    assert suite is not None
    counted = {
        "tests": len(suite.findall("testcase")),
        "failures": len(suite.findall("testcase/failure")),
        "errors": len(suite.findall("testcase/error")),
        "skipped": len(suite.findall("testcase/skipped")),
    }
    assert counted == {"tests": 4, "failures": 2, "errors": 0, "skipped": 1}
    assert {name: int(suite.attrib[name]) for name in counted} == counted


def test_junit_leaves_out_what_xml_cannot_hold(report: PrecisionReport) -> None:
    failure = ElementTree.fromstring(junit_xml(report)).findall(".//failure")[1]
    assert failure.attrib["message"] == "writes past the end [OutOfBounds]"
    assert "--> x.cpp:3" in (failure.text or "")
