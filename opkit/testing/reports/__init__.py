"""What becomes of a run's results: pages, JUnit, rows, notes for the next run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from .html_page import html_report
    from .last_run import failed_last, failed_names, notes_file, remember_failures
    from .msopst_report import ERROR_ROWS, write_st_report
    from .report import (
        CASE_COLUMNS,
        cancellation_texts,
        case_rows,
        counts_text,
        failure_text,
        junit_xml,
        report_object,
    )

__all__ = [
    "CASE_COLUMNS",
    "ERROR_ROWS",
    "cancellation_texts",
    "case_rows",
    "counts_text",
    "failed_last",
    "failed_names",
    "failure_text",
    "html_report",
    "junit_xml",
    "notes_file",
    "remember_failures",
    "report_object",
    "write_st_report",
]

__getattr__ = lazy_names(
    __name__,
    {
        "html_page": ("html_report",),
        "last_run": (
            "failed_last",
            "failed_names",
            "notes_file",
            "remember_failures",
        ),
        "msopst_report": (
            "ERROR_ROWS",
            "write_st_report",
        ),
        "report": (
            "CASE_COLUMNS",
            "cancellation_texts",
            "case_rows",
            "counts_text",
            "failure_text",
            "junit_xml",
            "report_object",
        ),
    },
)
