"""Precision standards, comparison, cases and reports; NumPy is loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from opkit.testing.arrays import is_float, narrow, tensors_of, widen, widen_input
    from opkit.testing.assertion import assert_close, assert_outputs
    from opkit.testing.bfloat16 import bfloat16_to_float32, to_bfloat16
    from opkit.testing.by_name import Found, find_by_name
    from opkit.testing.case_files import CASE_FILES, load_cases, save_case
    from opkit.testing.cases import (
        Case,
        case_variants,
        default_cases,
        make_case,
        make_inputs,
        output_tensors,
        usual_shape,
        works_by_row,
    )
    from opkit.testing.comparison import Comparer, Comparison, Figure, Worst, compare
    from opkit.testing.determinism import DeterminismResult, Difference, Setting, check_determinism
    from opkit.testing.explanation import Explanation, Step, explain_case, explanation_text
    from opkit.testing.expressions import evaluate_expression, is_expression
    from opkit.testing.fuzzing import FuzzBudget, FuzzResult, fuzz, read_budget
    from opkit.testing.golden import Golden, load_golden
    from opkit.testing.html_page import html_report
    from opkit.testing.judgement import OutputResult, judge
    from opkit.testing.last_run import (
        failed_last,
        failed_names,
        notes_file,
        remember_failures,
    )
    from opkit.testing.launching import Library, launch_of
    from opkit.testing.msopst_report import ERROR_ROWS, write_st_report
    from opkit.testing.opdef_cases import library_cases
    from opkit.testing.pairwise import pairwise_cases
    from opkit.testing.parallel import Setup, cases_work, kept_result, repeats_work, run_on
    from opkit.testing.picture import ErrorPicture
    from opkit.testing.project import (
        case_of_shape,
        chosen_operators,
        file_cases,
        other_rounds,
        project_cases,
        replaces_generated_cases,
        shape_rules,
        with_other_cases,
    )
    from opkit.testing.references import Reference, find_reference, in_single_precision
    from opkit.testing.report import (
        CASE_COLUMNS,
        cancellation_texts,
        case_rows,
        failure_text,
        junit_xml,
        report_object,
    )
    from opkit.testing.reruns import CHANGES, with_reruns
    from opkit.testing.run import (
        CaseResult,
        PrecisionReport,
        Verdict,
        case_standard,
        is_refusal,
        run_case,
        run_cases,
    )
    from opkit.testing.settings import operator_standards, standard_for
    from opkit.testing.standards import STANDARDS, Standard, double_level, find_standard
    from opkit.testing.values import DISTRIBUTIONS, EDGES, Source

__all__ = [
    "CASE_COLUMNS",
    "CASE_FILES",
    "CHANGES",
    "DISTRIBUTIONS",
    "EDGES",
    "ERROR_ROWS",
    "STANDARDS",
    "Case",
    "CaseResult",
    "Comparer",
    "Comparison",
    "DeterminismResult",
    "Difference",
    "ErrorPicture",
    "Explanation",
    "Figure",
    "Found",
    "FuzzBudget",
    "FuzzResult",
    "Golden",
    "Library",
    "OutputResult",
    "PrecisionReport",
    "Reference",
    "Setting",
    "Setup",
    "Source",
    "Standard",
    "Step",
    "Verdict",
    "Worst",
    "assert_close",
    "assert_outputs",
    "bfloat16_to_float32",
    "cancellation_texts",
    "case_of_shape",
    "case_rows",
    "case_standard",
    "case_variants",
    "cases_work",
    "check_determinism",
    "chosen_operators",
    "compare",
    "default_cases",
    "double_level",
    "evaluate_expression",
    "explain_case",
    "explanation_text",
    "failed_last",
    "failed_names",
    "failure_text",
    "file_cases",
    "find_by_name",
    "find_reference",
    "find_standard",
    "fuzz",
    "html_report",
    "in_single_precision",
    "is_expression",
    "is_float",
    "is_refusal",
    "judge",
    "junit_xml",
    "kept_result",
    "launch_of",
    "library_cases",
    "load_cases",
    "load_golden",
    "make_case",
    "make_inputs",
    "narrow",
    "notes_file",
    "operator_standards",
    "other_rounds",
    "output_tensors",
    "pairwise_cases",
    "project_cases",
    "read_budget",
    "remember_failures",
    "repeats_work",
    "replaces_generated_cases",
    "report_object",
    "run_case",
    "run_cases",
    "run_on",
    "save_case",
    "shape_rules",
    "standard_for",
    "tensors_of",
    "to_bfloat16",
    "usual_shape",
    "widen",
    "widen_input",
    "with_other_cases",
    "with_reruns",
    "works_by_row",
    "write_st_report",
]

__getattr__ = lazy_names(
    __name__,
    {
        "arrays": ("is_float", "narrow", "tensors_of", "widen", "widen_input"),
        "assertion": ("assert_close", "assert_outputs"),
        "bfloat16": ("bfloat16_to_float32", "to_bfloat16"),
        "by_name": ("Found", "find_by_name"),
        "case_files": ("CASE_FILES", "load_cases", "save_case"),
        "cases": (
            "Case",
            "case_variants",
            "default_cases",
            "make_case",
            "make_inputs",
            "output_tensors",
            "usual_shape",
            "works_by_row",
        ),
        "comparison": ("Comparer", "Comparison", "Figure", "Worst", "compare"),
        "determinism": ("DeterminismResult", "Difference", "Setting", "check_determinism"),
        "explanation": ("Explanation", "Step", "explain_case", "explanation_text"),
        "expressions": ("evaluate_expression", "is_expression"),
        "fuzzing": ("FuzzBudget", "FuzzResult", "fuzz", "read_budget"),
        "golden": ("Golden", "load_golden"),
        "html_page": ("html_report",),
        "judgement": ("OutputResult", "judge"),
        "last_run": ("failed_last", "failed_names", "notes_file", "remember_failures"),
        "opdef_cases": ("library_cases",),
        "launching": ("Library", "launch_of"),
        "msopst_report": ("ERROR_ROWS", "write_st_report"),
        "pairwise": ("pairwise_cases",),
        "parallel": ("Setup", "cases_work", "kept_result", "repeats_work", "run_on"),
        "picture": ("ErrorPicture",),
        "project": (
            "case_of_shape",
            "chosen_operators",
            "file_cases",
            "other_rounds",
            "project_cases",
            "replaces_generated_cases",
            "shape_rules",
            "with_other_cases",
        ),
        "references": ("Reference", "find_reference", "in_single_precision"),
        "report": (
            "CASE_COLUMNS",
            "cancellation_texts",
            "case_rows",
            "failure_text",
            "junit_xml",
            "report_object",
        ),
        "run": (
            "CaseResult",
            "PrecisionReport",
            "Verdict",
            "case_standard",
            "is_refusal",
            "run_case",
            "run_cases",
        ),
        "reruns": ("CHANGES", "with_reruns"),
        "settings": ("operator_standards", "standard_for"),
        "standards": ("STANDARDS", "Standard", "double_level", "find_standard"),
        "values": ("DISTRIBUTIONS", "EDGES", "Source"),
    },
)
