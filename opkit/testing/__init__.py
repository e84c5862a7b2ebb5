"""Precision standards, comparison, cases and reports; NumPy is loaded on first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opkit.testing.assertion import assert_close
    from opkit.testing.bfloat16 import bfloat16_to_float32, to_bfloat16
    from opkit.testing.cases import (
        Case,
        default_cases,
        make_case,
        make_inputs,
        select_cases,
        works_by_row,
    )
    from opkit.testing.comparison import Comparer, Comparison, Figure, Worst, compare
    from opkit.testing.golden import Golden, load_golden
    from opkit.testing.picture import ErrorPicture
    from opkit.testing.project import project_cases
    from opkit.testing.report import CASE_COLUMNS, case_rows, failure_text, junit_xml, report_object
    from opkit.testing.run import (
        CaseResult,
        Library,
        OutputResult,
        PrecisionReport,
        Verdict,
        run_cases,
    )
    from opkit.testing.standards import STANDARDS, Standard, double_level, find_standard

__all__ = [
    "CASE_COLUMNS",
    "STANDARDS",
    "Case",
    "CaseResult",
    "Comparer",
    "Comparison",
    "ErrorPicture",
    "Figure",
    "Golden",
    "Library",
    "OutputResult",
    "PrecisionReport",
    "Standard",
    "Verdict",
    "Worst",
    "assert_close",
    "bfloat16_to_float32",
    "case_rows",
    "compare",
    "default_cases",
    "double_level",
    "failure_text",
    "find_standard",
    "junit_xml",
    "load_golden",
    "make_case",
    "make_inputs",
    "project_cases",
    "report_object",
    "run_cases",
    "select_cases",
    "to_bfloat16",
    "works_by_row",
]

_HOMES = {
    "assertion": ("assert_close",),
    "bfloat16": ("bfloat16_to_float32", "to_bfloat16"),
    "cases": (
        "Case",
        "default_cases",
        "make_case",
        "make_inputs",
        "select_cases",
        "works_by_row",
    ),
    "comparison": ("Comparer", "Comparison", "Figure", "Worst", "compare"),
    "golden": ("Golden", "load_golden"),
    "project": ("project_cases",),
    "report": ("CASE_COLUMNS", "case_rows", "failure_text", "junit_xml", "report_object"),
    "run": ("CaseResult", "Library", "OutputResult", "PrecisionReport", "Verdict", "run_cases"),
    "standards": ("STANDARDS", "Standard", "double_level", "find_standard"),
    "picture": ("ErrorPicture",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    return value
